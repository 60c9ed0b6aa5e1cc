"""The one stack: assembles the parts, and outputs their names and ARNs for the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aws_cdk import App, CfnOutput, Stack

from cdk.config import MADE_DESTINATION, MADE_REGISTRY, MADE_SOURCE, Config
from cdk.functions import Functions
from cdk.ingest import Ingest
from cdk.maintained_tables import MaintainedTables, place_of_reports
from cdk.maintenance import Maintenance
from cdk.monitoring import Monitoring
from cdk.schedule import Start
from cdk.spark import SparkStep
from cdk.standalone import Standalone
from cdk.storage import Place, Storage
from cdk.workflow import Workflow
from compactor import __version__

# The stack's description, by Config.maintenance_alone.
_ABOUT = {
    False: "s3-compactor: rewrites small S3 objects into few large ones",
    True: "s3-compactor: maintains tables",
}


class CompactorStack(Stack):
    """Everything of one deployment.

    Args:
        scope: the app.
        config: what to deploy.
    """

    def __init__(self, scope: App, config: Config) -> None:
        super().__init__(
            scope,
            config.name,
            analytics_reporting=False,
            description=_ABOUT[config.maintenance_alone],
        )
        self._config = config
        self._start = Start(self, config)
        self._monitoring = Monitoring(self, config, self._start.failed)
        self._names: dict[str, str] = {}
        storage = None if config.maintenance_alone else Storage(self, config)
        state = place_of_reports(self, config) if storage is None else storage.state
        tables = MaintainedTables.of(self, config) if config.maintenance is not None else None
        if storage is not None and config.standalone:
            self._compact_alone(storage)
        else:
            spark = SparkStep(self, config, state, storage=storage, tables=tables)
            if storage is not None:
                self._compact(storage, spark)
            if tables is not None:
                self._maintain(state, tables, spark)
        self._output("StateUri", state.uri)
        self._output("DashboardName", config.name)
        self._output("SpecVersion", __version__)
        self._output("FunctionNames", json.dumps(self._names))

    def _compact(self, storage: Storage, spark: SparkStep) -> None:
        """Add the workflow and its triggers."""
        config, functions = self._config, self._functions(storage)
        workflow = Workflow(self, config, storage, functions=functions, spark=spark)
        fields = _with_made_names(config, storage)
        self._start.starts_workflow(workflow.machine, self._output_input(fields))
        self._monitoring.watch_workflow(workflow.machine, workflow.log_group_name, functions)
        self._output("StateMachineArn", workflow.machine.state_machine_arn)
        if storage.registry is not None:
            ingest = Ingest(
                self,
                config,
                storage,
                functions=functions,
                machine=workflow.machine,
                run_input=fields,
            )
            self._monitoring.watch_ingest(ingest, functions)
            self._output("RegistryTable", storage.registry.table.table_name)
            self._output("EventsQueueArn", ingest.queue.queue_arn)
            self._output("DeadLetterQueueArn", ingest.dead_letters.queue_arn)
            self._output("Streams", ingest.streams)

    def _compact_alone(self, storage: Storage) -> None:
        """Add the standalone function and its schedule."""
        functions = self._functions(storage)
        function = Standalone(self, functions, self._start.failed).function
        fields = _with_made_names(self._config, storage)
        self._start.starts_function(function, self._output_input(fields))
        self._monitoring.watch_standalone(function, functions)

    def _functions(self, storage: Storage) -> Functions:
        functions = Functions(self, self._config, storage)
        self._names |= functions.names
        self._output("TargetBucketName", storage.destination.bucket.bucket_name)
        return functions

    def _output_input(self, fields: Mapping[str, Any]) -> str:
        run_input = self.to_json_string(fields)
        self._output("DefaultInput", run_input)
        return run_input

    def _maintain(self, state: Place, tables: MaintainedTables, spark: SparkStep) -> None:
        """Add the maintenance of tables and its schedule."""
        maintenance = Maintenance(self, self._config, state, spark=spark, tables=tables)
        self._names |= maintenance.functions.names
        given = {**(self._config.maintenance or {}), "s3_state_uri": state.uri}
        tables_input = self.to_json_string(given)
        maintenance.starts(tables_input, self._start.failed)
        self._monitoring.watch_tables(maintenance.machine, maintenance.functions)
        self._output("TablesStateMachineArn", maintenance.machine.state_machine_arn)
        self._output("TablesInput", tables_input)

    def _output(self, name: str, value: str) -> None:
        CfnOutput(self, name, value=value)


def _with_made_names(config: Config, storage: Storage) -> dict[str, Any]:
    names = {
        MADE_SOURCE: storage.source.bucket.bucket_name,
        MADE_DESTINATION: storage.destination.bucket.bucket_name,
    }
    values = config.run_input()
    for field in ("s3_source_uri", "s3_destination_uri", "s3_state_uri"):
        for made, name in names.items():
            if field in values:
                values[field] = values[field].replace(f"s3://{made}/", f"s3://{name}/")
    if storage.registry is not None:
        table = storage.registry.table.table_name
        values["listing"] = values["listing"].replace(f"{MADE_REGISTRY}/", f"{table}/")
    return values
