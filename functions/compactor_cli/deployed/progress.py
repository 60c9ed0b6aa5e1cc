"""A run followed to its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from compactor_cli.deployed.aws import Aws
from compactor_cli.deployed.executions import Execution, current_states, describe
from compactor_cli.deployed.map_run import PartitionCounts, count_partitions, find_map_runs
from compactor_cli.runs import CLEAN_UPS_LABEL, PARTITIONS_LABEL

# Frequent enough for live progress, and far below the request limits of Step Functions.
_FIRST_POLL_SECONDS, _LAST_POLL_SECONDS = 1.0, 10.0
_CLEANING = "CleanUpPartitions"


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
        return DeployedProgress(
            self._count(PARTITIONS_LABEL),
            states,
            self._count(CLEAN_UPS_LABEL),
        )

    def _count(self, label: str) -> PartitionCounts | None:
        map_run = self._map_runs.get(label)
        return count_partitions(self._aws, map_run) if map_run else None
