"""Who does the work of a whole run, and who looks on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from compactor.cleaning.expiry import Expiry
from compactor.discovery.discover import Discovery
from compactor.discovery.resume import Part
from compactor.orchestration.messages import Answer, Order
from compactor.orchestration.run_progress import RunProgress
from compactor.sinks.table_receipts import TableReceipt


class Workers(Protocol):
    """Carries out orders, as many at a time as there are slots."""

    @property
    def slots(self) -> int:
        """How many orders may be under way concurrently."""
        ...

    @property
    def own_time(self) -> bool:
        """True where each call has a process, and so a time, of its own: ``more`` is called again.

        Calls that share this thread share the time of the whole run: ``more`` says that no
        time is left.
        """
        ...

    def carry_out(self, order: Order) -> Answer:
        """Carry out one order to its end, whatever that is; called by ``slots`` threads at most.

        A worker that died, or did not answer in time, is answered for with an error of
        :data:`compactor.orchestration.partition_retry.LOST`.
        """
        ...

    def stop(self) -> None:
        """End what is under way between two requests; later orders are not begun."""
        ...


class Spark(Protocol):
    """Runs the Spark job over the oversized partitions of a run."""

    def run(self, run_id: str, run_uri: str, on_line: Callable[[str], None]) -> str:
        """Run the job to its end; returns why it failed, empty when it did not.

        Args:
            run_id: of the run.
            run_uri: the prefix below which everything of the run lies.
            on_line: called with each line the job has for a person.
        """
        ...

    def stop(self) -> None:
        """Kill the job, if one is running; no other is begun."""
        ...


class Observer:
    """Looks on; called by one thread at a time."""

    def discovering(self, part: Part) -> None:
        """Time ran out before discovery had found everything."""

    def discovered(self, found: Discovery) -> None:
        """Discovery has ended, and the lists are written."""

    def published(self, receipt: TableReceipt) -> None:
        """What is committed was brought into the table."""

    def not_published(self, error: Exception) -> None:
        """It was not, or not all; called where the error is handled."""

    def planned_clean_up(self, partitions: int) -> None:
        """Take the number of partitions with commits past retention."""

    def expired(self, expiry: Expiry) -> None:
        """Old files of the state were dropped."""

    def clean_up_not_planned(self, error: Exception) -> None:
        """Clean-up ended before its first partition; called where the error is handled."""

    def answered(self, order: Order, answer: Answer) -> None:
        """A call has ended."""

    def progressed(self, progress: RunProgress) -> None:
        """The run has come further."""
