"""Maintenance of tables on this machine: one after another, by local Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from compactor.clock import SystemClock, instant
from compactor.prices import prices_for
from compactor.s3.store import S3Store, make_client
from compactor.settings.tables import TableAddress, parse_table
from compactor_cli.console import print_note, progress
from compactor_cli.machine.environment import engine_environment, opened_log
from compactor_cli.machine.spark_jars import table_packages
from compactor_cli.machine.spark_job import LocalSpark, order_arguments
from compactor_tables.aws.glue_catalog import GlueCatalog
from compactor_tables.aws.glue_tables import GlueTables
from compactor_tables.costs import SPARK
from compactor_tables.engine_choice import NONE
from compactor_tables.maintenance_report import TablesReport, report_on
from compactor_tables.request import MaintenanceRequest
from compactor_tables.table_discovery import find_tables
from compactor_tables.table_run import TableRun
from compactor_tables.worklist import write_worklist


def maintain_here(
    document: Mapping[str, Any],
    request: MaintenanceRequest,
    run_id: str,
    *,
    endpoint_url: str | None = None,
    log: Path | None = None,
) -> TablesReport:
    """Maintain the tables of a request, and return the report.

    Args:
        document: the request as it was received.
        request: the same, checked.
        run_id: of the run; that of a stopped run resumes it.
        endpoint_url: None for AWS.
        log: file for what Spark prints; None discards it.

    Raises:
        InvalidInput: the tables cannot be looked for.
        TransientStoreError: a service did not answer.
    """
    environment = engine_environment(table_packages(_kinds(request)), endpoint_url)
    store, clock = S3Store(make_client(endpoint_url)), SystemClock()
    started_at = instant(clock.now())
    with progress("looking for tables"):
        tables = find_tables(request, store, GlueCatalog())
    for name in tables.unnamed:
        print_note(f"skipped {name}: its name cannot be written as a table address")
    write_worklist(request, document, run_id, tables.tables, store=store)
    with opened_log(log) as output, progress("maintaining tables", len(tables.tables)) as bar:
        spark = LocalSpark(environment, output)
        for number, table in enumerate(tables.tables):
            bar.show(number, len(tables.tables), table.text)
            run = TableRun(run_id, table, request.state, store, clock)
            _maintain(run, request, environment["AWS_REGION"], spark)
    return report_on(run_id, started_at, "", state=request.state, store=store)


def _maintain(run: TableRun, request: MaintenanceRequest, region: str, spark: LocalSpark) -> None:
    """Maintain one table, and store its outcome; a failure ends no other table."""
    plan: Mapping[str, Any] | None = None
    failure: Mapping[str, str] | None = None
    try:
        plan, _ = run.plan(request, [SPARK], prices_for(region))
        if plan["engine"] != NONE:
            plan = run.begin(
                plan,
                dry_run=request.dry_run,
                optimizers_on=lambda table: GlueTables().optimizers_on(table),
            )
        if plan["engine"] != NONE:
            arguments = order_arguments(run.run_id, plan["order"]["uri"])
            fault = spark.submit(arguments, lambda line: None)
            failure = {"Error": "SparkFailed", "Cause": fault} if fault else None
    except Exception as error:
        failure = {"Error": type(error).__name__, "Cause": str(error)}
    run.end(plan, failure)


def _kinds(request: MaintenanceRequest) -> Iterable[TableAddress]:
    """Yield a table of each possible kind, because each needs other Spark jars."""
    yield from (parse_table(one) for one in request.tables)
    if request.glue_tables:
        yield TableAddress("glue", name=("any", "table"))
    if request.delta_prefixes:
        yield TableAddress("delta", request.delta_prefixes[0])
