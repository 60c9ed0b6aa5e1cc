"""The local stack of the demonstration and the tests: an embedded S3, and the workflow.

engine.run_workflow                entry point: starts, follows and ends an execution
  engine_process                   the process that interprets the definition
    interpreter map_run bridges    patches for what moto's interpreter lacks
    invocations worker             Lambda: functions by name, a process per slot
    emr athena                     stand-ins for services that the definitions call
embedded.embedded_s3               an embedded S3: moto's server, seeded within its process
  s3_server                        its process
definition model tables_model      the state machine files, and data types
ingest table_reader                the deployment of events, on the embedded services
"""
