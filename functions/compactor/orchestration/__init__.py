"""A whole run over all partitions, wherever their work is done.

run               the loop: discover, compact each partition, clean up, report
discovery_step    its first step, which the workflow's discover handler shares
workers           ports: who compacts partitions and runs Spark, who is notified
in_process        workers that are this process
messages          what is sent to a worker, and its answer; Desk: carries them out
partition_retry   which failures are tried again, and when
run_progress      how far the run has come
reconcile         registers by LIST or an inventory what no event announced
reconcile_rounds  a whole source, in as many calls as it takes
"""
