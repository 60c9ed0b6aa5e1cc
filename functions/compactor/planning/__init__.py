"""What to compact: pure decisions over a listing, the settings and the commit log.

plan     the verb: listing and log in, object groups out
packing  which sources share an output, and the identity of a group
partition_listing  the listing of one partition, taken in bounded memory
query_seconds  how long query engines take over sources and outputs: a model
"""
