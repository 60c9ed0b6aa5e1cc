"""How far a whole run has come."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from compactor.orchestration.messages import DONE, FAILED, Answer, Order, Task


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run has come.

    Attributes:
        partitions_total: partitions to compact; 0 until discovery has ended.
        partitions_done: partitions compacted.
        partitions_failed: partitions that failed for good.
        objects_done: sources compacted so far.
        spark: the last line of the Spark job; empty while no job is running.
        clean_ups_total: partitions to clean up; 0 until that is known.
        clean_ups_done: partitions cleaned up.
        clean_ups_failed: partitions whose clean-up failed for good.
        deleted: sources that clean-up has deleted so far.
    """

    partitions_total: int = 0
    partitions_done: int = 0
    partitions_failed: int = 0
    objects_done: int = 0
    spark: str = ""
    clean_ups_total: int = 0
    clean_ups_done: int = 0
    clean_ups_failed: int = 0
    deleted: int = 0


class Tally:
    """Adds up the answers of workers. Thread-safe.

    Args:
        on_change: called with the progress after every change, by one thread at a time.

    Attributes:
        lock: held during calls of ``on_change``.
    """

    def __init__(self, on_change: Callable[[RunProgress], None]) -> None:
        self.now = RunProgress()
        self._on_change = on_change
        self.lock = threading.RLock()

    def set(self, **values: Any) -> None:
        """Set these values."""
        with self.lock:
            self._publish(replace(self.now, **values))

    def add(self, **more: int) -> None:
        """Add to the counts."""
        with self.lock:
            self.set(**{name: getattr(self.now, name) + n for name, n in more.items()})

    def answered(self, order: Order, answer: Answer) -> None:
        """Add what a call did in addition to the calls before it."""
        if answer.compacted is not None:
            counts = answer.compacted.counts
            self.add(objects_done=counts.objects_in - order.before.objects_in)
        if answer.cleaned is not None and answer.cleaned_before is not None:
            before = answer.cleaned_before.counts.deleted
            self.add(deleted=answer.cleaned.counts.deleted - before)

    def ended(self, task: Task, status: str) -> None:
        """Count a partition that is done or has failed for good; ignore any other status."""
        if status in (DONE, FAILED):
            of_what = "partitions" if task is Task.COMPACT else "clean_ups"
            self.add(**{f"{of_what}_{status}": 1})

    def _publish(self, progress: RunProgress) -> None:
        self.now = progress
        self._on_change(progress)
