"""What S3 Inventory (or S3 Metadata) lists, instead of LIST: taken once, then read by key.

source     what an inventory is to its caller, and the one that S3 delivers as files
inventory_manifest  what S3 says of such an inventory, checked
rows       the objects of one of its files
taking     the verb: all files -> pages in the order of keys, in as many calls as it takes
inventory_pieces     what such calls leave for one another
pages      those pages, and their index; where they lie
inventory_listing    the pages as a listing of the source
"""
