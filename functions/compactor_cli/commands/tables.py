"""``compactor tables``: maintains tables that others write. Each action is a module."""

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
        "show files, sizes, deletes and snapshots of tables, from metadata; read-only",
    ),
    "plan": Action(
        "compactor_cli.commands.tables_plan",
        "show what a run would do to tables: engine, cost and reason; read-only",
    ),
    "run": Action(
        "compactor_cli.commands.tables_run",
        "maintain tables with Spark on this machine, or with --stack by a deployed state machine",
    ),
    "status": Action(
        "compactor_cli.commands.tables_status",
        "show the state of a maintenance run, and its report after its end",
    ),
    "accept": Action(
        "compactor_cli.commands.tables_accept",
        "resume with a destination's table that was rolled back, restored or recreated",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the actions, each with its options."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, action in ACTIONS.items():
        description = action.summary[0].upper() + action.summary[1:] + "."
        one = actions.add_parser(name, help=action.summary, description=description)
        import_module(action.module).add_arguments(one)


def run(args: argparse.Namespace) -> int:
    """Carry out the requested action; returns the exit code."""
    done: int = import_module(ACTIONS[args.action].module).run(args)
    return done
