"""The workflow on one machine.

engine.run_workflow                what a caller uses: starts, follows and ends
  engine_process                   one process that interprets the definition
    interpreter map_run bridges    what moto's interpreter lacks
    invocations workers            Lambda: functions by name, a process a slot
      worker                       one handler process
embedded.embedded_s3               an S3 of our own, seeded at disk speed
  s3_server s3_patches             moto's store and server, made fit for log data
    s3_http s3_reads s3_writes     what stands before it, and answers what is asked most
definition model                   the state machine file, the nouns
    child wire patching                processes of ours, their messages, moto's parts replaced
    forked                             children that need not load what this process has loaded
partition_workers                  what `compactor run` uses instead: a pool of processes,
  partition_worker                 each of which works on one partition at a time
spark_job spark_process            the Spark job of this machine
  spark_jars                       archives that it needs to write a table itself
  spark_submit
"""
