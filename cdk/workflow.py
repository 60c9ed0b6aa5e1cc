"""The state machine: statemachine/compaction.asl.json with real ARNs, and what it may do."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk.config import Config
from cdk.functions import Functions
from cdk.grants import allow, own_role
from cdk.machines import Machine, MapRuns, allow_managed_rules, allow_map_runs, make_machine
from cdk.spark import SparkStep
from cdk.storage import Storage
from compactor_cli.runs import CLEAN_UPS_LABEL, PARTITIONS_LABEL
from compactor_dev import REPOSITORY

_DEFINITION = REPOSITORY / "statemachine" / "compaction.asl.json"
_MAP_RUNS = MapRuns(
    labels=(PARTITIONS_LABEL, CLEAN_UPS_LABEL),
    lists=("runs/*/items.json", "runs/*/clean-up.json"),
    results="runs/*/results/*",
)
_FUNCTIONS = {
    "DiscoverFunctionArn": "discover",
    "CompactPartitionFunctionArn": "compact_partition",
    "PlanCleanUpFunctionArn": "plan_clean_up",
    "CleanUpFunctionArn": "clean_up",
    "ReportFunctionArn": "report",
}
# Its state is entered by runs with a table alone; without one any function stands for it.
_PUBLISH, _NOT_ENTERED = "PublishTableFunctionArn", "report"


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
        about = Machine(
            config.name,
            "s3-compactor: rewrites small S3 objects into few large ones",
            _DEFINITION,
        )
        self.log_group_name = about.log_group_name
        role = own_role(self, "Role", "states.amazonaws.com", of_this_account=True)
        policy = iam.Policy(self, "Policy", roles=[role])
        allow(policy, ["lambda:InvokeFunction"], [*dict.fromkeys(_arns(functions).values())])
        allow_map_runs(policy, about, _MAP_RUNS, storage.state)
        allow_managed_rules(policy, about)
        spark.allow_workflow(policy)
        self.machine = make_machine(
            self,
            about,
            role,
            {**_arns(functions), **spark.substitutions},
            log_retention_days=config.log_retention_days,
        )
        # Without its rights the machine would start and fail.
        self.machine.node.add_dependency(policy)


def _arns(functions: Functions) -> dict[str, str]:
    """Name of a substitution -> the function's ARN."""
    publishing = "publish_table" if "publish_table" in functions.by_name else _NOT_ENTERED
    wanted = {**_FUNCTIONS, _PUBLISH: publishing}
    return {name: functions.by_name[function].function_arn for name, function in wanted.items()}
