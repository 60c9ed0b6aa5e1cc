"""``compactor report``: the report of a run of the deployed state machine."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from compactor.errors import InvalidInput
from compactor.ports import ObjectStore
from compactor_cli.commands.deployment import Deployment, add_deployment, add_run, find_deployment
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.store import open_store
from compactor_cli.console import counted, print_error, print_line, progress
from compactor_cli.deployed import executions
from compactor_cli.deployed.executions import Execution
from compactor_cli.deployed.reports import StoredReport, last_report, report_below, report_of
from compactor_cli.summary import print_summary

_SHOWN_FAILURES = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and what to save."""
    add_run(parser)
    add_deployment(parser)
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="save the report as a page in this file, too"
    )


def run(args: argparse.Namespace) -> int:
    """Fetch and print; a report of a failed run is printed like any other.

    Raises:
        InvalidInput: there is no such stack or run.
        Failure: there is no report.
    """
    found = find_deployment(args)
    store = open_store()
    with progress("fetching the report"):
        report = _named(found, args.run_id, store) if args.run_id else _last(found, store)
    if args.html is not None:
        page = store.get(report.bucket, report.page_key)
        args.html.write_bytes(page)
    if args.json:
        print(json.dumps(report.document, indent=2))
    else:
        show_report(report)
    return 0


def show_report(report: StoredReport) -> None:
    """The table of a run, what failed in it, and where the whole report is."""
    print_summary(report.summary)
    lines = [report.document[name] for name in ("failure", "spark_failure")]
    failed = [one for one in report.document["partitions"] if one["status"] != "done"]
    lines += [f"{one['path'] or '(root)'}: {one['error']} {one['cause']}" for one in failed]
    clean_up = report.document.get("clean_up") or {"failures": (), "unsafe": ()}
    lines += [f"clean-up: {line}" for line in (*clean_up["failures"], *clean_up["unsafe"])]
    told = [" ".join(line.split()) for line in lines if line]
    for line in told[:_SHOWN_FAILURES]:
        print_line(f"failed: {line}")
    # Of very many partitions the report tells some alone; earlier versions told all.
    untold = report.document.get("failed_count", len(failed)) - len(failed)
    if len(told) + untold > _SHOWN_FAILURES:
        more = len(told) + untold - _SHOWN_FAILURES
        print_line(f"and {counted(more, 'more failure')}, see the report")
    print_line(f"report: {report.uri} (and s3://{report.bucket}/{report.page_key})")


def _named(found: Deployment, run: str, store: ObjectStore) -> StoredReport:
    try:
        execution = found.run(run)
    except (InvalidInput, Failure):
        # Step Functions forgets a run after 90 days, and has none in standalone mode.
        old = report_below(found.stack.state_uri, run.rpartition(":")[2], store)
        if old is None:
            raise
        return old
    report = report_of(execution, store)
    if report is None:
        raise Failure(_without(execution))
    return report


def _last(found: Deployment, store: ObjectStore) -> StoredReport:
    runs = executions.newest_first(found.aws, found.stack.state_machine_arn)
    report, without = last_report(runs, store)
    if report is None:
        # Where there is no run at all, looking for the last one says so.
        raise Failure(_without(without[0] if without else found.run(None)))
    for execution in without:
        print_error(f"compactor: {_without(execution)}")
    return report


def _without(execution: Execution) -> str:
    if not execution.ended:
        return f"run {execution.run_id} is still running; its report comes last"
    return f"run {execution.run_id} left no report: {execution.why or execution.status}"
