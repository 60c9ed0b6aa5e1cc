"""Publishing outputs to the destination's Iceberg or Delta table, each exactly once.

table_catalog     the port that table formats implement (compactor.catalogs: Iceberg and Delta)
table_entries     the entries of the table log, and their fold (pure)
table_log         TableLog: the table log on S3
table_publisher   names the outputs that the table lacks, and adds them to it
unnamed_outputs   finds outputs that are committed and published, but not yet in the table log
table_proof       whether the table has an output
checks            whether a table is still the one that the log describes
accept            accepts a table after a rollback: what it lacks, and how to continue
named_history     whether the commit that added an output is still in the table's history (pure)
contents          whether an output's rows are in the table, according to its metadata (pure)
merged_tables     whether a table that Spark merges into lags
table_receipts    what one run did for its table
upserts           tables whose rows have a key: which record of a key wins (pure)

There are three sources of truth. A partition's commit log says which sources became which output.
The table log, ``table/<n>.json``, says which outputs go into the table, and under which entry
number. The table itself says up to which number it has them: in a property (Iceberg) or a
transaction (Delta), which is written in the same commit that adds the files.
"""
