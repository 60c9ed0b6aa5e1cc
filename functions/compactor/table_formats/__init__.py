"""Table formats, for the sink that fills tables and for the maintenance of other writers' tables.

installed         whether the library of a format is installed
iceberg_catalogs  Iceberg catalogs, by pyiceberg; file_io: its files on the run's own store
iceberg_manifests manifest entries, and which deletes apply to a data file
answers           translates errors of pyiceberg; dates: partitions by time, of any year
delta_log         replays the log of a Delta table; delta_actions: the actions in it
"""
