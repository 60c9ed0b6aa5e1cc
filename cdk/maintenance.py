"""Maintenance of tables: the second state machine, its rights, and its schedule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_athena as athena
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk import REPOSITORY
from cdk.config import Config
from cdk.encryption import encryption_of
from cdk.function_set import FunctionSet
from cdk.grants import (
    Role,
    allow,
    may_list,
    may_list_parts,
    may_list_uploads,
    may_read,
    may_write,
    own_role,
)
from cdk.machines import Machine, MapRuns, allow_managed_rules, allow_map_runs, make_machine
from cdk.maintained_tables import MaintainedTables
from cdk.schedule import add_schedule, how_to_start
from cdk.spark import SparkStep
from cdk.storage import ATHENA_RESULTS, Place
from cdk.table_optimizers import LAKE_FORMATION, TableOptimizers

# ``${Substitution}`` of the definition -> function name.
_FUNCTIONS: Mapping[str, str] = {
    "ListTablesFunctionArn": "list_tables",
    "PlanTableFunctionArn": "plan_table",
    "BeginTableFunctionArn": "begin_table",
    "AthenaStepFunctionArn": "athena_step",
    "EndTableFunctionArn": "end_table",
    "ReportTablesFunctionArn": "report_tables",
}
_DEFINITION = REPOSITORY / "statemachine" / "tables.asl.json"
_MAP_RUNS = MapRuns(
    labels=("Tables",),
    lists=("runs/*/tables.json",),
    results="runs/*/tables.json.results/*",
)
# Memory by function. A plan holds every file that a table's metadata names, some 300 bytes each.
_TABLES_MB = {
    "list_tables": 512,
    "plan_table": 3_008,
    "begin_table": 512,
    "athena_step": 1_024,
    "end_table": 512,
    "report_tables": 1_024,
}
# Documents of the state, by the function that writes them.
_WRITES = {
    "list_tables": ("runs/*.json",),
    "plan_table": ("runs/*/tables/*.json",),
    "begin_table": ("tables/*/lease.json",),
    "athena_step": ("runs/*/tables/*.json",),
    "end_table": ("runs/*/tables/*.json", "tables/*/lease.json"),
    "report_tables": ("runs/*/tables-report.json",),
}


class Maintenance(Construct):
    """The state machine that maintains tables, its functions, schedule, workgroup and optimizers.

    Attributes:
        machine: the state machine, called after the deployment with the suffix ``-tables``.
        functions: the functions that it invokes.
    """

    def __init__(
        self,
        scope: Construct,
        config: Config,
        state: Place,
        *,
        spark: SparkStep,
        tables: MaintainedTables,
    ) -> None:
        super().__init__(scope, "Maintenance")
        self._config, self._state, self._tables = config, state, tables
        self._name = f"{config.name}-tables"
        if config.glue_optimizers:
            TableOptimizers(self, config, tables)
        self._workgroup = self._made_workgroup()
        self.functions = functions = self._made_functions()
        self._allow_functions(functions)
        role = own_role(self, "Role", "states.amazonaws.com", of_this_account=True)
        policy = iam.Policy(self, "Policy", roles=[role])
        allow(policy, ["lambda:InvokeFunction"], [*_arns(functions).values()])
        about = Machine(self._name, "s3-compactor: maintains tables", _DEFINITION)
        allow_map_runs(policy, about, _MAP_RUNS, state)
        allow_managed_rules(policy, about)
        spark.allow_workflow(policy)
        self._allow_queries(policy)
        self.machine = make_machine(
            self,
            about,
            role,
            {
                **_arns(functions),
                **spark.tables_substitutions,
                "AthenaWorkgroup": self._workgroup.name,
            },
            log_retention_days=config.log_retention_days,
        )
        # A machine that starts before it has its rights would fail.
        self.machine.node.add_dependency(policy)

    def starts(self, run_input: str, failed: sqs.Queue) -> None:
        """Start it by its own schedule, if any; failed starts go to the queue."""
        config = self._config
        if config.maintenance_schedule is None:
            return
        role = own_role(self, "ScheduleRole", "scheduler.amazonaws.com", of_this_account=True)
        how = how_to_start(run_input, failed, role)
        add_schedule(
            self,
            targets.StepFunctionsStartExecution(self.machine, **how),
            name=self._name,
            description="s3-compactor: starts maintenance of tables",
            schedule=config.maintenance_schedule,
            time_zone=config.schedule_time_zone,
        )

    def _made_functions(self) -> FunctionSet:
        encryption = encryption_of(self._config, [self._state])
        functions = FunctionSet(self, self._config, encryption, maintenance=True)
        knows = {"plan_table", "athena_step"}
        for name, memory_mb in _TABLES_MB.items():
            functions.add(name, memory_mb, knows_table=name in knows)
        return functions

    def _made_workgroup(self) -> athena.CfnWorkGroup:
        config, key = self._config, self._state.key
        encryption: dict[str, Any] = {"encryption_option": "SSE_S3"}
        if key is not None:
            encryption = {"encryption_option": "SSE_KMS", "kms_key": key.key_arn}
        group = athena.CfnWorkGroup
        return group(
            self,
            "Workgroup",
            name=self._name,
            description=f"{config.name}: OPTIMIZE and VACUUM",
            recursive_delete_option=True,
            work_group_configuration=group.WorkGroupConfigurationProperty(
                enforce_work_group_configuration=True,
                publish_cloud_watch_metrics_enabled=True,
                engine_version=group.EngineVersionProperty(
                    selected_engine_version="Athena engine version 3"
                ),
                result_configuration=group.ResultConfigurationProperty(
                    output_location=f"{self._state.uri}{ATHENA_RESULTS}",
                    encryption_configuration=group.EncryptionConfigurationProperty(**encryption),
                ),
            ),
        )

    def _allow_functions(self, functions: FunctionSet) -> None:
        roles, tables, state = functions.roles, self._tables, self._state
        for name, writes in _WRITES.items():
            # The function that lists tables reads neither a table nor a document of the state; it
            # checks whose bucket this is.
            (may_list if name == "list_tables" else may_read)(roles[name], state)
            for below in writes:
                may_write(roles[name], state, below)
        tables.may_look(roles["list_tables"])
        tables.may_read_metadata(roles["plan_table"])
        self._allow_scans(roles["plan_table"])
        tables.may_ask_optimizers(roles["begin_table"])
        tables.may_read_metadata(roles["athena_step"])
        allow(roles["athena_step"], ["athena:GetQueryResults"], [self._workgroup_arn])
        engines = json.dumps(self._config.table_engines)
        functions.by_name["plan_table"].add_environment("COMPACTOR_TABLE_ENGINES", engines)

    def _allow_scans(self, role: Role) -> None:
        """Allow reading how long the queries of the workgroups that rules name took."""
        request = self._config.tables_request
        rules = request.policies.rules if request is not None else ()
        actions = ["athena:ListQueryExecutions", "athena:BatchGetQueryExecution"]
        for name in sorted({rule.athena_workgroup for rule in rules if rule.athena_workgroup}):
            workgroup = self._arn("athena", "workgroup", name, ArnFormat.SLASH_RESOURCE_NAME)
            allow(role, actions, [workgroup])

    def _allow_queries(self, policy: iam.Policy) -> None:
        # Athena uses the rights of the role that starts a query.
        actions = ["StartQueryExecution", "StopQueryExecution", "GetQueryExecution"]
        allow(policy, [f"athena:{one}" for one in actions], [self._workgroup_arn])
        catalog = self._arn(
            "athena", "datacatalog", "AwsDataCatalog", ArnFormat.SLASH_RESOURCE_NAME
        )
        allow(policy, ["athena:GetDataCatalog"], [catalog])
        self._tables.may_rewrite(policy)
        self._tables.may_query(policy)
        answers = replace(self._state, prefix=f"{self._state.prefix}{ATHENA_RESULTS}")
        may_list(policy, answers)
        may_read(policy, answers)
        may_write(policy, answers)
        # Athena resumes and checks the uploads of its results (the managed policies
        # AmazonAthenaFullAccess and AWSQuicksightAthenaAccess have the same three rights).
        may_list_parts(policy, answers)
        may_list_uploads(policy, answers)
        buckets = {one.bucket.bucket_arn for one in (*self._tables.places, answers)}
        allow(policy, ["s3:GetBucketLocation"], sorted(buckets))
        allow(policy, ["lakeformation:GetDataAccess"], ["*"], wildcard=LAKE_FORMATION)

    @property
    def _workgroup_arn(self) -> str:
        return self._arn("athena", "workgroup", self._name, ArnFormat.SLASH_RESOURCE_NAME)

    def _arn(self, service: str, resource: str, name: str, shape: ArnFormat) -> str:
        return Stack.of(self).format_arn(
            service=service, resource=resource, resource_name=name, arn_format=shape
        )


def _arns(functions: FunctionSet) -> dict[str, str]:
    """Return name of a substitution -> ARN of its function."""
    return {name: functions.by_name[function].function_arn for name, function in _FUNCTIONS.items()}
