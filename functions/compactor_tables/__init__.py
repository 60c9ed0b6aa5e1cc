"""Maintenance of tables that others write: plans, work orders, engines and verification.

request                the input of a maintenance run
table_discovery        finds the tables of a run; worklist: the list of them on S3
metadata               measures a table by its metadata; measures: the result (pure)
table_planning         plans one table: selecting, evolved_specs, costs, engine_choice
orders                 the work order for one table, complete for its executor
lease                  one run works on a table at a time
table_engine           protocol of an engine for one table; maintenance_job: does an order by it
rewriting              the worker: rewrites small files in this process
athena                 Athena's statements and answers (pure); athena_work: runs an order by them
maintenance_receipts   the result of an order
table_run              plan, lease and end of one table; outcomes: its line of the report
maintenance_report     the report of a whole run
due_tables             when maintenance is due (pure)
document_keys          keys of a run's documents
aws                    Glue and Athena
handlers               one thin module per Lambda function

Tables belong to their writers. A run measures a table by its metadata alone, orders the work that
pays for itself in partitions that are no longer written, has one engine do it, and compares the
rows before and after the rewrite. Only then are the replaced files released.
"""
