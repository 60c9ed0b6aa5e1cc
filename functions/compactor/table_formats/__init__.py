"""Table formats, for the sink that fills tables and for the maintenance of other writers' tables.

installed         whether the library of a format is there
iceberg_catalogs  Iceberg catalogs, by pyiceberg; file_io: its files on the run's own store
iceberg_manifests entries of manifests, and which deletes apply to a data file
answers           errors of pyiceberg as errors of ours; dates: partitions by time, of any year
delta_log         what the log of a Delta table says; delta_actions: the actions in it
"""
