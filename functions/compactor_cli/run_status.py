"""How far a deployed run is: its states, the partitions of its Map Runs, and those that failed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from compactor_cli.executions import Execution, current_states, describe
from compactor_cli.stack import Aws, needing

# The labels of the definition's two Distributed Maps, a part of their Map Runs' names.
PARTITIONS_LABEL, CLEAN_UPS_LABEL = "Partitions", "CleanUps"
_CLEANING = "CleanUpPartitions"
_FAILED = ("FAILED", "TIMED_OUT", "ABORTED")
# Frequent enough for live progress, and far below the request limits of Step Functions.
_FIRST_POLL_SECONDS, _LAST_POLL_SECONDS = 1.0, 10.0


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """Counts of the partitions of one Map Run, by status of their execution."""

    total: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> PartitionCounts:
        """Convert ``itemCounts`` of DescribeMapRun; timeouts and aborts count as failed."""
        return cls(
            total=counts["total"],
            pending=counts["pending"] + counts.get("pendingRedrive", 0),
            running=counts["running"],
            succeeded=counts["succeeded"],
            failed=counts["failed"] + counts["timedOut"] + counts["aborted"],
        )

    @property
    def ended(self) -> int:
        """Partitions that are finished in this run."""
        return self.succeeded + self.failed

    @property
    def line(self) -> str:
        """The counts as text."""
        parts = [f"{self.ended:,}/{self.total:,} partitions"]
        parts += [f"{n:,} {name}" for name in ("running", "failed") if (n := getattr(self, name))]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class PartitionFailure:
    """One partition that failed in a Map Run, after all retries.

    Attributes:
        path: below the source root.
        status: of the child execution.
    """

    path: str
    status: str
    why: str

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


def find_map_runs(aws: Aws, execution_arn: str) -> dict[str, str]:
    """Return the execution's Map Runs so far: label of the Map -> ARN.

    Raises:
        Failure: a permission is missing.
    """
    with needing("states:ListMapRuns"):
        answer = aws.client("stepfunctions").list_map_runs(executionArn=execution_arn)
    arns = [str(listed["mapRunArn"]) for listed in answer["mapRuns"]]
    # arn:…:mapRun:<state machine>/<label>:<its own id>
    return {arn.rpartition("/")[2].partition(":")[0]: arn for arn in arns}


def count_partitions(aws: Aws, map_run_arn: str) -> PartitionCounts:
    """Return the counts of a Map Run.

    Raises:
        Failure: a permission is missing.
    """
    with needing("states:DescribeMapRun"):
        answer = aws.client("stepfunctions").describe_map_run(mapRunArn=map_run_arn)
    return PartitionCounts.of(answer["itemCounts"])


def failures(aws: Aws, map_run_arn: str) -> Iterator[PartitionFailure]:
    """Yield the failed partitions, latest first; each costs a request.

    Raises:
        Failure: a permission is missing.
    """
    for status in _FAILED:
        parameters = {"mapRunArn": map_run_arn, "statusFilter": status}
        for page in aws.pages("states:ListExecutions", "list_executions", **parameters):
            for listed in page["executions"]:
                child = describe(aws, listed["executionArn"])
                yield PartitionFailure(_path(child), child.status, child.why)


def _path(child: Execution) -> str:
    """Return the first path of a batch and the number of others; the report says which failed."""
    items = child.given.get("Items", [child.given])
    paths = [_path_of(item) for item in items] if isinstance(items, list) else ["?"]
    more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
    return f"{paths[0]}{more}" if paths else "?"


def _path_of(item: object) -> str:
    # An item of a batch is the partition itself.
    partition = item.get("partition", item) if isinstance(item, Mapping) else None
    path = partition.get("path") if isinstance(partition, Mapping) else None
    return "?" if path is None else str(path) or "(root)"


@dataclass(frozen=True, slots=True)
class Status:
    """What Step Functions says of a run.

    Attributes:
        counts: of the partitions, by label of the Map Run.
        failed: the first of the failed partitions, by the same.
        states: current states of the state machine; empty after its end.
    """

    execution: Execution
    counts: Mapping[str, PartitionCounts]
    failed: Mapping[str, Sequence[PartitionFailure]]
    states: Sequence[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the status for JSON."""
        document = {**self.execution.to_dict(), "states": list(self.states)}
        for label, name in ((PARTITIONS_LABEL, "partitions"), (CLEAN_UPS_LABEL, "clean_ups")):
            document[name] = asdict(self.counts[label]) if label in self.counts else None
            document[f"failed_{name}"] = [one.to_dict() for one in self.failed.get(label, ())]
        return document

    def lines(self) -> list[str]:
        """Return the status as lines of text."""
        execution = self.execution
        started = execution.started_at.astimezone(UTC)
        seconds = execution.seconds
        if seconds is None:
            seconds = (datetime.now(UTC) - started).total_seconds()
        since = "from" if execution.ended else "since"
        lines = [f"{since} {started:%Y-%m-%d %H:%M:%S} UTC, {_duration(seconds)}"]
        if self.states:
            lines.append(f"at: {', '.join(self.states)}")
        for label, counts in self.counts.items():
            what = "clean-up: " if label == CLEAN_UPS_LABEL else ""
            failed = self.failed.get(label, ())
            lines.append(what + counts.line)
            lines += [f"{what}failed: {one.path}: {' '.join(one.why.split())}" for one in failed]
            if counts.failed > len(failed):
                more = f"and {counts.failed - len(failed):,} more failed"
                lines.append(f"{what}{more}; --failures N shows more, its report shows all")
        return lines


def status_of(aws: Aws, execution: Execution, shown_failures: int) -> Status:
    """Return what Step Functions says of a run; each failed partition costs a request."""
    counts, failed = {}, {}
    for label, map_run in sorted(find_map_runs(aws, execution.arn).items(), reverse=True):
        counts[label] = count_partitions(aws, map_run)
        if counts[label].failed and shown_failures:
            failed[label] = list(islice(failures(aws, map_run), shown_failures))
    return Status(execution, counts, failed, current_states(aws, execution.arn))


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{seconds:02d} hours"
    return f"{minutes}:{seconds:02d} minutes"


@dataclass(frozen=True, slots=True)
class DeployedProgress:
    """The progress of a run.

    Attributes:
        counts: of its partitions; None before the Map Run has started.
        clean_up: of the partitions in clean-up; None before it has started.
        states: current states of the state machine.
    """

    counts: PartitionCounts | None = None
    states: tuple[str, ...] = ()
    clean_up: PartitionCounts | None = None

    @property
    def line(self) -> str:
        """The progress as text."""
        if self.clean_up:
            return f"cleaning up {self.clean_up.line}"
        counts = [self.counts.line] if self.counts else []
        return ", ".join([*counts, *self.states]) or "starting"


class Follower:
    """Polls the state of one run.

    Args:
        aws: where it runs.
        execution: the run.
    """

    def __init__(self, aws: Aws, execution: Execution) -> None:
        self._aws = aws
        self._arn = execution.arn
        self._map_runs: dict[str, str] = {}

    def wait(
        self, show: Callable[[DeployedProgress], None], pause: Callable[[float], None] = time.sleep
    ) -> Execution:
        """Wait until the run has ended; returns it.

        Args:
            show: called with the progress at each poll and at the end.
            pause: sleeps for the given seconds.

        Raises:
            Failure: a permission is missing.
        """
        seconds = _FIRST_POLL_SECONDS
        while True:
            # Before the counts, so that the last counts shown are final.
            execution = describe(self._aws, self._arn)
            show(self.progress())
            if execution.ended:
                return execution
            pause(seconds)
            seconds = min(seconds * 1.5, _LAST_POLL_SECONDS)

    def progress(self) -> DeployedProgress:
        """Return the present progress.

        Raises:
            Failure: a permission is missing.
        """
        states = current_states(self._aws, self._arn)
        unknown = CLEAN_UPS_LABEL not in self._map_runs and _CLEANING in states
        if unknown or not self._map_runs:
            self._map_runs = find_map_runs(self._aws, self._arn)
        counts = self._count(PARTITIONS_LABEL)
        return DeployedProgress(counts, states, self._count(CLEAN_UPS_LABEL))

    def _count(self, label: str) -> PartitionCounts | None:
        map_run = self._map_runs.get(label)
        return count_partitions(self._aws, map_run) if map_run else None
