"""``compactor run``: runs a compaction against any S3."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from compactor.errors import InvalidInput
from compactor.report.reasons import partition_count
from compactor.s3.store import S3Store
from compactor.settings.settings import Settings
from compactor_cli import parameters as given
from compactor_cli.command_line import Args, Option, action
from compactor_cli.commands.documents import read_object
from compactor_cli.commands.plan import find, forecast, headline_of
from compactor_cli.console import print_line
from compactor_cli.failures import EXIT_INTERRUPTED, Failure
from compactor_cli.idle import require_source, window_warning
from compactor_cli.one_run import EndedRun, execute_here, fetch_report
from compactor_cli.pages import require_directory
from compactor_cli.rights import all_missing, naming_all_missing
from compactor_cli.run_metrics import METRICS_FILE, metrics_text, write_metrics
from compactor_cli.store import open_store
from compactor_cli.summary import is_idle, print_summary
from compactor_cli.whole import (
    Machine,
    RunInterrupted,
    default_workers,
    require_time_limit,
)

_PLANNED_AGAIN = 50
_INPUT_ACCEPTED = "a JSON document with the fields of a run"


WORKERS = Option(
    "--workers",
    type=click.IntRange(1, 1_000),
    default=default_workers,
    metavar="N",
    help="worker processes, each compacting one partition at a time (by default two for each CPU up"
    " to four, then one for each CPU)",
)


@action(
    given.places("s3_source_uri", "s3_destination_uri"),
    given.INPUT,
    given.COMMON,
    WORKERS,
    given.LOG,
    Option(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="start no partition with less than a minute of this time left, and end with exit code"
        " 3; committed work is kept, and the same command resumes (by default no limit)",
    ),
    Option(
        "--report-dir",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="also write report.html and report.json here",
    ),
    METRICS_FILE,
    given.fields(),
)
def run(args: Args) -> int:
    """Run, then show the totals.

    Raises:
        InvalidInput: the input is invalid.
        Failure: a partition or the run failed, or the run was interrupted.
    """
    limit = require_time_limit("--time-limit", args.time_limit)
    settings = Settings.from_input(input_from(args))
    if args.report_dir is not None:
        require_directory("--report-dir", args.report_dir)
    if args.metrics_file is not None:
        require_directory("--metrics-file", args.metrics_file.parent)
    store = open_store(args.endpoint_url, settings.state.bucket)
    with naming_all_missing(settings, store, writes=True):
        require_source(settings, store)
    machine = Machine(args.workers, args.endpoint_url, args.log, time_limit_seconds=limit)
    ended = _execute_here(settings, machine, args.metrics_file)
    execution = _with_way_out(ended, settings, store)
    pages = fetch_report(execution, settings, store, args.report_dir)
    if args.json:
        print(json.dumps(execution.to_dict(), indent=2))
    else:
        show(execution)
        if pages:
            print_line(f"report on this machine: {' and '.join(map(str, pages))}")
    try:
        execution.check()
    except Failure as failure:
        line = all_missing(str(failure), settings, store, writes=True)
        raise Failure(line, failure.code) from None
    return 0


def _execute_here(settings: Settings, machine: Machine, metrics_file: Path | None) -> EndedRun:
    try:
        ended = execute_here(settings, machine)
    except RunInterrupted as interrupt:
        raise Failure(f"interrupted: {interrupt}", EXIT_INTERRUPTED) from None
    if metrics_file is not None:
        text = metrics_text(
            settings.to_dict(),
            ended.report,
            failed=ended.has_failed,
            ended_at=time.time(),
            seconds=ended.result.seconds,
        )
        write_metrics(text, metrics_file)
    return ended


def _with_way_out(execution: EndedRun, settings: Settings, store: S3Store) -> EndedRun:
    """Add to the report of an idle run when there is work, or which dates have objects."""
    report = execution.report
    if report is None or not is_idle(report):
        return execution
    partitions = partition_count(report)
    changed: dict[str, Any] = {}
    if not partitions:
        warning = window_warning(settings, store, time.time())
        if warning:
            changed = {"warnings": [*report["warnings"], warning]}
    elif not (partitions > _PLANNED_AGAIN or settings.takes_events):
        # Planning so few partitions again is cheap.
        found = find(settings, store)
        headline = headline_of(settings, found, forecast(found.partitions, settings, store))
        changed = {"headline": headline or report["headline"]}
    return replace(execution, report={**report, **changed})


def show(execution: EndedRun) -> None:
    """Print the summary of a run, if it left a report."""
    if execution.report is None:
        return
    print_summary(execution.report, execution.result.seconds)
    page = execution.report_uri.removesuffix("json") + "html"
    print_line(f"report: {execution.report_uri} (and {page})")


def input_from(args: Args) -> dict[str, Any]:
    """Return the input of a run, from a document or from options.

    Raises:
        InvalidInput: both or neither were given, the document cannot be read, or it repeats a
            key.
    """
    fields = given.fields_from(args)
    if args.input is None:
        return fields
    if fields:
        raise InvalidInput("--input", args.input, f"either a document or {', '.join(fields)}")
    try:
        text = sys.stdin.read() if args.input == "-" else Path(args.input).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInput("--input", args.input, f"{_INPUT_ACCEPTED} ({error})") from None
    try:
        return read_object(text)
    except ValueError as error:
        raise InvalidInput("--input", args.input, f"{_INPUT_ACCEPTED} ({error})") from None
