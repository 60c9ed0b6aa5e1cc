"""Rights to read the run times of jobs and queries that show how slow a table has become."""

from __future__ import annotations

from aws_cdk import ArnFormat, Stack

from cdk.config import Config
from cdk.grants import Role, allow
from compactor_tables.policies import LatencySource

_RUNS = "Job runs of the one application; EMR Serverless names them."


def may_read_latencies(role: Role, config: Config) -> None:
    """Allow reading the run times of the jobs and queries that maintenance rules name."""
    request = config.tables_request
    rules = request.policies.rules if request is not None else ()
    named = {rule.latency.text: rule.latency for rule in rules if rule.latency is not None}
    for _, source in sorted(named.items()):
        _allow(role, source)


def _allow(role: Role, source: LatencySource) -> None:
    def arn(service: str, resource: str, name: str) -> str:
        return Stack.of(role).format_arn(
            service=service,
            resource=resource,
            resource_name=name,
            arn_format=ArnFormat.SLASH_RESOURCE_NAME,
        )

    if source.kind == "glue_job":
        allow(role, ["glue:GetJobRuns"], [arn("glue", "job", source.name)])
    elif source.kind == "emr_step":
        cluster = arn("elasticmapreduce", "cluster", source.place)
        allow(role, ["elasticmapreduce:ListSteps"], [cluster])
    elif source.kind == "athena":
        actions = ["athena:ListQueryExecutions", "athena:BatchGetQueryExecution"]
        allow(role, actions, [arn("athena", "workgroup", source.place)])
    elif source.kind == "emr_serverless":
        application = arn("emr-serverless", "/applications", source.place)
        allow(role, ["emr-serverless:ListJobRuns"], [application])
        runs = [f"{application}/jobruns/*"]
        allow(role, ["emr-serverless:GetJobRun"], runs, wildcard=_RUNS)
