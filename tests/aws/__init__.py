"""The smoke test of ``make smoke``: what only an account can settle, each check one line.

deployment   what is deployed: a configuration of its own, nothing of cdk.json
session      from the first bucket to the removal of the last
checks       a check, its line, and the list run in order
world        what checks work on: clients, stacks, the names of everything that is made
objects      makes buckets, key and objects; removes all of it, by name
s3_checks    conditions, checksums and bucket policies
run_checks   runs of the state machine, its rights, clean-up, events, alarms
table_checks tables in Glue's catalog, Athena
report       the lines, a table and the cost, redacted
"""
