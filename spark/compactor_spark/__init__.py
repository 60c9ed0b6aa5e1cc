"""The Spark job, for partitions that are too large for one Lambda function, or for whole runs.

What runs where, and what each module passes to the next:

    compact_partitions   an entry point of spark-submit: compacts what a run lists for Spark
    compact_run          another one: a whole run from discovery to its report
    job                  shared by both: session, table, outcome
    places               the run's records on S3: settings and work items in, outcome out
    driver               rounds: plan all partitions -> run the groups -> commit -> plan again
      oversized          one partition on the driver: its windows, answers and failed groups
      rounds             one round as a Spark job; yields answers as tasks end
        tasks            on the executors: read, store and verify a few groups
        answers          what travels to a task and back
    session              session settings under which every Spark reads and writes rows alike
    opening              start settings and sessions for tables, by their addresses
    upsert               merges outputs into tables whose rows have a key
    hours                vCPU hours and GB hours that the job used
    outcome              how the job ended: spark-result.json or spark-error.json
    console              progress lines
    warm_up              starts Spark before the first job, where one process runs several

    maintain_tables      a third entry point: maintains tables of other writers, by order
    maintain             one order: rewrite, compare, expire

The order of writes is that of every other worker. Tasks do steps 1 to 3 (read, store, verify);
only the driver commits and publishes, so a task that is retried or runs twice cannot publish
twice. ``compactor.partition.work`` handles a partition's log, plan and counts.
"""
