"""A whole run over all partitions, independent of where the work is done.

run               the loop: discover, compact each partition, clean up, report
discovery_step    its first step, shared with the workflow's discover handler
workers           ports: workers, the Spark job, and an observer
in_process        workers in the calling process
messages          a worker's orders and answers; Desk: carries orders out
partition_retry   which failures are retried, and when
run_progress      how far the run has come
reconcile         registers objects that no event announced, found by LIST
reconcile_rounds  reconciles a whole source, in as many calls as it takes
"""
