"""Processes of this machine, and its Spark: what ``compactor run`` and the local stack share.

child wire workers        processes of ours, their messages, a pool of them
partition_workers         what `compactor run` uses: processes, each of which works on one
  partition_worker          partition at a time; partition_log: what they log
spark_job spark_process   the Spark job of this machine
  spark_submit spark_jars   how it is started, and jars that it needs to write a table itself
environment               of processes; installed: where our packages are; extras: what pip installs
"""
