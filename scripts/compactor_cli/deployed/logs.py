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

# An invocation's last line is written a moment after the workflow went on.
_BEFORE_MS, _AFTER_MS = 1_000, 60_000
# CloudWatch shows events some seconds late, and not in order.
_OVERLAP_MS = 30_000
_POLL_SECONDS, _LAST_POLL_SECONDS = 3.0, 10.0


class RunFilter:
    """Keeps the lines of one run.

    An invocation belongs to the run when a line of it names the run. One that names no run at
    all, because it died before it could, is kept too: it ran in the time of the run. Lines are
    held back until their invocation is known, or at its end.

    Args:
        run_id: of the run.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._invocations: dict[str, _Invocation] = {}

    def take(self, stream: str, line: LogLine) -> list[LogLine]:
        """The lines that are known to belong to the run now.

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
        """What is held back, because nothing more comes."""
        return [line for stream in list(self._invocations) for line in self._end(stream)]

    def _end(self, stream: str) -> list[LogLine]:
        invocation = self._invocations.pop(stream, None)
        return invocation.held if invocation else []


@dataclass(slots=True)
class _Invocation:
    """Lines of one invocation; ``mine`` is None while it is unknown."""

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
        aws: where.
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
        """Everything there is now, in order of time.

        Raises:
            Failure: a log may not be read.
        """
        return _in_order([*self._fresh(self._execution), *self._filter.drain()])

    def follow(self, pause: Callable[[float], None] = time.sleep) -> Iterator[LogLine]:
        """Lines as they come, until the run has ended and its last lines have arrived.

        Args:
            pause: waits so many seconds.

        Raises:
            Failure: a log may not be read.
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
        """Lines that were not there before, as far as the filter lets them through."""
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
        # Stable: lines of one millisecond stay in the order of their stream.
        return sorted(events, key=lambda event: int(event["timestamp"]))


def _in_order(lines: Iterable[LogLine]) -> list[LogLine]:
    return sorted(lines, key=lambda line: line.at)


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)
