"""``compactor logs``: prints what the deployed functions logged during one run."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable

from compactor_cli.commands.deployment import add_deployment, add_run, find_deployment
from compactor_cli.console import print_line, progress
from compactor_cli.deployed.log_lines import DEBUG, ERROR, INFO, WARNING, LogLine
from compactor_cli.deployed.logs import RunLogs

_LEVELS = {"debug": DEBUG, "info": INFO, "warning": WARNING, "error": ERROR}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, the log level and ``--follow``."""
    add_run(parser)
    add_deployment(parser)
    parser.add_argument(
        "--level",
        choices=tuple(_LEVELS),
        default="info",
        help="lines of this level or above (%(default)s); debug includes metrics and Lambda's own"
        " lines of each invocation",
    )
    parser.add_argument(
        "--follow", "-f", action="store_true", help="print new lines until the run ends"
    )


def run(args: argparse.Namespace) -> int:
    """Print the lines; with ``--json`` one JSON document per line.

    Raises:
        InvalidInput: there is no such stack or run.
        Failure: a permission is missing.
    """
    found = find_deployment(args)
    execution = found.run(args.run_id)
    logs = RunLogs(found.aws, execution, found.stack.function_names)
    if args.follow:
        _show(logs.follow(), _LEVELS[args.level], as_json=args.json)
    else:
        with progress("reading the logs"):
            lines = logs.read()
        _show(lines, _LEVELS[args.level], as_json=args.json)
    return 0


def _show(lines: Iterable[LogLine], level: int, *, as_json: bool) -> None:
    for line in lines:
        if line.level < level:
            continue
        if as_json:
            print(json.dumps(line.to_dict()), flush=True)
        else:
            first, *rest = line.shown.split("\n")
            print_line(first)
            for more in rest:
                # Indented, so that a message with newlines cannot fake a log line.
                print_line(f"    {more}")
