"""Maintenance of tables: the second state machine, what it may do, and when it runs."""

from __future__ import annotations

import json
from typing import Any

from aws_cdk import ArnFormat, Duration, RemovalPolicy, Stack, TimeZone
from aws_cdk import aws_athena as athena
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk.checks import TABLES_HISTORY, TABLES_SUPERSEDED, acknowledge_wildcard
from cdk.config import Config
from cdk.functions import Functions, log_days
from cdk.grants import allow, may_delete, may_list, may_read, may_write, own_role
from cdk.latencies import may_read_latencies
from cdk.maintained_tables import MaintainedTables
from cdk.managed_rules import ACTIONS, managed_rules
from cdk.spark import SparkStep
from cdk.storage import Place, Storage
from cdk.table_optimizers import LAKE_FORMATION, TableOptimizers
from compactor_cli.local.tables_model import TABLES_SUBSTITUTIONS
from compactor_cli.runs import TABLES_LABEL
from compactor_dev import REPOSITORY

_DEFINITION = REPOSITORY / "statemachine" / "tables.asl.json"
_LIST, _RESULTS = "runs/*/tables.json", "runs/*/tables.json.results/*"
_RUN_IDS = "A run's records lie below its id, which is new each time."
_ANSWERS = "athena-results/"
_HISTORY = TABLES_HISTORY
# What a run's documents are, by the function that writes them.
_WRITES = {
    "list_tables": ("runs/*.json",),
    "plan_table": ("runs/*/tables/*.json", _HISTORY),
    "begin_table": ("tables/*/lease.json",),
    "athena_step": ("runs/*/tables/*.json",),
    "optimizers": ("runs/*/tables/*.json", "tables/*/optimizers.json"),
    "end_table": ("runs/*/tables/*.json", "tables/*/lease.json", _HISTORY),
    "report_tables": ("runs/*/tables-report.json",),
}
_RETRIES, _RETRY_HOURS = 3, 2


class Maintenance(Construct):
    """The state machine over tables, its schedule, workgroup and optimizers.

    Attributes:
        machine: named as the deployment is, with ``-tables`` behind it.
    """

    def __init__(
        self,
        scope: Construct,
        config: Config,
        storage: Storage,
        *,
        functions: Functions,
        spark: SparkStep,
        tables: MaintainedTables,
    ) -> None:
        super().__init__(scope, "Maintenance")
        self._config, self._state, self._tables = config, storage.state, tables
        self._name = f"{config.name}-tables"
        self.optimizers = TableOptimizers(self, config, tables)
        self._workgroup = self._made_workgroup()
        self._allow_functions(functions)
        role = own_role(self, "Role", "states.amazonaws.com", of_this_account=True)
        policy = iam.Policy(self, "Policy", roles=[role])
        allow(policy, ["lambda:InvokeFunction"], [*_arns(functions).values()])
        self._allow_map_runs(policy, storage.state)
        self._allow_managed_rules(policy)
        spark.allow_workflow(policy)
        self._allow_queries(policy)
        self.machine = self._made_machine(role, functions, spark)
        # Without its rights the machine would start and fail.
        self.machine.node.add_dependency(policy)

    def starts(self, run_input: str, failed: sqs.Queue) -> None:
        """Start it by its own schedule; what could not be started goes to the queue."""
        config = self._config
        role = own_role(self, "ScheduleRole", "scheduler.amazonaws.com", of_this_account=True)
        scheduler.Schedule(
            self,
            "Schedule",
            schedule_name=self._name,
            description="s3-compactor: starts maintenance of tables",
            schedule=scheduler.ScheduleExpression.expression(
                config.maintenance_schedule, TimeZone.of(config.schedule_time_zone)
            ),
            enabled=config.maintenance_schedule_enabled,
            target=targets.StepFunctionsStartExecution(
                self.machine,
                input=scheduler.ScheduleTargetInput.from_text(run_input),
                dead_letter_queue=failed,
                retry_attempts=_RETRIES,
                max_event_age=Duration.hours(_RETRY_HOURS),
                role=role,
            ),
        )

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
                    output_location=f"{self._state.uri}{_ANSWERS}",
                    encryption_configuration=group.EncryptionConfigurationProperty(**encryption),
                ),
            ),
        )

    def _made_machine(
        self, role: iam.Role, functions: Functions, spark: SparkStep
    ) -> sfn.StateMachine:
        log = logs.LogGroup(
            self,
            "Log",
            # Only this prefix is not counted in the resource policy of CloudWatch Logs.
            log_group_name=f"/aws/vendedlogs/states/{self._name}",
            retention=log_days(self._config.log_retention_days),
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge_wildcard(role, "*", "Log deliveries and X-Ray know no resources.")
        return sfn.StateMachine(
            self,
            "StateMachine",
            state_machine_name=self._name,
            comment="s3-compactor: maintains tables",
            definition_body=sfn.DefinitionBody.from_file(str(_DEFINITION)),
            definition_substitutions={
                **_arns(functions),
                **spark.tables_substitutions,
                "AthenaWorkgroup": self._workgroup.name,
            },
            role=role,
            logs=sfn.LogOptions(
                destination=log, level=sfn.LogLevel.ALL, include_execution_data=False
            ),
            tracing_enabled=True,
        )

    def _allow_functions(self, functions: Functions) -> None:
        roles, tables, state = functions.roles, self._tables, self._state
        for name, writes in _WRITES.items():
            # Whoever lists tables reads nothing, of the state or of a table.
            if name != "list_tables":
                may_read(roles[name], state)
            for below in writes:
                may_write(roles[name], state, below)
        tables.may_look(roles["list_tables"])
        tables.may_read_metadata(roles["plan_table"])
        # It sums up looks that lie back, and drops them.
        may_delete(roles["plan_table"], state, _HISTORY)
        may_read_latencies(roles["plan_table"], self._config)
        tables.may_ask_optimizers(roles["begin_table"])
        tables.may_read_metadata(roles["athena_step"])
        allow(roles["athena_step"], ["athena:GetQueryResults"], [self._workgroup_arn])
        if self._config.tags_superseded:
            tables.may_tag(roles["end_table"])
            may_write(roles["end_table"], state, TABLES_SUPERSEDED)
            may_delete(roles["end_table"], state, TABLES_SUPERSEDED)
        tables.may_set_optimizers(roles["optimizers"])
        optimizer = self.optimizers.role.role_arn
        conditions = {"StringEquals": {"iam:PassedToService": "glue.amazonaws.com"}}
        allow(roles["optimizers"], ["iam:PassRole"], [optimizer], conditions=conditions)
        functions.by_name["optimizers"].add_environment("OPTIMIZER_ROLE_ARN", optimizer)
        engines = json.dumps(self._config.table_engines)
        functions.by_name["plan_table"].add_environment("COMPACTOR_TABLE_ENGINES", engines)

    def _allow_queries(self, policy: iam.Policy) -> None:
        # Athena reads and writes with the rights of whoever starts a query.
        actions = ["StartQueryExecution", "StopQueryExecution", "GetQueryExecution"]
        allow(policy, [f"athena:{one}" for one in actions], [self._workgroup_arn])
        catalog = self._arn(
            "athena", "datacatalog", "AwsDataCatalog", ArnFormat.SLASH_RESOURCE_NAME
        )
        allow(policy, ["athena:GetDataCatalog"], [catalog])
        self._tables.may_rewrite(policy)
        answers = Place(self._state.bucket, f"{self._state.prefix}{_ANSWERS}", self._state.key)
        may_list(policy, answers)
        may_read(policy, answers)
        may_write(policy, answers)
        buckets = {one.bucket.bucket_arn for one in (*self._tables.places, answers)}
        allow(policy, ["s3:GetBucketLocation"], sorted(buckets))
        allow(policy, ["lakeformation:GetDataAccess"], ["*"], wildcard=LAKE_FORMATION)

    def _allow_managed_rules(self, policy: iam.Policy) -> None:
        rules = managed_rules(json.loads(_DEFINITION.read_text(encoding="utf-8")))
        arns = [self._arn("events", "rule", one, ArnFormat.SLASH_RESOURCE_NAME) for one in rules]
        allow(policy, ACTIONS, arns)

    def _allow_map_runs(self, policy: iam.Policy, state: Place) -> None:
        allow(policy, ["states:StartExecution"], [self._states("stateMachine", self._name)])
        allow(
            policy,
            ["states:DescribeExecution", "states:StopExecution"],
            [self._states("execution", f"{self._name}:*")],
            wildcard="Executions of this machine alone; Step Functions names them.",
        )
        allow(
            policy,
            ["states:RedriveExecution"],
            [self._states("execution", f"{self._name}/{TABLES_LABEL}:*")],
            wildcard="Children of its own Map Runs; Step Functions names them.",
        )
        allow(policy, ["s3:GetObject"], [state.objects(_LIST)], wildcard=_RUN_IDS)
        actions = ["PutObject", "GetObject", "ListMultipartUploadParts", "AbortMultipartUpload"]
        results = [state.objects(_RESULTS)]
        allow(policy, [f"s3:{one}" for one in actions], results, wildcard=_RUN_IDS)
        if state.key is not None:
            allow(policy, ["kms:GenerateDataKey", "kms:Decrypt"], [state.key.key_arn])

    @property
    def _workgroup_arn(self) -> str:
        return self._arn("athena", "workgroup", self._name, ArnFormat.SLASH_RESOURCE_NAME)

    def _states(self, resource: str, name: str) -> str:
        return self._arn("states", resource, name, ArnFormat.COLON_RESOURCE_NAME)

    def _arn(self, service: str, resource: str, name: str, shape: ArnFormat) -> str:
        return Stack.of(self).format_arn(
            service=service, resource=resource, resource_name=name, arn_format=shape
        )


def _arns(functions: Functions) -> dict[str, str]:
    """Name of a substitution -> the function's ARN."""
    return {
        name: functions.by_name[function].function_arn
        for name, function in TABLES_SUBSTITUTIONS.items()
    }
