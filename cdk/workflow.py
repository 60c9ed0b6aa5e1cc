"""The state machine: statemachine/compaction.asl.json with real ARNs, and its rights."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk import REPOSITORY
from cdk.config import Config
from cdk.functions import Functions
from cdk.grants import allow, own_role
from cdk.machines import Machine, MapRuns, allow_managed_rules, allow_map_runs, make_machine
from cdk.spark import SparkStep
from cdk.storage import Storage

_DEFINITION = REPOSITORY / "statemachine" / "compaction.asl.json"
_MAP_RUNS = MapRuns(
    labels=("Partitions", "CleanUps"),
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
# Only runs with a table enter this state; without a table any function fills the placeholder.
_PUBLISH, _NOT_ENTERED = "PublishTableFunctionArn", "report"


class Workflow(Construct):
    """The state machine.

    Attributes:
        machine: has the name of the deployment, so that its policy can refer to its executions.
        log_group_name: the log group of its events.
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
        # A machine that starts before it has its rights would fail.
        self.machine.node.add_dependency(policy)


def _arns(functions: Functions) -> dict[str, str]:
    """Return name of a substitution -> ARN of its function."""
    publishing = "publish_table" if "publish_table" in functions.by_name else _NOT_ENTERED
    wanted = {**_FUNCTIONS, _PUBLISH: publishing}
    return {name: functions.by_name[function].function_arn for name, function in wanted.items()}
