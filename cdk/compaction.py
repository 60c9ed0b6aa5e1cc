"""The stack that compacts: storage, functions and their roles, the workflow, events, operation."""

from __future__ import annotations

import json
from typing import Any

from aws_cdk import Annotations, App, CfnOutput, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler_targets as targets
from aws_cdk import aws_stepfunctions as sfn

from cdk import REPOSITORY
from cdk import grants as may
from cdk.config import MADE_DESTINATION, MADE_REGISTRY, MADE_SOURCE, Deployment
from cdk.events import Events, Registry
from cdk.functions import Functions
from cdk.machines import Starts, allow_map_runs, make_machine, start_on_schedule
from cdk.monitoring import Monitoring
from cdk.spark import MayRun, Spark, without_spark
from cdk.standalone import StandaloneConstruct
from cdk.storage import SPARK_LOGS, Storage
from cdk.tables import OutputTable, ReaderTable
from compactor import __version__
from compactor.encoding.output_encoding import ASSUMED_RATIO, target_bytes
from compactor.log.identity import marker_keys, states_of_source
from compactor.model import Compression
from compactor.settings.layout import IDENTITY_NAME, PARTITIONS, READERS, RUNS, TABLE
from compactor.settings.settings import Settings
from compactor.sizes import MIB
from compactor_bundling.bundles import SCRIPT
from compactor_tables.measures import ICEBERG

_DEFINITION = REPOSITORY / "statemachine" / "compaction.asl.json"
_MAPS = {"Partitions": "runs/*/items.json", "CleanUps": "runs/*/clean-up.json"}
_RESULTS = "runs/*/results/*"
# "New AWS accounts have reduced concurrency and memory quotas" (Lambda quotas): their limit.
_NEW_ACCOUNTS_MB = 3_008
# Discovery holds the listing of one partition and the list of all partitions. A report holds a
# bounded part of the receipts, but parses all of them, which takes a whole processor. Planning a
# clean-up holds the list that it writes.
_DISCOVER_MB, _REPORT_MB, _OTHERS_MB = 1_769, 1_769, 1_024
# Lambda's limits of ephemeral storage ("Configure ephemeral storage for Lambda functions").
_LEAST_SCRATCH_MB, _MOST_SCRATCH_MB = 512, 10_240
# What workers write of the state: the log, receipts, and what is created once for all of them.
_PINNED = "parquet-schemas/*"
_WORK = (f"{PARTITIONS}*", f"{RUNS}*", f"{READERS}*", IDENTITY_NAME, _PINNED)
# Placeholder for a Spark setting if the job writes no table: one that Spark ignores.
_NO_TABLE = "spark.compactor.table=none"


class CompactionStack(Stack):
    """Compacts the sources of one deployment."""

    def __init__(self, scope: App, deployment: Deployment) -> None:
        about = "s3-compactor: rewrites small S3 objects into few large ones"
        super().__init__(scope, deployment.name, analytics_reporting=False, description=about)
        self._deployment = deployment
        self._storage = storage = Storage(self, deployment)
        key = storage.destination.key
        self._registry = Registry(self, key) if deployment.events is not None else None
        self._table = OutputTable.of(self, deployment, storage)
        self._readers = ReaderTable.of(self, deployment, storage)
        self._functions = functions = Functions(self, deployment, storage.encryption)
        if deployment.worker_memory_mb > _NEW_ACCOUNTS_MB:
            Annotations.of(self).add_info(
                f"Accounts that are new or little used may not have functions above"
                f" {_NEW_ACCOUNTS_MB:,} MB, and worker_memory_mb is"
                f" {deployment.worker_memory_mb:,}: should the deployment fail with"
                " \"'MemorySize' value failed to satisfy constraint\", leave it at its default."
            )
        self._monitoring = Monitoring(self, deployment.name, deployment.alarm_email)
        self._run_input = self._with_made_names()
        if deployment.standalone:
            self._run_alone()
        else:
            self._run_workflow()
        may.must_keep_logs(self, storage.state)
        self._output("TargetBucketName", storage.destination.bucket.bucket_name)
        self._output("DefaultInput", self.to_json_string(self._run_input))
        self._output("StateUri", storage.state.uri)
        self._output("DashboardName", deployment.name)
        self._output("SpecVersion", __version__)
        self._output("FunctionNames", json.dumps(functions.names))

    def _run_alone(self) -> None:
        """Add the standalone function and its schedule."""
        deployment, functions = self._deployment, self._functions
        self._add_standalone()
        alone = StandaloneConstruct(self, deployment, functions, self._run_input)
        self._monitoring.watch_standalone(alone, functions, deployment)

    def _run_workflow(self) -> None:
        """Add the functions, the state machine, and what starts it."""
        deployment, functions = self._deployment, self._functions
        self._add_discover()
        self._add_worker()
        if deployment.deletes:
            self._add_clean_up()
        self._add_report()
        machine = self._workflow()
        self._output("StateMachineArn", machine.state_machine_arn)
        failed = None
        if deployment.schedule is not None:
            role = may.own_role(self, "ScheduleRole", "scheduler.amazonaws.com")
            start = targets.StepFunctionsStartExecution
            run_input = self.to_json_string(self._run_input)
            starts = Starts(deployment.name, deployment.schedule, run_input, role)
            failed = start_on_schedule(self, starts, start, machine)
        self._monitoring.watch_workflow(machine, functions, deployment, failed)
        if self._registry is not None:
            events = Events(
                self,
                deployment,
                self._storage,
                registry=self._registry,
                functions=functions,
                machine=machine,
                run_input=self._run_input,
            )
            self._monitoring.watch_events(events, functions, deployment)
            self._output("RegistryTable", self._registry.table.table_name)
            self._output("EventsQueueArn", events.queue.queue_arn)
            self._output("DeadLetterQueueArn", events.dead_letters.queue_arn)
            self._output("Streams", events.streams)

    def _add_discover(self) -> None:
        """Add the function that checks a run's input and lists its partitions."""
        functions, storage, deployment = self._functions, self._storage, self._deployment
        knows = self._table is not None
        discover = functions.add("discover", _DISCOVER_MB, knows_table=knows)
        environment = functions.by_name["discover"].add_environment
        environment("COMPACTOR_SPARK", deployment.run.spark_engine)
        # What else this stack has states for; runs that want more are refused.
        environment("COMPACTOR_HERE", json.dumps(self._has()))
        # Columns are inferred from a sample of the sources.
        may.may_read(discover, storage.source)
        may.may_see_owners(discover, storage.source)
        # Discovery checks for outputs that were written with another layout than this run's.
        may.may_list(discover, storage.destination)
        may.may_read(discover, storage.state)
        may.may_write(discover, storage.state, f"{RUNS}*", IDENTITY_NAME, _PINNED)
        self._may_look_around(discover)
        if self._table is not None:
            # Discovery checks that the table can take the outputs before any are written.
            self._table.may_ask(discover)
        if self._registry is not None:
            self._registry.may_note_discovery(discover)

    def _add_worker(self) -> None:
        """Add the function that compacts partitions."""
        deployment = self._deployment
        scratch = scratch_mb(deployment.run)
        worker = self._functions.add(
            "compact_partition", deployment.worker_memory_mb, scratch_mb=scratch
        )
        self._may_compact(worker)
        if self._registry is not None:
            # With events, discovery leaves pending objects to this function.
            may.may_see_owners(worker, self._storage.source)

    def _add_report(self) -> None:
        """Add the functions that publish outputs to the table, and that report."""
        functions, storage = self._functions, self._storage
        report = functions.add("report", _REPORT_MB)
        may.may_read(report, storage.state)
        may.may_write(report, storage.state, f"{RUNS}*", "run-history.json")

        if self._table is not None:
            publish = functions.add("publish_table", _OTHERS_MB, knows_table=True)
            may.may_read(publish, storage.destination)
            may.may_read(publish, storage.state)
            may.may_write(publish, storage.state, f"{TABLE}*", f"{RUNS}*")
            self._table.may_publish(publish)

    def _add_clean_up(self) -> None:
        """Add the functions that find what is past retention and delete it."""
        functions, storage = self._functions, self._storage
        planner = functions.add("plan_clean_up", _OTHERS_MB)
        may.may_read(planner, storage.state)
        may.may_write(planner, storage.state, "runs/*/clean-up.json")
        may.may_delete(planner, storage.state, may.CHECKPOINTS)

        knows = self._table is not None
        cleaner = functions.add("clean_up", _OTHERS_MB, knows_table=knows)
        if self._table is not None:
            # Clean-up checks that published outputs are still in the table.
            self._table.may_ask(cleaner)
        if self._readers is not None:
            self._readers.may_ask(cleaner)
        may.may_list_uploads(cleaner, storage.destination)
        may.may_delete(cleaner, storage.source)
        # Sources that S3 did not delete are checked by HEAD: a missing one must be 404, not 403,
        # and S3 returns the checksum of an encrypted object only with its key.
        may.may_read(cleaner, storage.source)
        may.may_see_owners(cleaner, storage.source)
        may.may_read(cleaner, storage.state)
        may.may_read(cleaner, storage.destination)
        may.may_abort_uploads(cleaner, storage.destination)
        # Its records and receipts. Commits end in .json.gz, so these patterns do not match them
        # even if a partition is called cleaned/.
        own = ("partitions/*cleaned/*.json", "runs/*/clean-ups/*.json")
        may.may_write(cleaner, storage.state, *own)

    def _add_standalone(self) -> None:
        """Add the one function that does all of it."""
        functions, storage, deployment = self._functions, self._storage, self._deployment
        role = functions.add(
            "standalone", deployment.worker_memory_mb, scratch_mb=scratch_mb(deployment.run)
        )
        self._may_compact(role)
        may.may_write(role, storage.state, "run-history.json")
        may.may_see_owners(role, storage.source)
        self._may_look_around(role)
        may.may_list_uploads(role, storage.destination)
        if deployment.deletes:
            may.may_delete(role, storage.source)
            may.may_delete(role, storage.state, may.CHECKPOINTS)

    def _workflow(self) -> sfn.StateMachine:
        """Add the state machine, with Spark if the deployment has any."""
        deployment, storage, functions = self._deployment, self._storage, self._functions
        role = may.own_role(self, "WorkflowRole", "states.amazonaws.com")
        arns = {name: one.function_arn for name, one in functions.by_name.items()}
        # No run enters states whose function is not here (discover refuses it); any ARN fills in.
        invoked = {
            "".join(word.title() for word in name.split("_")) + "FunctionArn": arns.get(
                name, arns["report"]
            )
            for name in (
                *("discover", "compact_partition", "publish_table"),
                *("plan_clean_up", "clean_up", "report"),
            )
        }
        may.allow(role, ["lambda:InvokeFunction"], [*dict.fromkeys(invoked.values())])
        allow_map_runs(role, deployment.name, _MAPS, _RESULTS, storage.state)
        # Whether a worker left something to Spark.
        may.may_list(role, storage.state, "runs/*/oversized/")
        substitutions = {**without_spark(storage.state), "SparkTableConf": _NO_TABLE}
        if deployment.run.spark_engine != "none":
            rights: dict[str, MayRun] = {"runs": self._may_run}
            merges = self._table is not None and bool(deployment.run.upsert_key)
            if self._table is not None and merges:
                rights["tables"] = self._table.may_merge
            spark = Spark(
                self,
                deployment,
                script=SCRIPT,
                state=storage.state,
                encryption=storage.encryption,
                formats=(ICEBERG,) if merges else (),
                rights=rights,
            )
            spark.allow_workflow(role)
            substitutions |= spark.substitutions
            if merges:
                substitutions["SparkTableConf"] = f"spark.jars={spark.jars}"
        name = deployment.name
        machine = make_machine(self, name, _DEFINITION, role, {**invoked, **substitutions})
        # A machine that starts before it has its rights would fail.
        machine.node.add_dependency(role)
        return machine

    def _has(self) -> list[str]:
        """Return what a run may want, and this stack has."""
        return [
            name
            for name, there in (
                ("delete_after", self._deployment.deletes),
                ("table", self._table is not None),
            )
            if there
        ]

    def _may_compact(self, role: may.Role) -> None:
        """Allow reading sources and writing outputs and state, without deleting anything."""
        storage = self._storage
        may.may_read(role, storage.source)
        may.may_read(role, storage.destination)
        may.may_write(role, storage.destination)
        may.may_read(role, storage.state)
        may.may_write(role, storage.state, *_WORK)
        if self._registry is not None:
            self._registry.may_mark(role)
        if self._readers is not None:
            self._readers.may_switch(role)

    def _may_run(self, role: may.Role) -> None:
        """Allow what a worker may do, and what only Spark does."""
        self._may_compact(role)
        may.may_write(role, self._storage.state, f"{SPARK_LOGS}*")
        # The job looks for uploads that can no longer be completed.
        may.may_list_uploads(role, self._storage.destination)

    def _may_look_around(self, role: iam.Role) -> None:
        """Allow checking that the source is not the destination of another run."""
        source = self._storage.source
        may.may_look_for(role, source, marker_keys(states_of_source(source.prefix)))

    def _with_made_names(self) -> dict[str, Any]:
        """Return the input of runs, with the names that CloudFormation gives."""
        storage, values = self._storage, self._deployment.run_input
        names = {
            f"s3://{MADE_SOURCE}/": f"s3://{storage.source.bucket.bucket_name}/",
            f"s3://{MADE_DESTINATION}/": f"s3://{storage.destination.bucket.bucket_name}/",
        }
        if self._registry is not None:
            names[f"{MADE_REGISTRY}/"] = f"{self._registry.table.table_name}/"
        for made, called in names.items():
            for name, value in values.items():
                if isinstance(value, str):
                    values[name] = value.replace(made, called)
        return values

    def _output(self, name: str, value: str) -> None:
        CfnOutput(self, name, value=value)


def scratch_mb(run: Settings) -> int:
    """Return the size of a worker's ``/tmp``, which holds one output of rows before its upload.

    Should none of its records compress, the output is as large as they are.
    """
    needed = ASSUMED_RATIO * target_bytes(run, Compression.ZSTD) // MIB
    return min(max(needed, _LEAST_SCRATCH_MB), _MOST_SCRATCH_MB)
