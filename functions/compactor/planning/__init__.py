"""Decides what to compact: pure decisions over a listing, the settings and the commit log.

plan               listing and log in, object groups out
packing            which sources share an output, and the id of a group
partition_listing  lists one partition in bounded memory
surroundings       finds tables and registries that own a prefix; markers: their names
key_rules          sources skipped because of their key; dialects: which CSV has a header
"""
