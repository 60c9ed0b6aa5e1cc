"""Discovery finds a run's partitions by their prefixes. It writes nothing but the work list.

discover          discover(): the partitions of a run, by LIST or from events
search            which prefixes are partitions
work_list         the work list on S3, and what lies beside it
forecast          what a run would do to a partition now, without doing it
parallel          threads that work ahead of the caller
location_checks   checks of source, destination and state before a run
"""
