"""The only loop: list a partition, plan, compact, verify, commit and publish its groups.

run        compact_partition(): the loop of a worker
work       PartitionWork: the steps of that loop, shared with the Spark driver
listing    windows of a partition's keys, from LIST or from events
receipts   what a run did in a partition, and where its next call begins
batches    several small partitions in one call
inputs     PartitionRun: what one call is given
events     the objects that events announced, and what became of them
"""
