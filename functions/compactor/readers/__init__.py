"""One table over sources and outputs, in which query engines see each record once.

states            what a partition of the table shows: sources, outputs, or a list of both (pure)
refresh           lets the catalog show it
partition_view    what can be read in a partition now, by its log and two listings
clean_up_gate     which sources the catalog still names, for clean-up
table_creation    makes the table, or checks the one that is there
partition_columns  its partition columns; inferred_columns, parquet_columns: the others
formats           SerDes
manifests         lists of objects as Athena reads them; expired_lists: those no longer shown
ddl, files        the same for engines without the catalog
reader_catalog    the port: what is asked of the catalog
"""
