"""``compactor status``: shows the state of a run of the deployed state machine."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from compactor_cli.commands.deployment import add_deployment, add_run, find_deployment
from compactor_cli.console import print_line, progress
from compactor_cli.deployed.aws import Aws
from compactor_cli.deployed.executions import SUCCEEDED, Execution, current_states
from compactor_cli.deployed.map_run import (
    PartitionCounts,
    PartitionFailure,
    count_partitions,
    failures,
    find_map_runs,
)
from compactor_cli.runs import CLEAN_UPS_LABEL, PARTITIONS_LABEL

_SHOWN_FAILURES = 20


@dataclass(frozen=True, slots=True)
class Children:
    """Progress of the partitions of one Map Run.

    Attributes:
        counts: None before the Map Run has started.
        failed: the first of the failed partitions.
    """

    counts: PartitionCounts | None = None
    failed: Sequence[PartitionFailure] = ()

    @property
    def hidden(self) -> int:
        """How many failed partitions are not in ``failed``."""
        return (self.counts.failed if self.counts else 0) - len(self.failed)


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a run.

    Attributes:
        partitions: of compaction.
        clean_ups: of clean-up.
        states: current states of the state machine; empty after its end.
    """

    execution: Execution
    partitions: Children
    clean_ups: Children
    states: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the status for JSON."""
        return {
            **self.execution.to_dict(),
            "states": list(self.states),
            "partitions": asdict(self.partitions.counts) if self.partitions.counts else None,
            "failed_partitions": [one.to_dict() for one in self.partitions.failed],
            "clean_ups": asdict(self.clean_ups.counts) if self.clean_ups.counts else None,
            "failed_clean_ups": [one.to_dict() for one in self.clean_ups.failed],
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, and how many failures to show."""
    add_run(parser)
    add_deployment(parser)
    parser.add_argument(
        "--failures",
        type=_count,
        default=_SHOWN_FAILURES,
        metavar="N",
        help="number of failed partitions to show; each costs a request (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Look the run up and show its state.

    Raises:
        InvalidInput: there is no such stack or run.
        Failure: the run did not succeed; its state was printed.
    """
    found = find_deployment(args)
    execution = found.run(args.run_id)
    with progress("looking the run up"):
        status = look(found.aws, execution, args.failures)
    if args.json:
        print(json.dumps(status.to_dict(), indent=2))
    else:
        show(status)
    execution.check()
    return 0


def look(aws: Aws, execution: Execution, shown_failures: int) -> Status:
    """Return what Step Functions reports about a run.

    Args:
        aws: where it runs.
        execution: the run.
        shown_failures: maximum number of failed partitions to look up per Map Run.

    Raises:
        Failure: a permission is missing.
    """
    map_runs = find_map_runs(aws, execution.arn)
    partitions, clean_ups = (
        _children(aws, map_runs.get(label), shown_failures)
        for label in (PARTITIONS_LABEL, CLEAN_UPS_LABEL)
    )
    return Status(execution, partitions, clean_ups, current_states(aws, execution.arn))


def _children(aws: Aws, map_run: str | None, shown_failures: int) -> Children:
    if map_run is None:
        return Children()
    counts = count_partitions(aws, map_run)
    if not counts.failed:
        return Children(counts)
    return Children(counts, list(islice(failures(aws, map_run), shown_failures)))


def show(status: Status) -> None:
    """Print the status, including failures."""
    execution = status.execution
    print_line(f"run {execution.run_id}: {execution.status.lower()}", _style(execution))
    print_line(_times(execution))
    if status.states:
        print_line(f"at: {', '.join(status.states)}")
    _show_children(status.partitions, "")
    _show_children(status.clean_ups, "clean-up: ")
    if execution.status == SUCCEEDED:
        print_line(f"report: compactor report {execution.run_id}")


def _show_children(children: Children, what: str) -> None:
    if children.counts is not None:
        print_line(what + children.counts.line)
    for one in children.failed:
        print_line(f"{what}failed: {one.path}: {' '.join(one.why.split())}")
    if children.hidden > 0:
        line = (
            f"and {children.hidden:,} more failed; --failures N shows more,"
            " compactor report shows all"
        )
        print_line(what + line)


def _times(execution: Execution) -> str:
    started = execution.started_at.astimezone(UTC)
    seconds = execution.seconds
    if seconds is None:
        running = (datetime.now(UTC) - started).total_seconds()
        return f"since {started:%Y-%m-%d %H:%M:%S} UTC, {_duration(running)}"
    return f"from {started:%Y-%m-%d %H:%M:%S} UTC, {_duration(seconds)}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d} hours" if hours else f"{minutes}:{rest:02d} minutes"


def _style(execution: Execution) -> str:
    if not execution.ended:
        return "bold"
    return "bold green" if execution.status == SUCCEEDED else "bold red"


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)
