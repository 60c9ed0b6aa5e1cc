"""The table catalogs: Iceberg through pyiceberg, Delta through delta-rs.

opening            opens the table that the settings name
iceberg            Iceberg tables in Glue, a REST catalog, or a catalog on this machine
iceberg_columns    whether the columns of outputs fit those of an Iceberg table
iceberg_contents   which files an Iceberg table consists of, and what replaced others
iceberg_history    which outputs an Iceberg table was given, and its past columns
iceberg_partitions how a new Iceberg table is partitioned, and which partition an output is in
data_files         an output as a data file of an Iceberg table
delta              Delta tables by their location
delta_columns      whether the columns of outputs fit those of a Delta table
delta_contents     which files a Delta table consists of, and what replaced others
delta_demands      what a Delta table requires of its writers
delta_history      which outputs a Delta table was given, and its past columns
misfits            how columns that do not fit are handled, for both formats
keyed              a table whose rows have a key, read through both of its tables, without Spark
readers            the table that query engines read, in Glue
output_footers     reads the footers of outputs: columns and statistics
"""
