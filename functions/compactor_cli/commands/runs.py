"""``compactor runs``: starts, lists and shows runs, of this machine and of a deployed stack."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import click

from compactor import __version__
from compactor.clock import new_run_id
from compactor.errors import InvalidInput
from compactor.model import is_run_id
from compactor.report.page import render
from compactor.report.reasons import grouped, partition_count
from compactor.settings.settings import Settings, default_state_uri
from compactor.settings.uris import S3Uri
from compactor.sizes import plural
from compactor_cli import parameters as given
from compactor_cli.command_line import Args, Argument, Option, action
from compactor_cli.commands.run import input_from
from compactor_cli.console import counted, print_line, print_note, print_table, progress
from compactor_cli.executions import SUCCEEDED, Execution, named_or_last, newest_first
from compactor_cli.executions import start as start_execution
from compactor_cli.failures import EXIT_INTERRUPTED, Failure
from compactor_cli.jobs import ENDPOINT, JOB_FILE, is_made_run_id, is_name, no_job, read_job
from compactor_cli.pages import keep_page, open_page
from compactor_cli.parameters import DEFAULT_STACK, STACK_VARIABLE
from compactor_cli.run_metrics import METRICS_FILE, report_metrics, write_metrics
from compactor_cli.run_status import DeployedProgress, Follower, Status, status_of
from compactor_cli.stack import Aws, Stack, find_stack
from compactor_cli.store import open_store
from compactor_cli.stored_reports import (
    StoredReport,
    newest_reports,
    report_below,
    report_of,
)
from compactor_cli.summary import print_summary

# Fields of one set are exclusive: giving one drops the stack's own values of that set.
_WINDOW = frozenset({"window", "duration"})
_PARTITIONS = frozenset({"date_format", "depth"})
_SHOWN_FAILURES = 20
_LISTED = 20


def deployed_stack(args: Args) -> tuple[Aws, Stack]:
    """Return the stack that the options name; warns when its version differs.

    Raises:
        InvalidInput: there is no such stack.
        Failure: a permission is missing.
    """
    aws = Aws(args.region)
    stack = find_stack(aws, args.stack or os.environ.get(STACK_VARIABLE) or DEFAULT_STACK)
    version = stack.outputs.get("SpecVersion")
    if version not in (None, __version__):
        # Fields and reports may differ, but most commands work.
        print_note(
            f"compactor: the stack {stack.name} has version {version}, this is {__version__}"
        )
    return aws, stack


# start


@action(
    given.places("s3_source_uri", "s3_destination_uri"),
    given.INPUT,
    Option("--wait", is_flag=True, help="wait until the run ends, and show its report"),
    given.NAME,
    given.STACK,
    given.JSON,
    given.fields(),
)
def start(args: Args) -> int:
    """Check the input, start the run, and wait with ``--wait``.

    Without SOURCE and DEST, missing settings are those of the stack's schedule.

    Raises:
        InvalidInput: the input is invalid, or there is no such stack.
        Failure: the run could not be started, or it failed.
    """
    document = input_from(args)
    aws, stack = deployed_stack(args)
    machine = stack.state_machine_arn
    if args.input is None and args.s3_source_uri is None:
        document = overlaid(stack.default_input, document)
    # Rejected here, instead of by a failed run.
    Settings.from_input(document)
    execution = start_execution(aws, machine, document, args.name or new_run_id())
    if args.wait:
        execution = _wait(aws, execution, stack)
        _show(status_of(aws, execution, 0), report_of(execution, open_store()), args)
        execution.check()
    elif args.json:
        print(json.dumps(execution.to_dict(), indent=2))
    else:
        print_line(f"started run {execution.run_id}")
        print_line(f"follow it: {_way_to_follow(execution, stack)}")
    return 0


def overlaid(default: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stack's own input, overridden by the given fields.

    A field also drops those it excludes: ``window`` drops the stack's ``duration``, and ``depth``
    drops ``date_format`` and the whole window.
    """
    replaced: set[str] = set()
    if fields.get("depth"):
        replaced |= _WINDOW | _PARTITIONS
    elif "date_format" in fields:
        replaced |= _PARTITIONS
    if _WINDOW & set(fields):
        replaced |= _WINDOW
    return {name: value for name, value in default.items() if name not in replaced} | dict(fields)


def _wait(aws: Aws, execution: Execution, stack: Stack) -> Execution:
    try:
        with progress(f"run {execution.run_id}") as bar:

            def show_progress(now: DeployedProgress) -> None:
                counts = now.clean_up or now.counts
                done, total = (counts.ended, counts.total) if counts else (0, None)
                bar.show(done, total, now.line)

            return Follower(aws, execution).wait(show_progress)
    except KeyboardInterrupt:
        line = f"stopped waiting; run {execution.run_id} continues"
        raise Failure(line, EXIT_INTERRUPTED, _way_to_follow(execution, stack)) from None


def _way_to_follow(execution: Execution, stack: Stack) -> str:
    # Any other name might be that of a job.
    which = "" if is_made_run_id(execution.run_id) else f" --stack {stack.name}"
    return f"compactor runs show {execution.run_id}{which}"


# list and show

_WHERE: list[click.Parameter] = [
    Argument(
        "where",
        "[DEST|JOB]",
        "destination of the runs, or a job; by default the stack's runs",
        required=False,
    ),
    Option("--state-uri", metavar="URI", help="state prefix of runs with their own s3_state_uri"),
    given.ENDPOINT,
    given.JSON,
    *given.STACK,
]


@action(
    _WHERE,
    Option(
        "-n",
        "--most",
        type=click.IntRange(1, 1_000),
        default=_LISTED,
        metavar="N",
        help=f"number of runs to list ({_LISTED})",
    ),
)
def list_runs(args: Args) -> int:
    """List runs, the newest first: those of a destination by their reports, or those of a stack.

    Raises:
        InvalidInput: there is no such stack or job.
        Failure: a permission is missing.
    """
    place = place_of(args)
    with progress("looking for runs"):
        if place is None:
            aws, stack = deployed_stack(args)
            executions = newest_first(aws, stack.state_machine_arn)
            runs = [execution.to_dict() for execution in islice(executions, args.most)]
        else:
            state, endpoint_url = place
            reports = newest_reports(state, open_store(endpoint_url, state.bucket), args.most)
            runs = [_listed(report) for report in reports]
    if args.json:
        print(json.dumps(runs, indent=2))
        return 0
    rows = [[_cell(run.get(name)) for name in _COLUMNS.values()] for run in runs]
    print_table(plural(len(rows), "run"), tuple(_COLUMNS), rows, texts=(0, 1, 2))
    return 0


_COLUMNS = {
    "Run": "run_id",
    "Started": "started_at",
    "Status": "status",
    "Seconds": "seconds",
    "Partitions": "partitions",
    "Failed": "failed",
    "Objects": "objects_before",
    "Outputs": "objects_after",
}


def _listed(report: StoredReport) -> dict[str, Any]:
    document = report.document
    return {
        "run_id": document["run_id"],
        "started_at": document["started_at"],
        "status": document["status"],
        "seconds": round(report.seconds, 1),
        "partitions": partition_count(document),
        "failed": document["failed_count"],
        "objects_before": document["totals"]["objects_in"],
        "objects_after": document["totals"]["objects_out"],
        "report_uri": report.uri,
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int | float) else str(value)


@action(
    _WHERE[0],
    Argument("run_id", "[RUN]", "run id or execution ARN; by default the last run", required=False),
    _WHERE[1:],
    Option(
        "--failures",
        type=click.IntRange(0),
        default=_SHOWN_FAILURES,
        metavar="N",
        section="deployed stack",
        help=f"number of failed partitions to show; each costs a request ({_SHOWN_FAILURES})",
    ),
    Option(
        "--html",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="also save the report as a page",
    ),
    Option("--open", is_flag=True, help="show the page in the browser"),
    METRICS_FILE,
)
def show(args: Args) -> int:
    """Show the state of a run, and its report after its end.

    Raises:
        InvalidInput: there is no such stack or run, or the page is not writable.
        Failure: the run failed, which was printed; or it left nothing to show.
    """
    place = place_of(args)
    with progress("looking the run up"):
        status, report = _deployed(args) if place is None else (None, _below(*place, args.run_id))
    if report is not None:
        _save(report, args)
    _show(status, report, args)
    if status is not None:
        status.execution.check()
    elif report is not None and report.document["status"] == "failed":
        raise Failure(f"run {report.document['run_id']} failed: {report.document['cause']}")
    return 0


def place_of(args: Args) -> tuple[S3Uri, str | None] | None:
    """Return the state of the runs and its endpoint; None for a stack's runs.

    A single word of ``show`` is the name of a job, or else of a run.
    """
    where, endpoint_url, state_uri = args.where, args.endpoint_url, args.state_uri
    if where is not None and not where.startswith("s3://"):
        job = _job(args, where)
        if job is None:
            args.run_id, where = where, None
        else:
            where, state_uri = job["s3_destination_uri"], state_uri or job.get("s3_state_uri")
            endpoint_url = endpoint_url or job.get(ENDPOINT)
    if where is None and state_uri is None:
        if endpoint_url is not None:
            raise InvalidInput("--endpoint-url", endpoint_url, "DEST or --state-uri with it")
        return None
    return S3Uri.parse("s3_state_uri", state_uri or default_state_uri(where)), endpoint_url


def _job(args: Args, word: str) -> Mapping[str, Any] | None:
    """Return the job of this name; None if the word is the id of a run."""
    file = Path(args.job_file or JOB_FILE)
    job = read_job(file, word) if is_name(word) and (file.exists() or args.job_file) else None
    if job is None:
        named = args.stack or args.region or args.state_uri or os.environ.get(STACK_VARIABLE)
        is_run = named or is_made_run_id(word) or not is_name(word)
        if not is_run or getattr(args, "run_id", word) is not None:
            raise no_job(file, word, "s3_destination_uri", of_stack=True)
    return job


def _below(state: S3Uri, endpoint_url: str | None, run_id: str | None) -> StoredReport:
    store = open_store(endpoint_url, state.bucket)
    if run_id is None:
        report = next(iter(newest_reports(state, store, 1)), None)
    elif is_run_id(run_id):
        report = report_below(state.uri, run_id, store)
    else:
        raise InvalidInput("RUN", run_id, "the id of a run")
    if report is None:
        of_run = f" of run {run_id}" if run_id else ""
        raise Failure(f"there is no report{of_run} below {state.uri}")
    return report


def _deployed(args: Args) -> tuple[Status | None, StoredReport | None]:
    """Return the status of a deployed run and its report; without RUN, of the last one."""
    aws, stack = deployed_stack(args)
    store = open_store()
    try:
        execution = named_or_last(aws, stack.state_machine_arn, args.run_id)
    except (InvalidInput, Failure):
        # Step Functions keeps a run for 90 days, and has none in standalone mode.
        run_id = (args.run_id or "").rpartition(":")[2]
        report = report_below(stack.state_uri, run_id, store) if run_id else None
        if report is None:
            raise
        return None, report
    report = report_of(execution, store) if execution.ended else None
    return status_of(aws, execution, args.failures), report


def _save(report: StoredReport, args: Args) -> None:
    if args.html is not None or args.open:
        file = keep_page(render(report.document), "report.html", args.html)
        if args.open:
            open_page(file)
    if args.metrics_file is not None:
        write_metrics(report_metrics(report.document, report.seconds), args.metrics_file)


def _show(status: Status | None, report: StoredReport | None, args: Args) -> None:
    if args.json:
        document = {} if status is None else status.to_dict()
        print(json.dumps({**document, "report": report.document if report else None}, indent=2))
        return
    if status is not None:
        execution = status.execution
        style = "green" if execution.status == SUCCEEDED else "red"
        style = f"bold {style}" if execution.ended else "bold"
        print_line(f"run {execution.run_id}: {execution.status.lower()}", style)
        for line in status.lines():
            print_line(line)
        if report is None:
            why = f"left no report: {execution.why}" if execution.why else "has no report yet"
            print_line(f"run {execution.run_id} {why}")
    if report is not None:
        show_report(report)


def show_report(report: StoredReport) -> None:
    """Print the summary of a run, its failures, and where the full report is."""
    document = report.document
    lines = [document[name] for name in ("failure", "spark_failure")]
    failed = [one for one in document["partitions"] if one["status"] != "done"]
    lines += grouped((one["path"], f"{one['error']} {one['cause']}") for one in failed)
    clean_up = document["clean_up"] or {"failures": (), "unsafe": ()}
    lines += [f"clean-up: {line}" for line in (*clean_up["failures"], *clean_up["unsafe"])]
    shown = counted(line for line in lines if line)
    shown_lines = [f"failed: {line}" for line in shown[:_SHOWN_FAILURES]]
    # The report lists a limited number of failed partitions.
    more = len(shown[_SHOWN_FAILURES:]) + document["failed_count"] - len(failed)
    if more:
        shown_lines.append(f"and {plural(more, 'more failure')}; see the report")
    print_summary(document, report.seconds, shown_lines)
    print_line(f"report: {report.uri}; --open shows it as a page")
