"""``compactor smoke``: checks that a deployed stack works in its account."""

from __future__ import annotations

import argparse
import secrets
from pathlib import Path

from compactor_cli.commands.asking import is_agreed, require_answer
from compactor_cli.commands.deployment import add_stack, find_deployment
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_line
from compactor_cli.smoke.session import list_alone
from compactor_cli.smoke.world import Names, World

_REPORT = "smoke-report.txt"
_QUESTION = (
    "some twenty requests below the state prefix, less than a cent; all of it is removed. Go on?"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the stack, the report and ``--yes``."""
    add_stack(parser)
    parser.add_argument(
        "--report", metavar="FILE", default=_REPORT, help=f"the report (by default {_REPORT})"
    )
    parser.add_argument("--yes", action="store_true", help="ask for no confirmation")
    parser.set_defaults(json=False)


def run(args: argparse.Namespace) -> int:
    """Run the part of the list that writes nothing among sources and outputs.

    Raises:
        InvalidInput: there is no such stack, or no terminal to ask on.
        Failure: a permission is missing.
    """
    require_answer(args)
    found = find_deployment(args)
    if not is_agreed(args, _QUESTION):
        return 0
    world = World(
        client=found.aws.client,
        store=open_store(),
        names=Names(secrets.token_hex(4)),
        stacks={"runs": found.stack},
        own=False,
    )
    code, report = list_alone(world, print_line)
    Path(args.report).write_text(report, encoding="utf-8")
    print_line(f"report: {args.report}")
    return code
