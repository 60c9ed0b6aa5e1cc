"""The Spark job: partitions that are too large for one Lambda function.

What runs where, and what each hands to the next:

    compact_partitions   spark-submit's entry point: arguments, session, exit code
    places               the run's records on S3: settings and work items in, outcome out
    driver               rounds: plan all partitions -> run the groups -> commit -> plan again
      oversized          one partition on the driver: its windows, answers and failed groups
      rounds             one round as a Spark job; answers are given out as tasks end
        tasks            on the executors: read, store and verify one group
        answers          what travels to a task and back
      columnar           the same for groups whose outputs hold rows (Parquet)
    opening              tables by their addresses: what Spark is started with, and their sessions
    upsert               tables whose rows have a key: outputs merged into them
    hours                what the job used of processors and memory
    outcome              how the job ended: spark-result.json or spark-error.json
    console              progress lines
    warm_up              starts Spark before there is a job, where one process has several

    maintain_tables      another entry point: tables that others write, as orders say it
    maintain             one order: rewrite, compare, let go, undo

The order of writes is that of every other worker. Tasks do steps 1 to 3 (read, store, verify);
only the driver commits and publishes, so a task that is retried or runs twice cannot publish
twice. All that a partition's log, plan and counts need is in ``compactor.runs.partition_progress``.
"""
