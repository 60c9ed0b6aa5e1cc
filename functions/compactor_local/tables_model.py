"""The second state machine, for maintenance: its file, handlers and stand-ins."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from compactor_cli.machine.installed import definition
from compactor_local.model import BRIDGES, VALUES

TABLES_DEFINITION = definition("tables.asl.json")

#: ``${Substitution}`` of the definition -> function name.
TABLES_SUBSTITUTIONS: Mapping[str, str] = MappingProxyType(
    {
        "ListTablesFunctionArn": "list_tables",
        "PlanTableFunctionArn": "plan_table",
        "BeginTableFunctionArn": "begin_table",
        "AthenaStepFunctionArn": "athena_step",
        "EndTableFunctionArn": "end_table",
        "ReportTablesFunctionArn": "report_tables",
    }
)
#: Function name -> module whose ``handler(event, context)`` it runs.
TABLES_HANDLERS: Mapping[str, str] = MappingProxyType(
    {name: f"compactor_tables.handlers.{name}" for name in TABLES_SUBSTITUTIONS.values()}
)
#: Substitutions that the definition of compaction has too, with the same values.
SHARED_SUBSTITUTIONS = (
    "AwsPartition",
    "AwsRegion",
    "SparkAppZipUri",
    "SparkDepsZipUri",
    "SparkEncryption",
    "SparkLogUri",
    "SparkTimeoutSeconds",
    "EmrServerlessApplicationId",
    "EmrServerlessJobRoleArn",
)
#: ``${Substitution}`` of the definition -> placeholder that has no effect locally.
TABLES_VALUES: Mapping[str, str] = MappingProxyType(
    {
        **{name: VALUES[name] for name in SHARED_SUBSTITUTIONS},
        # Its last segment names the script of this installation that is run instead.
        "MaintainScriptUri": "s3://local/spark/maintain_tables.py",
        # The jars of local Spark are in the run's environment.
        "TableJars": "local",
        "SparkEngine": "emr_serverless",
        "EmrClusterId": "j-LOCAL",
        "AthenaWorkgroup": "local",
    }
)
_OF_SPARK = (
    "arn:aws:states:::elasticmapreduce:addStep.sync",
    "arn:aws:states:::emr-serverless:startJobRun.sync",
)
ATHENA = "arn:aws:states:::athena:startQueryExecution.sync"
#: Task resource -> ``package.module:callable`` of its default stand-in.
TABLES_BRIDGES: Mapping[str, str] = MappingProxyType(
    {
        **{resource: BRIDGES[resource] for resource in _OF_SPARK},
        ATHENA: "compactor_local.athena:start_query",
    }
)
