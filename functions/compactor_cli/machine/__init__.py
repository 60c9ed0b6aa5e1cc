"""Local processes and Spark, shared by ``compactor run`` and the local stack.

processes                 child processes, their messages, and a pool of them
partition_workers         the processes of `compactor run`, each working on one partition at a time
spark_job spark_process   the local Spark job
  spark_submit spark_jars   how it is started, and the jars it needs to write tables
environment               of processes; installed: paths of our packages; extras: optional packages
"""
