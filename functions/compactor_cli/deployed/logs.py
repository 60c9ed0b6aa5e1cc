"""The logs of all functions, for one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from compactor_cli.deployed.aws import Aws, error_code, needing
from compactor_cli.deployed.executions import Execution, describe
from compactor_cli.deployed.log_lines import LogLine, read_line

# An invocation's last line is written shortly after the workflow continues.
_BEFORE_MS, _AFTER_MS = 1_000, 60_000
# CloudWatch returns events some seconds late, and out of order.
_OVERLAP_MS = 30_000
_POLL_SECONDS, _LAST_POLL_SECONDS = 3.0, 10.0


class RunFilter:
    """Keeps the lines of one run.

    An invocation belongs to the run if one of its lines names the run. One that names no run, for
    example because it crashed first, is kept too, as it ran during the run. Lines are held back
    until their invocation is known, or has ended.

    Args:
        run_id: of the run.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._invocations: dict[str, _Invocation] = {}

    def take(self, stream: str, line: LogLine) -> list[LogLine]:
        """Add a line; returns the lines now known to belong to the run.

        Args:
            stream: name of the stream, its log group included.
            line: the next one of that stream.
        """
        released: list[LogLine] = []
        if line.starts:
            released = self._end(stream)
        invocation = self._invocations.setdefault(stream, _Invocation())
        released += invocation.take(line, self._run_id)
        return released + self._end(stream) if line.ends else released

    def drain(self) -> list[LogLine]:
        """Return the lines held back, at the end of the logs."""
        return [line for stream in list(self._invocations) for line in self._end(stream)]

    def _end(self, stream: str) -> list[LogLine]:
        invocation = self._invocations.pop(stream, None)
        return invocation.held if invocation else []


@dataclass(slots=True)
class _Invocation:
    """Lines of one invocation; ``mine`` is None until a line names a run."""

    mine: bool | None = None
    held: list[LogLine] = field(default_factory=list)

    def take(self, line: LogLine, run_id: str) -> list[LogLine]:
        if line.run_id:
            self.mine = line.run_id == run_id
        if self.mine is None:
            self.held.append(line)
            return []
        before, self.held = self.held, []
        return [*before, line] if self.mine else []


class RunLogs:
    """What the functions logged during one run.

    Args:
        aws: AWS clients.
        execution: the run.
        functions: handler -> name of its function, whose log group is /aws/lambda/<name>.
    """

    def __init__(self, aws: Aws, execution: Execution, functions: Mapping[str, str]) -> None:
        self._aws = aws
        self._execution = execution
        self._groups = {name: f"/aws/lambda/{function}" for name, function in functions.items()}
        self._filter = RunFilter(execution.run_id)
        self._seen: set[str] = set()
        self._from = _milliseconds(execution.started_at.timestamp()) - _BEFORE_MS

    def read(self) -> list[LogLine]:
        """Return all lines so far, in order of time.

        Raises:
            Failure: a permission is missing.
        """
        return _in_order([*self._fresh(self._execution), *self._filter.drain()])

    def follow(self, pause: Callable[[float], None] = time.sleep) -> Iterator[LogLine]:
        """Yield lines as they arrive, until the run has ended and its last lines have arrived.

        Args:
            pause: sleeps for the given seconds.

        Raises:
            Failure: a permission is missing.
        """
        ended = self._execution.ended
        while not ended:
            execution = describe(self._aws, self._execution.arn)
            yield from _in_order(self._fresh(execution))
            ended = execution.ended
            self._execution = execution
            pause(_LAST_POLL_SECONDS if ended else _POLL_SECONDS)
        yield from self.read()

    def _fresh(self, execution: Execution) -> list[LogLine]:
        """Return new lines that pass the filter."""
        until = None
        if execution.stopped_at is not None:
            until = _milliseconds(execution.stopped_at.timestamp()) + _AFTER_MS
        lines: list[LogLine] = []
        newest = self._from
        for name, group in self._groups.items():
            for event in self._events(group, until):
                newest = max(newest, event["timestamp"])
                if event["eventId"] not in self._seen:
                    self._seen.add(event["eventId"])
                    line = read_line(name, event["timestamp"], event["message"])
                    lines += self._filter.take(f"{group}/{event['logStreamName']}", line)
        self._from = max(self._from, newest - _OVERLAP_MS)
        return lines

    def _events(self, group: str, until: int | None) -> list[Mapping[str, Any]]:
        given: dict[str, Any] = {"logGroupName": group, "startTime": self._from}
        if until is not None:
            given["endTime"] = until
        pages = self._aws.client("logs").get_paginator("filter_log_events").paginate(**given)
        try:
            with needing("logs:FilterLogEvents"):
                events = [event for page in pages for event in page["events"]]
        except ClientError as error:
            # A function that was never invoked has no log group yet.
            if error_code(error) != "ResourceNotFoundException":
                raise
            return []
        # The sort is stable: lines of one millisecond keep the order of their stream.
        return sorted(events, key=lambda event: int(event["timestamp"]))


def _in_order(lines: Iterable[LogLine]) -> list[LogLine]:
    return sorted(lines, key=lambda line: line.at)


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
