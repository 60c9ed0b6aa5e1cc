"""The table that outputs are published to: each output once.

table_catalog     the port: what is asked of an Iceberg or Delta table (compactor.catalogs has them)
table_entries     the entries of the table log, and their fold (pure)
table_log         TableLog: that log on S3
table_publisher   names the outputs that the table lacks, and adds them to it
unnamed_outputs   outputs that are committed and published, and that no entry names yet
table_proof       whether the table has an output
checks            whether a table is still the one that the log describes
accept            what a table lacks after a rollback, and the way on
named_history     whether the commit that added an output is still in the table's history (pure)
contents          whether the rows of an output are in a table, by the table's own files (pure)
merged_tables     tables that Spark merges into: whether they lag
table_receipts    what one run did for its table
upserts           tables whose rows have a key: which record of a key wins (pure)

Three sources of truth. The commit log of a partition says which sources became which output. The
table log, ``table/<n>.json``, says which outputs go into the table under which number. The table's
own property (Iceberg) or transaction (Delta), written in the commit that adds the files, says up to
which number they are in it.
"""
