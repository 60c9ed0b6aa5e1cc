"""The readers' table, in which query engines see each record of sources and outputs once.

states            decides what a partition shows: sources, outputs, or a list of both (pure)
refresh           updates the catalog to show it
partition_view    what can be read in a partition now, from its log and two listings
clean_up_gate     which sources the catalog still names, for clean-up
table_creation    creates the table, or checks an existing one
partition_columns  its partition columns; inferred_columns, parquet_columns: its other columns
formats           SerDes
manifests         lists of objects in Athena's format; expired_lists: deletes those not shown
ddl, files        SQL and file lists, for engines without the catalog
reader_catalog    the port to the catalog
"""
