"""One partition's run: its steps in order, and its receipt.

run_partition         compacts one partition in one worker, from listing to published outputs
batches               several small partitions in one call
partition_run         PartitionRun: the run's input; PartitionResult: what it did; Attempts: the
                      time and retries left
partition_progress    the components of one call, how it finishes, and the readers' table:
  settling              publishes, rebuilds or voids what earlier runs committed
  window_planner        lists a window of keys and plans it
  group_work            compacts, verifies, commits and publishes one group
  storing               stores the bytes or the rows of one group
  source_notes          findings about single sources
listings              windows of keys, and the listing they are read from
event_listing         opens the listing of the objects that events named
resume_point          where the next call of a run begins
partition_receipts    the content of a receipt; receipt_writer: writes it, on success or failure
resting_partitions    records for discovery that a partition has nothing left to do
registered_objects    marks objects that events announced as compacted, gone or left alone
"""
