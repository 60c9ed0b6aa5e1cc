"""``compactor tables``: what others write into tables, looked after. Each action is a module."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True, slots=True)
class Action:
    """One action; its module has ``add_arguments(parser)`` and ``run(args) -> int``."""

    module: str
    summary: str


ACTIONS: Mapping[str, Action] = {
    "scan": Action(
        "compactor_cli.commands.tables_scan",
        "show what tables consist of, by their metadata alone; writes nothing",
    ),
    "plan": Action(
        "compactor_cli.commands.tables_plan",
        "show what a run would do to tables, by whom, for how much, and why; writes nothing",
    ),
    "run": Action(
        "compactor_cli.commands.tables_run",
        "maintain tables, on this machine by Spark, or with --stack by a deployed state machine",
    ),
    "status": Action(
        "compactor_cli.commands.tables_status",
        "show how a maintenance run stands, and its report once it has ended",
    ),
    "history": Action(
        "compactor_cli.commands.tables_history",
        "draw how slow a table became, with its maintenance, and recommend a schedule",
    ),
    "accept": Action(
        "compactor_cli.commands.tables_accept",
        "continue with a destination's table that others rolled back, restored or made again",
    ),
    "undo": Action(
        "compactor_cli.commands.tables_undo",
        "order that a table becomes what it was before the last rewrite",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The actions, each with its options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, action in ACTIONS.items():
        description = action.summary[0].upper() + action.summary[1:] + "."
        one = actions.add_parser(name, help=action.summary, description=description)
        import_module(action.module).add_arguments(one)


def run(args: argparse.Namespace) -> int:
    """Carry out the action that was asked for; returns the exit code."""
    done: int = import_module(ACTIONS[args.action].module).run(args)
    return done
