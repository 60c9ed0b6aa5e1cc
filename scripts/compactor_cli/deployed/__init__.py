"""The deployed state machine, as a person at a terminal asks for it.

    aws          clients, and AWS's refusals as one clear line
    stack        the outputs of the CloudFormation stack: where everything is
    executions   runs: the last one, a named one, a new one
    map_run      how far the partitions are, and which of them failed
    spark_tasks  what the run gave to EMR, and how that stands
    progress     a run followed to its end
    log_lines    one event of a log, and the run it belongs to
    logs         the logs of all functions, for one run
    reports      the report that a run left on S3

Everything here only reads, but for :func:`executions.start`.
"""
