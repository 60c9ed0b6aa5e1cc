"""``compactor start``: starts a run of the deployed state machine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from compactor.clock import new_run_id
from compactor.settings.settings import Settings
from compactor_cli.commands import options
from compactor_cli.commands.deployment import Deployment, add_deployment, find_deployment
from compactor_cli.commands.failures import EXIT_INTERRUPTED, Failure
from compactor_cli.commands.report import show_report
from compactor_cli.commands.run import input_from
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_line, progress
from compactor_cli.deployed import executions
from compactor_cli.deployed.executions import Execution
from compactor_cli.deployed.progress import DeployedProgress, Follower
from compactor_cli.deployed.reports import report_of
from compactor_cli.summary import totals_of

# Fields of one set are exclusive: giving one drops the stack's own values of that set.
_WINDOW = frozenset({"duration", "start", "end"})
_PARTITIONS = frozenset({"date_format", "depth"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the input as for ``compactor run``, and ``--wait``."""
    options.add_places(parser, options.SOURCE, options.DESTINATION, optional=True)
    parser.add_argument(
        "--input",
        metavar="FILE.json",
        help="the whole input instead of SOURCE, DEST and the fields below; - reads standard"
        " input. Without SOURCE and DEST, missing fields are taken from the input that the stack's"
        " schedule uses.",
    )
    add_deployment(parser)
    parser.add_argument("--name", metavar="RUN", help="the run id (by default the time)")
    parser.add_argument(
        "--wait", action="store_true", help="wait until the run ends, and show its report"
    )
    options.add_fields(parser)


def run(args: argparse.Namespace) -> int:
    """Check the input, start the run, and wait with ``--wait``.

    Raises:
        InvalidInput: the input is invalid, or there is no such stack.
        Failure: the run could not be started, or it failed.
    """
    document = input_from(args)
    found = find_deployment(args)
    given = document
    if args.input is None and getattr(args, options.SOURCE) is None:
        given = overlaid(found.stack.default_input, document)
    # Rejected here, instead of by a failed run.
    Settings.from_input(given)
    machine = found.stack.state_machine_arn
    execution = executions.start(found.aws, machine, given, args.name or new_run_id())
    if not args.wait:
        _show_started(execution, as_json=args.json)
        return 0
    ended = _wait(found, execution)
    _show_ended(ended, as_json=args.json)
    ended.check()
    return 0


def overlaid(default: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stack's own input, overridden by the given fields.

    A field also drops those it excludes: ``start`` drops the stack's ``duration``, and ``depth``
    drops ``date_format`` and the whole window.
    """
    replaced: set[str] = set()
    if given.get("depth"):
        replaced |= _WINDOW | _PARTITIONS
    elif "date_format" in given:
        replaced |= _PARTITIONS
    if _WINDOW & set(given):
        replaced |= _WINDOW
    return {name: value for name, value in default.items() if name not in replaced} | dict(given)


def _wait(found: Deployment, execution: Execution) -> Execution:
    try:
        with progress(f"run {execution.run_id}") as bar:

            def show(at: DeployedProgress) -> None:
                counts = at.clean_up or at.counts
                done, total = (counts.ended, counts.total) if counts else (0, None)
                bar.show(done, total, at.line)

            return Follower(found.aws, execution).wait(show)
    except KeyboardInterrupt:
        line = f"stopped waiting; run {execution.run_id} continues"
        advice = f"compactor status {execution.run_id}"
        raise Failure(line, EXIT_INTERRUPTED, advice) from None


def _show_started(execution: Execution, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(execution.to_dict(), indent=2))
        return
    print_line(f"started run {execution.run_id}")
    print_line(f"follow it: compactor status {execution.run_id}")


def _show_ended(execution: Execution, *, as_json: bool) -> None:
    report = report_of(execution, open_store())
    if as_json:
        summary = totals_of(report.document, report.seconds, report.uri) if report else None
        print(json.dumps({**execution.to_dict(), "summary": summary}, indent=2))
    elif report:
        show_report(report)
