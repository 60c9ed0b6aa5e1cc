"""Discovery: which partitions a run has, and what is in them. Reads, and writes lists of work only.

discover  the verb
search    which prefixes are partitions
counting  how much one partition holds
parallel  threads that work ahead
resume    the verb in several invocations; joined: the lists
discovery_pieces  what each invocation leaves on S3
work_items      WorkItem: what was found of one partition; and the lists of them on S3
forecast  what a run would do to a partition now, without doing it
rejected  partitions whose rejects may fit by now, wherever their sources are
location_checks    whether source, destination and state are what they are taken for
fleet     the workers: what is known of them before the run begins
speed     seconds that a worker takes, as the benchmark measured them (made by it)
"""
