"""The only modules that talk to tables: Iceberg by pyiceberg, Delta by delta-rs.

opening     opens the table that settings name; file_io: pyiceberg's files on the run's own store
iceberg     Iceberg tables in Glue, a REST catalog, or a catalog of this machine
iceberg_partitions  how an Iceberg table that is made is divided, and where an output lies
iceberg_columns  whether the columns of outputs fit its own
live_inventory  S3 Metadata's table of all objects of a bucket, as an inventory
delta       Delta tables by their location; delta_demands: what such a table asks of its writers
measuring   what a table's metadata says of its files: measured_iceberg, measured_delta, delta_log
iceberg_writes  what a snapshot of an Iceberg table wrote
delta_files which objects a Delta table is made of
keyed       a table whose rows have a key, by both of its tables, for callers without Spark
readers     the table that query engines read: in Glue
output_footers  what the footers of outputs say: columns, and what a table keeps of them
"""
