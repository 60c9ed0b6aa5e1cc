"""Listings from S3 Inventory or S3 Metadata instead of LIST: sorted once, then read by key.

source              the Inventory protocol, and inventories that S3 delivers as files
inventory_manifest  the manifest of such an inventory, checked
rows                the objects in one of its files
taking              sorts all files into pages in key order, in as many calls as it takes
inventory_pieces    the progress that these calls store
pages               the pages, their index, and where they are stored
inventory_listing   the pages as a listing of the source
"""
