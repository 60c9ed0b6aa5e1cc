"""The table of a destination: which outputs it was given, each once.

port      TableCatalog: what a table of Iceberg or Delta can do for us; :mod:`compactor.catalogs`
          has them
entries   the entries of the table log, and what they say together (pure)
log       TableLog: that log on S3
leftover  the outputs that are committed and readable, and that no entry names yet
checks    whether a table is still the one that its log tells of
publish   names what is left over, and brings all that is named into the table
accept    what a table lacks that others rolled back or made again, and the way on
merged    tables that Spark merges into: whether they are behind, and what a run's job left
receipts  what one run did for its table
upserts   tables whose rows have a key: which record of a key wins (pure)

Three truths, each in one place. The commit log of a partition says which sources became which
output. The table log, ``table/<n>.json``, says which outputs go into the table under which number.
And the table's own property (Iceberg) or transaction (Delta), written in the commit that adds the
files, says up to which number they are in it.
"""
