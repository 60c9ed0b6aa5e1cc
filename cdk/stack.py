"""The one stack: puts the parts together, and outputs where they are for the command line."""

from __future__ import annotations

import json
from typing import Any

from aws_cdk import App, CfnOutput, Stack

from cdk.config import MADE_DESTINATION, MADE_REGISTRY, MADE_SOURCE, Config
from cdk.functions import Functions
from cdk.ingest import Ingest
from cdk.maintained_tables import MaintainedTables
from cdk.maintenance import Maintenance
from cdk.monitoring import Monitoring
from cdk.registry import Registry
from cdk.schedule import Start
from cdk.spark import SparkStep
from cdk.standalone import Standalone
from cdk.storage import Storage
from cdk.workflow import Workflow
from compactor import __version__


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
            description="s3-compactor: rewrites small S3 objects into few large ones",
        )
        storage = Storage(self, config)
        functions = Functions(self, config, storage)
        start = Start(self, config)
        fields = _with_made_names(config, storage)
        run_input = self.to_json_string(fields)
        monitoring = Monitoring(self, config, functions, start.failed)
        if config.standalone:
            standalone = Standalone(self, functions, start.failed)
            start.starts_function(standalone.function, run_input)
            monitoring.watch_standalone(standalone.function)
        else:
            tables = MaintainedTables.of(self, config) if config.maintenance is not None else None
            spark = SparkStep(self, config, storage, tables)
            workflow = Workflow(self, config, storage, functions=functions, spark=spark)
            start.starts_workflow(workflow.machine, run_input)
            monitoring.watch_workflow(workflow.machine, workflow.log_group_name)
            self._tell("StateMachineArn", workflow.machine.state_machine_arn)
            if tables is not None:
                maintenance = Maintenance(
                    self, config, storage, functions=functions, spark=spark, tables=tables
                )
                monitoring.watch_tables(maintenance.machine)
                self._maintain(config, storage, maintenance, start)
            if storage.registry is not None:
                ingest = Ingest(
                    self,
                    config,
                    storage,
                    functions=functions,
                    machine=workflow.machine,
                    run_input=fields,
                )
                monitoring.watch_ingest(ingest)
                self._tell_ingest(ingest, storage.registry)
        self._tell_common(config, storage, functions, run_input)

    def _tell_ingest(self, ingest: Ingest, registry: Registry) -> None:
        self._tell("RegistryTable", registry.table.table_name)
        self._tell("EventsQueueUrl", ingest.queue.queue_url)
        self._tell("DeadLetterQueueUrl", ingest.dead_letters.queue_url)
        self._tell("Streams", ingest.streams)

    def _tell_common(
        self, config: Config, storage: Storage, functions: Functions, run_input: str
    ) -> None:
        self._tell("TargetBucketName", storage.destination.bucket.bucket_name)
        self._tell("StateUri", storage.state.uri)
        self._tell("DefaultInput", run_input)
        self._tell("DashboardName", config.name)
        self._tell("SpecVersion", __version__)
        self._tell("FunctionNames", json.dumps(dict(functions.names)))

    def _maintain(
        self, config: Config, storage: Storage, maintenance: Maintenance, start: Start
    ) -> None:
        """Say what maintenance is started with, and start it by its schedule."""
        given = {**(config.maintenance or {}), "s3_state_uri": storage.state.uri}
        tables_input = self.to_json_string(given)
        maintenance.starts(tables_input, start.failed)
        self._tell("TablesStateMachineArn", maintenance.machine.state_machine_arn)
        self._tell("TablesInput", tables_input)

    def _tell(self, name: str, value: str) -> None:
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
