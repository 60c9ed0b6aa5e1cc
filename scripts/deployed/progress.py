"""A run followed to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from scripts.deployed.aws import Aws
from scripts.deployed.executions import Execution, describe
from scripts.deployed.map_run import PartitionCounts, count_partitions, find_map_run
from scripts.deployed.spark_tasks import read_history

# Fast enough to look alive; four requests a poll stay far below what Step Functions refuses.
_FIRST_POLL_SECONDS, _LAST_POLL_SECONDS = 1.0, 10.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands.

    Attributes:
        counts: of its Map Run; None before there is one.
        states: where the state machine is.
        spark: how the Spark branch stands; empty while there is none.
    """

    counts: PartitionCounts | None = None
    states: tuple[str, ...] = ()
    spark: str = ""

    @property
    def line(self) -> str:
        """For a person."""
        where = self.counts.line if self.counts else ", ".join(self.states) or "starting"
        return f"{where}, {self.spark}" if self.spark else where


class Follower:
    """Asks again and again how one run stands.

    Args:
        aws: where it runs.
        execution: the run.
    """

    def __init__(self, aws: Aws, execution: Execution) -> None:
        self._aws = aws
        self._arn = execution.arn
        self._map_run: str | None = None

    def wait(
        self, show: Callable[[Progress], None], pause: Callable[[float], None] = time.sleep
    ) -> Execution:
        """Return the run when it has ended, however it did.

        Args:
            show: told where it stands, at each poll and at the end.
            pause: waits so many seconds.

        Raises:
            Failure: it may not be looked at.
        """
        seconds = _FIRST_POLL_SECONDS
        while True:
            # Asked before the counts, so that those shown last are the final ones.
            execution = describe(self._aws, self._arn)
            show(self.progress())
            if execution.ended:
                return execution
            pause(seconds)
            seconds = min(seconds * 1.5, _LAST_POLL_SECONDS)

    def progress(self) -> Progress:
        """Where it stands now.

        Raises:
            Failure: it may not be looked at.
        """
        if self._map_run is None:
            self._map_run = find_map_run(self._aws, self._arn)
        counts = count_partitions(self._aws, self._map_run) if self._map_run else None
        history = read_history(self._aws, self._arn)
        return Progress(counts, history.states, history.spark_line)
