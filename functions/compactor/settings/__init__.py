"""What a run is asked to do: its fields, checked, with every default filled in.

settings          Settings, parse_settings: a run's input as one value
fields            FIELDS: every field, described once
specs             how one field is described and checked
uris              S3Uri: where source, destination and state lie, and whether they overlap
partitioning      by which columns, and transforms of columns, a table is divided
policies          rules of who may touch what, and how: the first that matches counts
object_rules      which of them are for the objects of a partition
schedules         when something is due by the date, and when nothing may run
windows           which prefixes are partitions of a window of time
"""
