"""Ports of a whole run: its workers, the Spark job, and an observer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from compactor.discovery.work_list import Discovery
from compactor.orchestration.messages import Answer, Order
from compactor.orchestration.run_progress import RunProgress
from compactor.sinks.table_receipts import TableReceipt


class Workers(Protocol):
    """Carries out orders, up to ``slots`` at a time."""

    @property
    def slots(self) -> int:
        """How many orders may be in flight concurrently."""
        ...

    @property
    def own_time(self) -> bool:
        """True if each call has a process and a time limit of its own.

        The answer ``more`` then leads to another call. Otherwise calls share the time of the whole
        run, and ``more`` means that no time is left.
        """
        ...

    def carry_out(self, order: Order) -> Answer:
        """Carry out one order and return how it ended; called by up to ``slots`` threads.

        If the worker died or did not answer in time, the answer's error is
        :data:`compactor.orchestration.partition_retry.LOST`.
        """
        ...

    def stop(self) -> None:
        """Stop work under way between two requests; later orders are not begun."""
        ...


class Spark(Protocol):
    """Runs the Spark job over the partitions that workers left to it, or over all of them."""

    def run(self, run_id: str, run_uri: str, on_line: Callable[[str], None]) -> str:
        """Run the job to its end; return why it failed, or an empty string.

        Args:
            run_id: the run's id.
            run_uri: the prefix of the run's lists and receipts.
            on_line: called with each line of the job's human-readable progress.
        """
        ...

    def stop(self) -> None:
        """Kill the job if it is running, and begin no other."""
        ...


class Observer:
    """Receives the events of a run; called by one thread at a time."""

    def discovered(self, found: Discovery) -> None:
        """Discovery is complete, and the work list is written."""

    def published(self, receipt: TableReceipt) -> None:
        """Committed outputs were added to the table."""

    def not_published(self, error: Exception) -> None:
        """Some or all outputs were not added to the table; called from the exception handler."""

    def planned_clean_up(self, partitions: int) -> None:
        """Clean-up found this many partitions with commits past retention."""

    def clean_up_not_planned(self, error: Exception) -> None:
        """Clean-up failed before its first partition; called from the exception handler."""

    def answered(self, order: Order, answer: Answer) -> None:
        """A worker's call has ended."""

    def progressed(self, progress: RunProgress) -> None:
        """The run made progress."""
