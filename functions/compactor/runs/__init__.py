"""One partition's run: the order of the verbs, and its receipt.

run_partition         from the listing to published outputs, in one worker
batches               several small partitions in one call
partition_run         PartitionRun: the run's input; PartitionResult: what it did
partition_progress    one call's parts, and how it finishes:
  settling              publishes, rebuilds or voids what earlier runs committed
  window_planner        lists a window of keys and plans it
  group_work            compacts, verifies, commits and publishes one group
  attempts              time and tries that are left
  source_notes          what was learned of single sources
claim                 checks of the log before anything is stored for it
rebuilding            builds an output again whose upload was lost
listings              where objects are learned from; prior_listing: what was listed before the run
planning_window       a range of keys that is planned at once
resume_point          where the next call of a run begins
partition_receipts    what a receipt says; receipt_writer: writes it, on success or failure
resting_partitions    whether nothing is left to do, recorded for discovery
registered_objects    what became of objects that events announced
reader_update         what query engines see of the partition afterwards
lookalikes            sources that only look like the content of a commit
recreated_sources     sources that were put again after their commit
unreadable_sources    sources that may become readable without changing
"""
