"""Maintenance of tables that others write: which files are rewritten, by whom, and what is proved.

request                what a maintenance run is asked to do
table_discovery        which tables there are; worklist: the list of them on S3
metadata               measures a table by its metadata; measures: what was measured (pure)
table_planning         what is done to a table: selecting, evolved_specs, costs, engine_choice
rewrite_packing        which files an engine would rewrite, and into how many (pure)
orders                 the work order for one table; its executor needs nothing else
lease                  one run works on a table at a time; lease_holder: in which process
athena                 what Athena is asked, and what its answers mean (pure); athena_work: asks it
optimizers             what Glue's optimizers are set to, and what they did
snapshots              what an Iceberg metadata file says; touched_partitions: who wrote where
maintenance_receipts   what became of an order
table_end              outcome, history, and the end of the lease; outcomes: one line of the report
maintenance_report     one account of a whole run
observations           what was seen of a table over time (pure); observation_history: on S3
observing              adds one observation, and says whether maintenance is due
due_tables             when maintenance is due (pure); advising: how often (pure)
latency                how slow a table has become for its readers (pure)
superseded             the tag on files of a Delta table that only old versions name
undoing                which run can be undone, and the order that does it
document_keys          where a run's documents lie
service_ports          what is asked of AWS's services; aws: who asks them
handlers               one thin module per Lambda function

Tables belong to their writers. A run measures a table by its metadata alone, orders what pays for
partitions that are no longer written, lets one engine do it, and compares the rows before and
after before it releases what was replaced.
"""
