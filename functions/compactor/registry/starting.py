"""Starts executions that are due: one for each batch of a stream, under a unique name.

What is due is counted from the items themselves, never from counters that could drift. An
execution's name consists of the stream and the batch number. If two sweeps check concurrently, or
one dies before recording what it did, starting the same batch again has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from compactor.encoding.output_encoding import COMPRESSED_TARGET_BYTES
from compactor.model import Partition
from compactor.registry.items import Batch, Item, ItemState
from compactor.registry.registry_ports import Executions, ExecutionState, Registry, Started
from compactor.registry.streams import Stream

# An execution that has been running longer than this no longer prevents new ones.
HELD_SECONDS = 6 * 3_600.0
# How many batches whose executions have already ended one check may skip.
_MOST_PASSED = 5
_LONGEST_NAME = 80


@dataclass(slots=True)
class Waiting:
    """The objects that wait for a run.

    Attributes:
        objects, bytes: all pending objects.
        fresh_objects, fresh_bytes: those that a run would take now and the last one could not.
        oldest: when the first of the objects that a run would take became ready, UNIX seconds.
        since: when the first of them had settled, or the start of the last run if that is later.
    """

    objects: int = 0
    bytes: int = 0
    fresh_objects: int = 0
    fresh_bytes: int = 0
    oldest: float = inf
    since: float = inf

    def is_due(self, stream: Stream, now: float) -> bool:
        """Return whether it is time for a run."""
        return (
            self.fresh_objects >= stream.objects
            or self.fresh_bytes >= stream.bytes
            or now - self.since >= stream.seconds
        )

    def oldest_seconds(self, now: float) -> float:
        """Return how long the oldest object has waited; 0.0 if none does."""
        return max(0.0, now - self.oldest) if self.oldest < inf else 0.0


@dataclass(frozen=True, slots=True)
class Looked:
    """The result of a check.

    Attributes:
        started: the execution that was started.
        busy: nothing was started, because an earlier execution is still running.
    """

    waiting: Waiting
    started: Started | None = None
    busy: bool = False


def execution_name(stream: str, born: str, number: int) -> str:
    """Return the name of the execution for a batch.

    Args:
        stream: its name, at most 40 characters.
        born: distinguishes the stream from others of the same name; see Registry.claim.
        number: of the batch.
    """
    name = f"{stream}-{born}-{number:06d}"
    if len(name) > _LONGEST_NAME:
        raise ValueError(f"the name {name} of an execution is too long")
    return name


def start_due(
    stream: Stream, registry: Registry, executions: Executions, born: str, now: float
) -> Looked:
    """Start an execution if one is due. Safe to repeat, and to run concurrently.

    A failed execution is repeated after a while even if nothing is pending: it may have died after
    marking the items, with work left that does not concern the objects.

    Args:
        stream: whose objects wait.
        registry: has its items.
        executions: starts runs.
        born: see :func:`execution_name`.
        now: UNIX seconds.

    Raises:
        TransientStoreError: the table, or the service that starts runs, did not answer.
        InvalidInput: one of them must not be used.
    """
    waiting = Waiting()
    for _ in range(_MOST_PASSED):
        batch = registry.batch(stream.name)
        waiting = waiting_in(stream, registry, batch.cut, now)
        due = waiting.is_due(stream, now)
        last = _last(batch, executions) if due or now - batch.cut >= stream.seconds else None
        if not due and last is not ExecutionState.FAILED:
            return Looked(waiting)
        if last is ExecutionState.RUNNING and now - batch.cut < HELD_SECONDS:
            return Looked(waiting, busy=True)
        started = executions.start(execution_name(stream.name, born, batch.number), stream.document)
        cut = batch.cut if started.at is None else started.at
        registry.advance(stream.name, batch.number, cut, started.arn)
        if started.at is not None:
            return Looked(waiting, started)
        # Started by a sweep that died before recording it, and already over: what waits is newer.
    return Looked(waiting)


def _last(batch: Batch, executions: Executions) -> ExecutionState | None:
    """Return the state of the last execution; None before the first."""
    return executions.state_of(batch.execution) if batch.execution else None


def waiting_in(stream: Stream, registry: Registry, cut: float, now: float) -> Waiting:
    """Count what waits for a run, and which part of it a run would take.

    A run takes objects that have settled, if there are min_objects of them. In a partition that is
    still open, it takes only what fills outputs.

    Args:
        stream: whose objects to count.
        registry: has its items.
        cut: when the last execution was started, UNIX seconds.
        now: UNIX seconds.
    """
    found = Waiting()
    settings = stream.settings
    root = settings.source.root
    full = settings.target_bytes or COMPRESSED_TARGET_BYTES
    for head in registry.heads(stream.name):
        partition = Partition(root.bucket, root.prefix + head.path, head.path)
        # Without such a time no partition is ever open, however recent its newest object is.
        open_seconds = settings.open_partition_seconds
        closes = head.newest + open_seconds if open_seconds else 0.0
        items = registry.pending(stream.name, partition)
        ready = _Ready(settings.settle_seconds, cut, now, 0.0 if now < closes else closes)
        empty = True
        for one in items:
            empty = False
            if one.state is ItemState.PENDING:
                found.objects += 1
                found.bytes += one.size
                ready.add(one)
        if empty:
            # The process that marked the last of its items died before recording this.
            registry.rest(stream.name, head, now)
        takes = ready.objects >= settings.min_objects
        if takes and (now >= closes or ready.bytes >= full):
            ready.into(found)
    return found


class _Ready:
    """What a run would take from one partition."""

    def __init__(self, settle_seconds: float, cut: float, now: float, closed_at: float) -> None:
        self._settle_seconds = settle_seconds
        self._cut = cut
        self._now = now
        self._closed_at = closed_at
        self._found = Waiting()
        self.objects = self.bytes = 0

    def add(self, item: Item) -> None:
        """Add a pending item."""
        settled_at = max(item.registered, item.time + self._settle_seconds)
        ready_at = max(settled_at, self._closed_at)
        if ready_at > self._now:
            return
        found = self._found
        self.objects += 1
        self.bytes += item.size
        found.oldest = min(found.oldest, ready_at)
        # Not from the closing: a partition that opens again and again would never be due.
        found.since = min(found.since, max(settled_at, self._cut))
        if ready_at > self._cut:
            found.fresh_objects += 1
            found.fresh_bytes += item.size

    def into(self, total: Waiting) -> None:
        """Add the partition's counts to a total."""
        found = self._found
        total.fresh_objects += found.fresh_objects
        total.fresh_bytes += found.fresh_bytes
        total.oldest = min(total.oldest, found.oldest)
        total.since = min(total.since, found.since)
