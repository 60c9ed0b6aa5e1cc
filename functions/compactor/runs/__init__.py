"""One partition's run: the order of the verbs, and its receipt.

run_partition         from the listing to published outputs, in one worker
batches               several small partitions in one call
partition_run         PartitionRun: the run's input; PartitionResult: what it did; Attempts: what
                      time and tries are left
partition_progress    one call's parts, how it finishes, and what readers see of it then:
  settling              publishes, rebuilds or voids what earlier runs committed
  window_planner        lists a window of keys and plans it
  group_work            compacts, verifies, commits and publishes one group
  source_notes          what was learned of single sources
listings              windows, and where their objects are learned from
prior_listing         what was listed before the run
resume_point          where the next call of a run begins
partition_receipts    what a receipt says; receipt_writer: writes it, on success or failure
resting_partitions    whether nothing is left to do, recorded for discovery
registered_objects    what became of objects that events announced
"""
