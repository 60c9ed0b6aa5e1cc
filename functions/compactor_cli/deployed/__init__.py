"""Access to a deployed stack, for a user at a terminal.

    aws          clients, and refusals of AWS as one clear line
    stack        the outputs of the CloudFormation stack: names and ARNs
    executions   runs: the last one, a named one, a new one
    map_run      progress of the partitions, and those that failed
    progress     a run followed to its end
    reports      the report that a run left on S3

Everything here is read-only, except :func:`executions.start`.
"""
