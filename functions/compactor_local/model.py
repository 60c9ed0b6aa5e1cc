"""Inputs and outputs of the local engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compactor.orchestration.run_progress import RunProgress
from compactor_cli.machine.installed import definition

DEFINITION = definition()

HANDLERS: Mapping[str, str] = {
    "discover": "compactor_handlers.discover",
    "compact_partition": "compactor_handlers.compact_partition",
    "plan_clean_up": "compactor_handlers.plan_clean_up",
    "clean_up": "compactor_handlers.clean_up",
    "publish_table": "compactor_handlers.publish_table",
    "report": "compactor_handlers.report",
}
"""Function name -> module whose ``handler(event, context)`` it runs."""

SUBSTITUTIONS: Mapping[str, str] = {
    "DiscoverFunctionArn": "discover",
    "CompactPartitionFunctionArn": "compact_partition",
    "PlanCleanUpFunctionArn": "plan_clean_up",
    "CleanUpFunctionArn": "clean_up",
    "PublishTableFunctionArn": "publish_table",
    "ReportFunctionArn": "report",
}
"""``${Substitution}`` of the definition -> function name."""

VALUES: Mapping[str, str] = {
    "AwsPartition": "aws",
    "AwsRegion": "us-east-1",
    # Its last segment names the script of this installation that is run instead.
    "SparkScriptUri": "s3://local/spark/compact_partitions.py",
    "SparkAppZipUri": "s3://local/spark/app.zip",
    "SparkDepsZipUri": "s3://local/spark/deps.zip",
    # For a cluster; local Spark is configured by the run's environment.
    "SparkTableConf": "spark.jars=s3://local/spark/table.jar",
    "SparkEncryption": "none",
    "SparkLogUri": "s3://local/logs/",
    "SparkTimeoutSeconds": "43200",
    "EmrReleaseLabel": "emr-spark-8.1.0",
    "EmrPrimaryInstanceType": "m6g.xlarge",
    "EmrCoreInstanceType": "m6g.xlarge",
    "EmrCoreInstanceCount": "2",
    "EmrSubnetId": "subnet-0local",
    "EmrServiceRole": "local-emr-service",
    "EmrInstanceProfile": "local-emr-nodes",
    "EmrSecurityConfiguration": "local",
    "EmrIdleTimeoutSeconds": "900",
    "EmrCreateTimeoutSeconds": "1800",
    "EmrTerminateTimeoutSeconds": "1800",
    "EmrServerlessApplicationId": "00local",
    "EmrServerlessJobRoleArn": "arn:aws:iam::123456789012:role/local-emr-serverless",
}
"""``${Substitution}`` of the definition -> placeholder that has no effect locally."""

BRIDGES: Mapping[str, str] = {
    "arn:aws:states:::elasticmapreduce:createCluster.sync": ("compactor_local.emr:create_cluster"),
    "arn:aws:states:::elasticmapreduce:addStep.sync": "compactor_local.emr:add_step",
    "arn:aws:states:::elasticmapreduce:terminateCluster.sync": (
        "compactor_local.emr:terminate_cluster"
    ),
    "arn:aws:states:::emr-serverless:startJobRun.sync": "compactor_local.emr:start_job_run",
}
"""Task resource -> ``package.module:callable`` of its default stand-in."""


class EngineError(Exception):
    """The local engine itself failed; the message says what to do."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options of the local engine; the defaults match the deployed functions.

    Attributes:
        definition: the state machine file.
        handler_timeout_seconds: a handler that runs longer is killed and its process replaced.
        memory_mb: memory in the handlers' context; not enforced.
        wait_scale: factor for the waits before retries and of Wait states; 0 skips them.
        environment: variables for engine and handlers, on top of this process's own. An empty
            value removes the variable. ``PYTHONPATH`` precedes the project's own.
        log: file to which the output of handlers is appended; None discards it.
        bridges: task resource -> ``package.module:callable`` that stands in for a service
            integration the interpreter lacks; it takes the task's parameters and returns the
            task's result. By default EMR and EMR Serverless have one, which runs the job with
            local Spark.
    """

    definition: Path = DEFINITION
    handler_timeout_seconds: float = 900.0
    memory_mb: int = 1769
    wait_scale: float = 1.0
    environment: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    bridges: Mapping[str, str] = field(default_factory=lambda: dict(BRIDGES))


@dataclass(frozen=True, slots=True)
class WorkflowProgress(RunProgress):
    """The progress of an execution.

    Attributes:
        function: the function invoked last, e.g. ``compact_partition``.
        invocations: Lambda invocations that have answered, failures included.
        counts: sums over the partitions of the ``counts`` that compact_partition returned last, and
            of the counts of Spark, once it has ended.
    """

    function: str = ""
    invocations: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WorkflowResult:
    """The end of an execution.

    Attributes:
        status: ``SUCCEEDED``, ``FAILED``, ``TIMED_OUT`` or ``ABORTED``, as in Step Functions.
        output: the execution's output when it succeeded.
        error: error name when it failed.
        cause: error cause when it failed.
        seconds: from the start of the execution to its end.
        progress: the final progress.
        worker_peak_bytes: largest resident memory any handler process reached.
        workers_replaced: handler processes that crashed or were killed.
        events: the execution's history events, without those of child executions.
    """

    status: str
    output: Any
    error: str | None
    cause: str | None
    seconds: float
    progress: WorkflowProgress
    worker_peak_bytes: int
    workers_replaced: int
    events: tuple[Mapping[str, Any], ...] = ()
