"""The stack of the demonstration and of the tests: an embedded S3, and the workflow on one machine.

engine.run_workflow                what a caller uses: starts, follows and ends
  engine_process                   one process that interprets the definition
    interpreter map_run bridges    what moto's interpreter lacks
    invocations worker             Lambda: functions by name, a process a slot
    emr athena                     stand-ins for services that the definitions ask
embedded.embedded_s3               an S3 of our own, seeded at disk speed
  s3_server s3_patches             moto's store and server, made fit for log data
    s3_http s3_reads s3_writes     what stands before it, and answers what is asked most
definition model tables_model      the state machine files, the nouns
ingest executions table_reader     the deployment of events, on the embedded services
kept_spark spark_host              a Spark that stays between jobs
"""
