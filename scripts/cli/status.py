"""``compactor status``: how a run of the deployed state machine stands."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from scripts.cli.deployment import add_deployment, add_run, find_deployment
from scripts.console import print_line, progress
from scripts.deployed.aws import Aws
from scripts.deployed.executions import SUCCEEDED, Execution
from scripts.deployed.map_run import (
    PartitionCounts,
    PartitionFailure,
    count_partitions,
    failures,
    find_map_run,
)
from scripts.deployed.spark_tasks import History, SparkTask, ask_emr, read_history

_SHOWN_FAILURES = 20


@dataclass(frozen=True, slots=True)
class Status:
    """How a run stands.

    Attributes:
        counts: of its partitions; None before it began with them.
        failed: partitions that failed, the first of them.
        states: where the state machine is; empty after its end.
        spark: what was given to EMR.
    """

    execution: Execution
    counts: PartitionCounts | None
    failed: Sequence[PartitionFailure]
    states: Sequence[str]
    spark: Sequence[SparkTask]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **self.execution.to_dict(),
            "states": list(self.states),
            "partitions": asdict(self.counts) if self.counts else None,
            "failed_partitions": [one.to_dict() for one in self.failed],
            "spark": [one.to_dict() for one in self.spark],
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, and how many failures."""
    add_run(parser)
    add_deployment(parser)
    parser.add_argument(
        "--failures",
        type=_count,
        default=_SHOWN_FAILURES,
        metavar="N",
        help="failed partitions to show, each of which costs a request (%(default)s)",
    )


def run(args: argparse.Namespace) -> int:
    """Ask, and show.

    Raises:
        InvalidInput: there is no such stack or run.
        Failure: the run did not succeed; everything was shown.
    """
    found = find_deployment(args)
    execution = found.run(args.run_id)
    with progress("asking"):
        status = look(found.aws, execution, args.failures)
    if args.json:
        print(json.dumps(status.to_dict(), indent=2))
    else:
        _show(status)
    execution.check()
    return 0


def look(aws: Aws, execution: Execution, shown_failures: int) -> Status:
    """Everything that Step Functions and EMR say of a run.

    Args:
        aws: where it runs.
        execution: the run.
        shown_failures: how many failed partitions to look up at most.

    Raises:
        Failure: something may not be looked at.
    """
    map_run = find_map_run(aws, execution.arn)
    counts = count_partitions(aws, map_run) if map_run else None
    failed: list[PartitionFailure] = []
    if map_run and counts and counts.failed:
        failed = list(islice(failures(aws, map_run), shown_failures))
    history: History = read_history(aws, execution.arn)
    spark = tuple(ask_emr(aws, history.spark))
    return Status(execution, counts, failed, history.states, spark)


def _show(status: Status) -> None:
    execution = status.execution
    print_line(f"run {execution.run_id}: {execution.status.lower()}", _style(execution))
    print_line(_times(execution))
    if status.states:
        print_line(f"at: {', '.join(status.states)}")
    if status.counts is not None:
        print_line(status.counts.line)
    for one in status.failed:
        print_line(f"failed: {one.path}: {' '.join(one.why.split())}")
    hidden = (status.counts.failed if status.counts else 0) - len(status.failed)
    if hidden > 0:
        print_line(f"and {hidden:,} more failed; --failures shows more, compactor report all")
    for task in status.spark:
        print_line(f"Spark: {task.line}")
    if execution.status == SUCCEEDED:
        print_line(f"its report: compactor report {execution.run_id}")


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
        raise argparse.ArgumentTypeError(f"{text!r} is not accepted; expected a whole number")
    return int(text)
