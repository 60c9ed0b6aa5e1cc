"""The input of a run: its fields, checked, with every default filled in.

settings          Settings, parse_settings: a run's input as one value
fields            FIELDS: every field, described once
arguments         a command-line option for each field
specs             how one field is described and checked
uris              S3Uri: locations of source, destination and state, and whether they overlap
partitioning      the columns, and transforms of columns, that partition a table
wire              names in the JSON input that stand for others
windows           which prefixes are partitions of a window of time
"""
