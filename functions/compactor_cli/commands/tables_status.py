"""``compactor tables status``: shows the state of a maintenance run, from its documents on S3."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from compactor.clock import SystemClock
from compactor.errors import InvalidInput, ObjectMissing
from compactor.layout import RUNS
from compactor.model import is_run_id
from compactor.ports import ObjectStore
from compactor.settings.tables import parse_table
from compactor.settings.uris import S3Uri
from compactor.sizes import plural
from compactor_cli.commands import options
from compactor_cli.commands.failures import EXIT_FAILED, Failure
from compactor_cli.commands.store import open_store
from compactor_cli.commands.tables_shown import report_document, show_report
from compactor_cli.console import print_line, progress
from compactor_cli.deployed import executions
from compactor_cli.deployed.aws import Aws
from compactor_cli.deployed.executions import Execution
from compactor_cli.deployed.stack import find_stack
from compactor_tables import document_keys as places
from compactor_tables.lease import Lease, Leases
from compactor_tables.maintenance_report import TablesReport, listed_tables, read_report
from compactor_tables.outcomes import Outcome, read_outcome

# Compaction runs share the prefix with maintenance runs; only this many are searched.
_LOOKED_AT = 200
_SHOWN_LEASES = 20


@dataclass(frozen=True, slots=True)
class Standing:
    """The state of a run, from its documents.

    Attributes:
        ended: outcomes of the finished tables.
        held: leases of the tables that this run works on.
        report: None before its end.
        execution: of a deployed run.
    """

    run_id: str
    tables: int
    ended: list[Outcome]
    held: list[Lease]
    report: TablesReport | None
    execution: Execution | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the state for JSON."""
        return {
            "run_id": self.run_id,
            "tables": self.tables,
            "ended": [one.table for one in self.ended],
            "failed": [one.table for one in self.ended if one.status == "failed"],
            "working_on": [msgspec.to_builtins(one) for one in self.held],
            "report": report_document(self.report),
            "execution": self.execution.to_dict() if self.execution else None,
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, and where its documents are."""
    parser.add_argument(
        "run_id", metavar="RUN", nargs="?", help="the run id (by default the last run)"
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--state-uri", metavar="URI", help="state prefix of the run")
    where.add_argument("--stack", metavar="NAME", help="CloudFormation stack that ran it")
    parser.add_argument("--region", help="region of the stack (by default as boto3 finds it)")
    options.add_common(parser)


def run(args: argparse.Namespace) -> int:
    """Read the state of the run and show it.

    Raises:
        InvalidInput: there is no such stack or run.
        TransientStoreError: the endpoint does not answer.
        Failure: the run failed; its state was printed.
    """
    with progress("reading the state"):
        standing = _look(args)
    if args.json:
        print(json.dumps(standing.to_dict(), indent=2))
    else:
        _show(standing)
    if standing.execution is not None:
        standing.execution.check()
    if standing.report is not None and standing.report.status == "failed":
        raise Failure(f"TablesFailed: {standing.report.cause}", EXIT_FAILED)
    return 0


def _look(args: argparse.Namespace) -> Standing:
    if args.stack is None:
        state = S3Uri.parse("--state-uri", args.state_uri)
        return standing_of(state, args.run_id, open_store(args.endpoint_url, state.bucket))
    aws = Aws(args.region)
    stack = find_stack(aws, args.stack)
    execution = executions.chosen(aws, stack.tables_machine_arn, args.run_id)
    state = S3Uri.parse("s3_state_uri", execution.given["s3_state_uri"])
    try:
        found = standing_of(state, execution.run_id, open_store(args.endpoint_url, state.bucket))
    except InvalidInput:
        # The run has not listed its tables yet, or failed before.
        return Standing(execution.run_id, 0, [], [], None, execution)
    return Standing(found.run_id, found.tables, found.ended, found.held, found.report, execution)


def standing_of(state: S3Uri, run_id: str | None, store: ObjectStore) -> Standing:
    """Return the state of a run; of the last one if none is named.

    Raises:
        InvalidInput: there is no such run.
    """
    name = run_id or next(_runs(state, store), None)
    if name is None:
        raise InvalidInput("--state-uri", state.uri, "a state with a maintenance run")
    try:
        tables = listed_tables(name, state, store)
    except ObjectMissing:
        accepted = f"the id of a maintenance run with its state at {state.uri}"
        raise InvalidInput("RUN", name, accepted) from None
    report = read_report(state, name, store)
    if report is not None:
        return Standing(name, len(tables), report.tables, [], report)
    leases = Leases(store, state, SystemClock())
    found = [(table, read_outcome(state, name, table, store)) for table in tables]
    left = [table for table, one in found if one is None]
    held = [one for one in (leases.look(parse_table(table)) for table in left) if one]
    ended = [one for _, one in found if one is not None]
    return Standing(name, len(tables), ended, [one for one in held if one.run_id == name], None)


def _runs(state: S3Uri, store: ObjectStore) -> Iterator[str]:
    """Yield the maintenance runs of a state, newest first; their names begin with their time."""
    prefix = f"{state.prefix}{RUNS}"
    names = [
        one.removeprefix(prefix).rstrip("/")
        for page in store.list_level(state.bucket, prefix)
        for one in page.prefixes
    ]
    for name in sorted(filter(is_run_id, names), reverse=True)[:_LOOKED_AT]:
        bucket, key = places.list_key(state, name)
        if store.head(bucket, key) is not None:
            yield name


def _show(standing: Standing) -> None:
    if standing.execution is not None:
        print_line(f"run {standing.run_id}: {standing.execution.status.lower()}")
    if standing.report is not None:
        show_report(standing.report)
        return
    print_line(
        f"run {standing.run_id}: {len(standing.ended):,} of"
        f" {plural(standing.tables, 'table')} ended"
    )
    for one in standing.ended:
        if one.status == "failed":
            print_line(one.line)
    for lease in standing.held[:_SHOWN_LEASES]:
        minutes = max(0.0, (time.time() - lease.since) / 60)
        print_line(f"{lease.table}: in progress with {lease.engine} for {minutes:,.0f} minutes")
