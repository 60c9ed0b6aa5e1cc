"""``compactor history``: lists the runs below a state prefix, newest first."""

from __future__ import annotations

import argparse
import dataclasses
import json

from compactor.settings.uris import S3Uri
from compactor.sizes import plural
from compactor_cli.commands import options
from compactor_cli.commands.deployment import add_deployment, find_deployment
from compactor_cli.commands.failures import Failure
from compactor_cli.commands.report import add_state, is_below, state_and_store
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_table, progress
from compactor_cli.past_runs import HEADS, PastRun, newest_reports

_MOST_RUNS = 1_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEST, the stack or state prefix, and how many runs."""
    options.add_places(parser, options.DESTINATION, optional=True)
    add_deployment(parser)
    add_state(parser)
    parser.add_argument(
        "--runs",
        type=_runs,
        default=30,
        metavar="N",
        help="the newest N runs with a report (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Read the reports, newest first, and print a row for each.

    Raises:
        InvalidInput: there is no such stack or bucket.
        Failure: no run left a report.
    """
    if is_below(args):
        state, store = state_and_store(args)
    else:
        state = S3Uri.parse("StateUri", find_deployment(args).stack.state_uri)
        store = open_store()
    with progress("reading the reports"):
        found = newest_reports(state, store, args.runs)
    if not found:
        raise Failure(f"there is no report below {state.uri}")
    runs = [PastRun.of(one.document) for one in found]
    if args.json:
        print(json.dumps([dataclasses.asdict(one) for one in runs], indent=2))
        return 0
    title = f"{plural(len(runs), 'run')} below {state.uri}, newest first"
    print_table(title, HEADS, [one.cells for one in runs])
    return 0


def _runs(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < 9 else 0
    if not 1 <= number <= _MOST_RUNS:
        message = f"{text!r} is not a number from 1 to {_MOST_RUNS:,}"
        raise argparse.ArgumentTypeError(message)
    return number
