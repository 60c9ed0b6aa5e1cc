"""The stack that maintains tables that others write: Athena, Spark and Glue's optimizers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from aws_cdk import App, Aws, CfnOutput, Stack
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_stepfunctions as sfn

from cdk import REPOSITORY
from cdk import grants as may
from cdk.config import Deployment, Maintenance
from cdk.functions import Functions
from cdk.machines import Starts, allow_map_runs, arn_of, make_machine, start_on_schedule
from cdk.monitoring import Monitoring
from cdk.spark import Spark, without_spark
from cdk.storage import ATHENA_RESULTS, SPARK_LOGS, Buckets, encryption_of
from cdk.tables import glue_arns
from compactor import __version__
from compactor.settings.tables import parse_table
from compactor.settings.uris import S3Uri
from compactor_bundling.bundles import SCRIPT
from compactor_tables.policies import Rule

_DEFINITION = REPOSITORY / "statemachine" / "tables.asl.json"
_MAPS, _RESULTS = {"Tables": "runs/*/tables.json"}, "runs/*/tables.json.results/*"
# The tasks of the state machine that run Spark, by its kind.
_SPARK_TASKS = {"serverless": "emr_serverless", "cluster": "cluster"}
# Memory by function, and the documents of the state that it writes. A plan holds every file that a
# table's metadata names, some 300 bytes each.
_FUNCTIONS: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "list_tables": (512, ("runs/*.json",)),
    "plan_table": (3_008, ("runs/*/tables/*.json", "tables/*/lease.json")),
    "athena_step": (1_024, ("runs/*/tables/*.json",)),
    "end_table": (512, ("runs/*/tables/*.json", "tables/*/lease.json")),
    "report_tables": (1_024, ("runs/*/tables-report.json",)),
}
_PATTERNS = "Patterns of the configuration say which tables; which there are is known to a run."
_LAKE_FORMATION = "Lake Formation knows no resources for it; its grants bound what it gives."
# The optimizers' log groups ("Table optimizers" in the Glue guide).
_OPTIMIZER_LOGS = ("iceberg-compaction", "iceberg-retention", "iceberg-orphan-file-deletion")


class MaintenanceStack(Stack):
    """Maintains the tables of one deployment."""

    def __init__(self, scope: App, deployment: Deployment, about: Maintenance) -> None:
        name = f"{deployment.name}-tables"
        super().__init__(
            scope, name, analytics_reporting=False, description="s3-compactor: maintains tables"
        )
        self._deployment, self._about = deployment, about
        buckets = Buckets(self, deployment)
        # A state machine can only use a state in its own account.
        state = buckets.place(about.request.state, "State", deployment.keys.destination)
        self._state = replace(state, is_ours=True)
        self._places = [
            buckets.place(S3Uri.parse("locations", uri), f"Tables{number}", about.kms_key)
            for number, uri in enumerate(about.locations)
        ]
        named = sorted({*_named(about)})
        self._tables = glue_arns(self, named) if named else ()
        self._workgroup = arn_of(self, "athena", "workgroup", name, "/")
        self._make_workgroup(name)
        self._functions = functions = self._make_functions()
        machine = self._make_machine(name)
        tables_input = self.to_json_string(about.job)
        failed = None
        if about.schedule is not None:
            role = may.own_role(self, "ScheduleRole", "scheduler.amazonaws.com")
            starts = Starts(name, about.schedule, tables_input, role)
            start = targets.StepFunctionsStartExecution
            failed = start_on_schedule(self, starts, start, machine)
        if about.glue_optimizers:
            self._make_optimizers()
        monitoring = Monitoring(self, name, deployment.alarm_email)
        monitoring.watch_tables(machine, functions, deployment, failed)
        for output, value in (
            ("TablesStateMachineArn", machine.state_machine_arn),
            ("TablesInput", tables_input),
            ("StateUri", self._state.uri),
            ("DashboardName", name),
            ("SpecVersion", __version__),
            ("FunctionNames", json.dumps(functions.names)),
        ):
            CfnOutput(self, output, value=value)

    def _make_functions(self) -> Functions:
        """Add the functions, and the rights of each."""
        state, deployment = self._state, self._deployment
        handlers = "compactor_tables.handlers"
        encryption = encryption_of(deployment, [state])
        functions = Functions(self, deployment, encryption, handlers=handlers)
        for name, (memory_mb, written) in _FUNCTIONS.items():
            knows = name in ("plan_table", "athena_step")
            role = functions.add(name, memory_mb, knows_table=knows)
            # The function that lists tables reads neither a table nor a document of the state; it
            # checks whose bucket this is.
            (may.may_list if name == "list_tables" else may.may_read)(role, state)
            may.may_write(role, state, *written)
        roles = functions.roles
        # Glue lists databases and tables as a whole: SECURITY.md says so.
        everywhere = glue_arns(self, [("*", "*")]) if self._tables else ()
        self._may_ask(roles["list_tables"], ["GetDatabases", "GetTables"], everywhere)
        for place in self._places:
            may.may_list(roles["list_tables"], place)
        for name in ("plan_table", "athena_step"):
            # Metadata, and the data files that are stored next to it.
            self._may_ask(roles[name], ["GetTable"])
            for place in self._places:
                may.may_read(roles[name], place)
        self._may_ask(roles["plan_table"], ["GetTableOptimizer"])
        may.allow(roles["athena_step"], ["athena:GetQueryResults"], [self._workgroup])
        # How long queries took is read of the workgroups that rules name.
        rules = self._about.request.policies.rules
        listing = ["athena:ListQueryExecutions", "athena:BatchGetQueryExecution"]
        for group in sorted({rule.athena_workgroup for rule in rules if rule.athena_workgroup}):
            arn = arn_of(self, "athena", "workgroup", group, "/")
            may.allow(roles["plan_table"], listing, [arn])
        tasks = {"athena": "athena"}
        if deployment.spark.kind != "none":
            tasks["spark"] = _SPARK_TASKS[deployment.spark.kind]
        plan = functions.by_name["plan_table"]
        plan.add_environment("COMPACTOR_TABLE_ENGINES", json.dumps(tasks))
        return functions

    def _make_machine(self, name: str) -> sfn.StateMachine:
        """Add the state machine, which runs Athena's queries by its own role."""
        role = may.own_role(self, "WorkflowRole", "states.amazonaws.com")
        invoked = {
            "".join(word.title() for word in handler.split("_")) + "FunctionArn": one.function_arn
            for handler, one in self._functions.by_name.items()
        }
        may.allow(role, ["lambda:InvokeFunction"], [*invoked.values()])
        allow_map_runs(role, name, _MAPS, _RESULTS, self._state)
        self._allow_queries(role)
        spark = self._deployment.spark
        substitutions = {
            **without_spark(self._state),
            "TableJars": "not-deployed",
            "EmrClusterId": spark.cluster_id or "not-deployed",
            "AthenaWorkgroup": name,
        }
        if spark.kind != "none":
            others = self._places[0].key
            jobs = Spark(
                self,
                self._deployment,
                script=SCRIPT.with_name("maintain_tables.py"),
                state=self._state,
                encryption=encryption_of(self._deployment, (*self._places, self._state), others),
                formats=self._about.formats,
                rights={"maintenance": self._may_maintain},
            )
            jobs.allow_workflow(role)
            substitutions |= {**jobs.substitutions, "TableJars": jobs.jars}
        substitutions["MaintainScriptUri"] = substitutions.pop("SparkScriptUri")
        machine = make_machine(self, name, _DEFINITION, role, {**invoked, **substitutions})
        # A machine that starts before it has its rights would fail.
        machine.node.add_dependency(role)
        return machine

    def _make_workgroup(self, name: str) -> None:
        key = self._state.key
        encryption: dict[str, Any] = {"encryption_option": "SSE_S3"}
        if key is not None:
            encryption = {"encryption_option": "SSE_KMS", "kms_key": key.key_arn}
        group = athena.CfnWorkGroup
        group(
            self,
            "Workgroup",
            name=name,
            description=f"{self._deployment.name}: OPTIMIZE and VACUUM",
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

    def _make_optimizers(self) -> None:
        """Add an optimizer of each kind for the tables of ``glue_optimizers``, with one role."""
        role = may.own_role(self, "OptimizersRole", "glue.amazonaws.com")
        self._may_rewrite(role)
        may.allow(role, ["lakeformation:GetDataAccess"], ["*"], wildcard=_LAKE_FORMATION)
        groups = [
            arn_of(self, "logs", "log-group", f"/aws-glue/{one}/logs:*") for one in _OPTIMIZER_LOGS
        ]
        writing = [f"logs:{one}" for one in ("CreateLogGroup", "CreateLogStream", "PutLogEvents")]
        may.allow(role, writing, groups, wildcard="Glue names the streams of its optimizers.")
        for number, text in enumerate(self._about.glue_optimizers):
            for kind, asked in _optimizers(self._about.request.policies.of(text).rule).items():
                self._make_optimizer(f"{kind}{number}", text, asked, role)

    def _make_optimizer(
        self, ident: str, text: str, asked: Mapping[str, Any], role: iam.Role
    ) -> None:
        database, name = parse_table(text).name
        kind, configuration = asked["type"], asked["configuration"]
        enabled = glue.CfnTableOptimizer.TableOptimizerConfigurationProperty(
            enabled=True, role_arn=role.role_arn
        )
        made = glue.CfnTableOptimizer(
            self,
            ident,
            catalog_id=Aws.ACCOUNT_ID,
            database_name=database,
            table_name=name,
            type=kind,
            table_optimizer_configuration=enabled,
        )
        # CDK's own conversion loses the names in nested documents.
        document = {"RoleArn": role.role_arn, "Enabled": True, **configuration}
        made.add_property_override("TableOptimizerConfiguration", document)
        # Runs fail until the role has its rights, and after four failures Glue gives up.
        made.node.add_dependency(role)

    def _allow_queries(self, role: iam.Role) -> None:
        """Allow OPTIMIZE and VACUUM: Athena uses the rights of the role that starts a query.

        It looks up the database ``default`` first, and lists databases, tables and partitions
        ("Configure access to databases and tables in the AWS Glue Data Catalog" in its user guide,
        ``athena/latest/ug/fine-grained-access-to-glue-resources.html``). CreateDatabase, which is
        in the guide's examples, is only for making ``default``.
        """
        queries = ("StartQueryExecution", "StopQueryExecution", "GetQueryExecution")
        may.allow(role, [f"athena:{one}" for one in queries], [self._workgroup])
        catalog = arn_of(self, "athena", "datacatalog", "AwsDataCatalog", "/")
        may.allow(role, ["athena:GetDataCatalog"], [catalog])
        self._may_rewrite(role)
        looks = ("GetDatabases", "GetTables", "GetPartition", "GetPartitions", "BatchGetPartition")
        self._may_ask(role, looks)
        default = glue_arns(self, [("default", "*")])[:2] if self._tables else ()
        self._may_ask(role, ["GetDatabase", "GetDatabases"], default)
        answers = replace(self._state, prefix=f"{self._state.prefix}{ATHENA_RESULTS}")
        may.may_list(role, answers)
        may.may_write(role, answers)
        # Athena resumes and checks the uploads of its results (the managed policies
        # AmazonAthenaFullAccess and AWSQuicksightAthenaAccess have the same three rights).
        may.may_use_results(role, answers, "*")
        may.may_list_uploads(role, answers)
        arns = {one.bucket.bucket_arn for one in (*self._places, answers)}
        may.allow(role, ["s3:GetBucketLocation"], sorted(arns))
        may.allow(role, ["lakeformation:GetDataAccess"], ["*"], wildcard=_LAKE_FORMATION)

    def _may_maintain(self, role: may.Role) -> None:
        """Allow what a Spark job does: it reads its order, rewrites tables, and leaves receipts."""
        may.may_read(role, self._state)
        may.may_write(role, self._state, "runs/*/tables/*.json", f"{SPARK_LOGS}*")
        self._may_rewrite(role)

    def _may_rewrite(self, role: may.Role) -> None:
        """Allow committing to tables, writing their files, and deleting unreferenced ones."""
        self._may_ask(role, ["GetDatabase", "GetTable", "UpdateTable"])
        for place in self._places:
            may.may_read(role, place)
            may.may_write(role, place)
            # Without this right VACUUM succeeds but deletes nothing.
            may.may_delete(role, place)

    def _may_ask(
        self, role: may.Role, actions: Sequence[str], arns: Sequence[str] | None = None
    ) -> None:
        resources = self._tables if arns is None else arns
        if resources:
            names = [f"glue:{one}" for one in actions]
            may.allow(role, names, resources, wildcard=_PATTERNS)


def _named(about: Maintenance) -> Iterator[tuple[str, str]]:
    """Yield the database and table of each pattern and address; ``*`` matches anything."""
    for pattern in about.request.glue_tables:
        database, _, table = pattern.partition(".")
        yield database, table or "*"
    for address in map(parse_table, (*about.request.tables, *about.glue_optimizers)):
        if address.kind == "glue":
            yield address.name[0], address.name[1]


def _optimizers(rule: Rule) -> dict[str, dict[str, Any]]:
    """Return what a rule asks of each type of optimizer, as CloudFormation's properties."""
    strategy = "sort" if rule.sort else "z-order" if rule.zorder else "binpack"
    kept_days = _days(rule.keep_days)
    properties: dict[str, tuple[str, dict[str, Any]]] = {
        "Compaction": ("compaction", {"Strategy": strategy, "MinInputFiles": rule.min_files}),
        "Retention": (
            "retention",
            {
                "SnapshotRetentionPeriodInDays": kept_days,
                "NumberOfSnapshotsToRetain": rule.keep_versions,
                "CleanExpiredFiles": True,
            },
        ),
        "OrphanFileDeletion": (
            "orphan_file_deletion",
            {"OrphanFileRetentionPeriodInDays": _days(rule.orphan_days)},
        ),
    }
    return {
        name: {
            "type": kind,
            "configuration": {f"{name}Configuration": {"IcebergConfiguration": iceberg}},
        }
        for name, (kind, iceberg) in properties.items()
    }


def _days(days: float) -> int:
    return max(1, math.ceil(days))
