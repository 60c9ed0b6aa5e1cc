"""What S3 Inventory lists, instead of LIST: taken once by a run, then read by key.

manifest   what S3 says of an inventory, checked
rows       the objects of one of its files; columnar: of those in ORC and Parquet
taking     the verb: all files -> pages in the order of keys, in as many calls as it takes
pieces     what such calls leave for one another
pages      those pages, and their index; where they lie
listing    the pages as a listing of the source
"""
