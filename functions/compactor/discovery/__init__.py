"""Discovery finds a run's partitions and what is in them. It writes nothing but work lists.

discover          discover(): the whole discovery in one call
search            which prefixes are partitions
counting          how much one partition holds
parallel          threads that work ahead of the caller
resume            discovery in several invocations
discovery_pieces  what each of these invocations stores on S3
joined            the work lists, written from these pieces
work_items        WorkItem: what was found in one partition; the work lists on S3
forecast          what a run would do to a partition now, without doing it
estimate          what a run will request from AWS
worth             whether compaction pays
location_checks   checks of source, destination and state before a run
fleet             what is known of the workers before the run
speed             seconds that a worker takes, as measured by the benchmark
"""
