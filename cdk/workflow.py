"""The state machine: statemachine/compaction.asl.json with real ARNs, and what it may do."""

from __future__ import annotations

import json

from aws_cdk import ArnFormat, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from cdk.checks import acknowledge_wildcard
from cdk.config import Config
from cdk.functions import Functions, log_days
from cdk.grants import allow, own_role
from cdk.managed_rules import ACTIONS, managed_rules
from cdk.spark import SparkStep
from cdk.storage import Place, Storage
from compactor_cli.runs import CLEAN_UPS_LABEL, PARTITIONS_LABEL
from compactor_dev import REPOSITORY

_DEFINITION = REPOSITORY / "statemachine" / "compaction.asl.json"
# Labels of the Distributed Maps, which are part of their executions' names -> the list of each.
_LISTS = {PARTITIONS_LABEL: "items.json", CLEAN_UPS_LABEL: "clean-up.json"}
_FUNCTIONS = {
    "DiscoverFunctionArn": "discover",
    "CompactPartitionFunctionArn": "compact_partition",
    "PlanCleanUpFunctionArn": "plan_clean_up",
    "CleanUpFunctionArn": "clean_up",
    "ReportFunctionArn": "report",
}
# Its state is entered by runs with a table alone; without one any function stands for it.
_PUBLISH, _NOT_ENTERED = "PublishTableFunctionArn", "report"
_RUN_IDS = "A run's records lie below its id, which is new each time."


class Workflow(Construct):
    """The state machine.

    Attributes:
        machine: named as the deployment is, so that its policy can speak of its executions.
        log_group_name: where its events are logged.
    """

    def __init__(
        self,
        scope: Construct,
        config: Config,
        storage: Storage,
        *,
        functions: Functions,
        spark: SparkStep,
    ) -> None:
        super().__init__(scope, "Workflow")
        self._config = config
        # Only this prefix is not counted in the resource policy of CloudWatch Logs.
        self.log_group_name = f"/aws/vendedlogs/states/{config.name}"
        role = own_role(self, "Role", "states.amazonaws.com", of_this_account=True)
        policy = iam.Policy(self, "Policy", roles=[role])
        self._allow_steps(policy, functions)
        self._allow_map_runs(policy, storage.state)
        self._allow_managed_rules(policy)
        spark.allow_workflow(policy)
        self.machine = self._machine(role, functions, spark)
        # Without its rights the machine would start and fail.
        self.machine.node.add_dependency(policy)

    def _machine(self, role: iam.Role, functions: Functions, spark: SparkStep) -> sfn.StateMachine:
        log = logs.LogGroup(
            self,
            "Log",
            log_group_name=self.log_group_name,
            retention=log_days(self._config.log_retention_days),
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge_wildcard(role, "*", "Log deliveries and X-Ray know no resources.")
        return sfn.StateMachine(
            self,
            "StateMachine",
            state_machine_name=self._config.name,
            comment="s3-compactor: rewrites small S3 objects into few large ones",
            definition_body=sfn.DefinitionBody.from_file(str(_DEFINITION)),
            definition_substitutions={**_arns(functions), **spark.substitutions},
            role=role,
            logs=sfn.LogOptions(
                destination=log, level=sfn.LogLevel.ALL, include_execution_data=False
            ),
            tracing_enabled=True,
        )

    def _allow_steps(self, policy: iam.Policy, functions: Functions) -> None:
        arns = dict.fromkeys(_arns(functions).values())
        allow(policy, ["lambda:InvokeFunction"], list(arns))

    def _allow_managed_rules(self, policy: iam.Policy) -> None:
        rules = managed_rules(json.loads(_DEFINITION.read_text(encoding="utf-8")))
        format_arn = Stack.of(self).format_arn
        arns = [format_arn(service="events", resource="rule", resource_name=one) for one in rules]
        allow(policy, ACTIONS, arns)

    def _allow_map_runs(self, policy: iam.Policy, state: Place) -> None:
        allow(policy, ["states:StartExecution"], [self._arn("stateMachine", self._config.name)])
        execution = self._arn("execution", f"{self._config.name}:*")
        allow(
            policy,
            ["states:DescribeExecution", "states:StopExecution"],
            [execution],
            wildcard="Executions of this machine alone; Step Functions names them.",
        )
        allow(
            policy,
            ["states:RedriveExecution"],
            [self._arn("execution", f"{self._config.name}/{label}:*") for label in _LISTS],
            wildcard="Children of its own Map Runs; Step Functions names them.",
        )
        lists = [state.objects(f"runs/*/{name}") for name in _LISTS.values()]
        allow(policy, ["s3:GetObject"], lists, wildcard=_RUN_IDS)
        allow(
            policy,
            [
                "s3:PutObject",
                "s3:GetObject",
                "s3:ListMultipartUploadParts",
                "s3:AbortMultipartUpload",
            ],
            [state.objects("runs/*/results/*")],
            wildcard=_RUN_IDS,
        )
        if state.key is not None:
            allow(policy, ["kms:GenerateDataKey", "kms:Decrypt"], [state.key.key_arn])

    def _arn(self, resource: str, name: str) -> str:
        return Stack.of(self).format_arn(
            service="states",
            resource=resource,
            resource_name=name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )


def _arns(functions: Functions) -> dict[str, str]:
    """Name of a substitution -> the function's ARN."""
    publishing = "publish_table" if "publish_table" in functions.by_name else _NOT_ENTERED
    wanted = {**_FUNCTIONS, _PUBLISH: publishing}
    return {name: functions.by_name[function].function_arn for name, function in wanted.items()}
