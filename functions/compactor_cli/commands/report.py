"""``compactor report``: prints the report of a run, deployed or not."""

from __future__ import annotations

import argparse
import json
from datetime import datetime
from pathlib import Path

from compactor.errors import InvalidInput
from compactor.model import is_run_id
from compactor.ports import ObjectStore
from compactor.report.page import render
from compactor.report.reasons import grouped
from compactor.sizes import plural
from compactor_cli.commands import options
from compactor_cli.commands.deployment import Deployment, add_deployment, add_run, find_deployment
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.store import open_store
from compactor_cli.commit_logs import state_from
from compactor_cli.console import counted, print_line, print_note, progress
from compactor_cli.deployed import executions
from compactor_cli.deployed.executions import Execution
from compactor_cli.deployed.reports import (
    StoredReport,
    last_report,
    newest_reports,
    report_below,
    report_of,
)
from compactor_cli.pages import keep_page, open_page
from compactor_cli.run_metrics import add_metrics_file, metrics_text, write_metrics
from compactor_cli.summary import print_summary

_SHOWN_FAILURES = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, and what to save."""
    options.add_places(parser, options.DESTINATION, optional=True)
    add_run(parser)
    add_deployment(parser)
    parser.add_argument(
        "--state-uri",
        dest=options.STATE,
        metavar="URI",
        help="look below this state prefix; for runs with their own s3_state_uri",
    )
    parser.add_argument(
        "--endpoint-url", metavar="URL", help="S3-compatible endpoint, with DEST or --state-uri"
    )
    parser.add_argument("--html", type=Path, metavar="FILE", help="also save it as an HTML page")
    add_metrics_file(parser)
    parser.add_argument("--open", action="store_true", help="show the page in the browser")


def run(args: argparse.Namespace) -> int:
    """Fetch and print the report, also that of a failed run.

    Raises:
        InvalidInput: there is no such stack or run, or the page is not writable.
        Failure: there is no report.
    """
    if args.run_id is None and not (args.s3_destination_uri or "s3://").startswith("s3://"):
        args.s3_destination_uri, args.run_id = None, args.s3_destination_uri
    if args.s3_destination_uri or args.s3_state_uri:
        report = _below(args)
    elif args.endpoint_url is None:
        report = _deployed(args)
    else:
        raise InvalidInput("--endpoint-url", args.endpoint_url, "DEST or --state-uri with it")
    if args.html is not None or args.open:
        file = keep_page(render(report.document), "report.html", args.html)
        if args.open:
            open_page(file)
    if args.metrics_file is not None:
        write_metrics(_metrics(report), args.metrics_file)
    if args.json:
        print(json.dumps(report.document, indent=2))
    else:
        show_report(report)
    return 0


def _metrics(report: StoredReport) -> str:
    document = report.document
    started_at = datetime.fromisoformat(document["started_at"]).timestamp()
    return metrics_text(
        document["settings"],
        document,
        failed=document["status"] == "failed",
        ended_at=started_at + report.seconds,
        seconds=report.seconds,
    )


def _below(args: argparse.Namespace) -> StoredReport:
    state = state_from(args)
    store = open_store(args.endpoint_url, state.bucket)
    with progress("fetching the report"):
        if args.run_id is not None:
            if not is_run_id(args.run_id):
                raise InvalidInput("RUN", args.run_id, "the id of a run")
            found = report_below(state.uri, args.run_id, store)
        else:
            found = next(iter(newest_reports(state, store, 1)), None)
    if found is None:
        of = f" of run {args.run_id}" if args.run_id else ""
        raise Failure(f"there is no report{of} below {state.uri}")
    return found


def _deployed(args: argparse.Namespace) -> StoredReport:
    found = find_deployment(args)
    store = open_store()
    with progress("fetching the report"):
        return _named(found, args.run_id, store) if args.run_id else _last(found, store)


def show_report(report: StoredReport) -> None:
    """Print the summary of a run, its failures, and where the full report is."""
    print_summary(report.document, report.seconds)
    lines = [report.document[name] for name in ("failure", "spark_failure")]
    failed = [one for one in report.document["partitions"] if one["status"] != "done"]
    lines += grouped((one["path"], f"{one['error']} {one['cause']}") for one in failed)
    clean_up = report.document["clean_up"] or {"failures": (), "unsafe": ()}
    lines += [f"clean-up: {line}" for line in (*clean_up["failures"], *clean_up["unsafe"])]
    shown = counted(line for line in lines if line)
    for line in shown[:_SHOWN_FAILURES]:
        print_line(f"failed: {line}")
    # The report lists a limited number of failed partitions.
    more = len(shown[_SHOWN_FAILURES:]) + report.document["failed_count"] - len(failed)
    if more:
        print_line(f"and {plural(more, 'more failure')}; see the report")
    print_line(f"report: {report.uri}; --open shows it as a page")


def _named(found: Deployment, run: str, store: ObjectStore) -> StoredReport:
    try:
        execution = found.run(run)
    except (InvalidInput, Failure):
        # Step Functions keeps a run for 90 days, and has none in standalone mode.
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
        # If there is no run at all, found.run() says so.
        raise Failure(_without(without[0] if without else found.run(None)))
    for execution in without:
        print_note(f"compactor: {_without(execution)}")
    return report


def _without(execution: Execution) -> str:
    if not execution.ended:
        return f"run {execution.run_id} is still running; the report is written at its end"
    return f"run {execution.run_id} left no report: {execution.why or execution.status}"
