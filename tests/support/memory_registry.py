"""The registry in memory, with the conditions of the real one, and the starter of executions.

registry = MemoryRegistry()
registry.hook = lambda step: ...       called before and after each request; may raise
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from compactor.errors import InvalidInput
from compactor.model import Partition
from compactor.registry.items import (
    OPEN_STATES,
    Batch,
    Head,
    Item,
    ItemState,
    Mark,
    Removal,
    in_place_of,
    name_bytes,
    supersedes,
    withdraws,
)
from compactor.registry.registry_ports import (
    ExecutionState,
    Registered,
    Started,
    StreamIdentity,
    Withdrawn,
)

Hook = Callable[[str], None]


def _nothing(step: str) -> None:
    """Do nothing; the default hook."""


@dataclass(slots=True)
class _Head:
    touched: int = 0
    newest: float = 0.0
    active: bool = True


class MemoryRegistry:
    """Implements :class:`compactor.registry.registry_ports.Registry`; for one thread at a time."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str, str], Item] = {}
        self.hook: Hook = _nothing
        self._heads: dict[tuple[str, str], _Head] = {}
        self._streams: dict[str, tuple[StreamIdentity, str]] = {}
        self._batches: dict[str, Batch] = {}

    def claim(self, stream: StreamIdentity, now: float) -> str:
        there, born = self._streams.setdefault(stream.name, (stream, f"{int(now * 1000):x}"))
        if there != stream:
            raise InvalidInput("listing", stream.name, f"a stream of {there}")
        return born

    def register(self, stream: str, items: Sequence[Item]) -> Registered:
        new = []
        for one in items:
            self.hook("put")
            place = stream, one.partition.path, one.name
            old = self.items.get(place)
            if old is None or supersedes(one, old):
                self.items[place] = one if old is None else in_place_of(one, old)
                new.append(one)
            self.hook("put done")
        return Registered(new, len(items) - len(new))

    def withdraw(self, stream: str, removals: Sequence[Removal]) -> Withdrawn:
        done = 0
        for one in removals:
            self.hook("withdraw")
            place = stream, one.partition.path, one.name
            old = self.items.get(place)
            if withdraws(one, old):
                before = old or Item(one.partition, one.name, "", 0, one.time)
                done += old is not None and old.state in OPEN_STATES
                sequencer = one.sequencer or before.sequencer
                state = ItemState.WITHDRAWN
                self.items[place] = replace(before, state=state, time=one.time, sequencer=sequencer)
            self.hook("withdraw done")
        return Withdrawn(done)

    def touch(self, stream: str, path: str, newest: float) -> None:
        self.hook("touch")
        head = self._heads.setdefault((stream, path), _Head())
        head.touched += 1
        head.newest = max(head.newest, newest)
        head.active = True
        self.hook("touch done")

    def heads(self, stream: str) -> Iterator[Head]:
        self.hook("heads")
        for (name, path), head in list(self._heads.items()):
            if name == stream and head.active:
                yield Head(path, head.touched, head.newest)

    def head(self, stream: str, path: str) -> Head | None:
        self.hook("head")
        found = self._heads.get((stream, path))
        return None if found is None else Head(path, found.touched, found.newest)

    def rest(self, stream: str, head: Head, now: float) -> bool:
        self.hook("rest")
        found = self._heads[stream, head.path]
        if found.touched != head.touched:
            return False
        found.active = False
        return True

    def pending(self, stream: str, partition: Partition, after: str = "") -> Iterator[Item]:
        self.hook("query")
        found = [
            item
            for (name, path, _), item in self.items.items()
            if (name, path) == (stream, partition.path) and item.state in OPEN_STATES
        ]
        behind = after.encode()
        for one in sorted(found, key=name_bytes):
            if not after or name_bytes(one) > behind:
                yield one

    def mark(self, stream: str, marks: Iterable[Mark], now: float) -> int:
        done = 0
        for mark in list(marks):
            self.hook("mark")
            place = stream, mark.item.partition.path, mark.item.name
            if self.items.get(place) == mark.item and mark.item.state in OPEN_STATES:
                self.items[place] = replace(mark.item, state=mark.state, reason=mark.reason)
                done += 1
            self.hook("mark done")
        return done

    def batch(self, stream: str) -> Batch:
        self.hook("batch")
        return self._batches.get(stream, Batch())

    def advance(self, stream: str, number: int, cut: float, execution: str) -> bool:
        self.hook("advance")
        old = self._batches.get(stream, Batch())
        if old.number != number:
            return False
        self._batches[stream] = Batch(number + 1, cut, execution)
        self.hook("advance done")
        return True


@dataclass
class MemoryExecutions:
    """Implements :class:`.registry_ports.Executions`, with names as unique as in Step Functions.

    Attributes:
        now: returns the time.
        running: names and inputs of running executions.
        ended: names of ended executions; failed: those of them that failed.
        order: names of all executions, in the order of their start.
    """

    now: Callable[[], float]
    running: dict[str, tuple[str, float]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    order: list[str] = field(default_factory=list)
    hook: Hook = _nothing

    def start(self, name: str, document: str) -> Started:
        self.hook("start")
        arn = f"arn:{name}"
        if name in self.ended or self.running.get(name, (document, 0.0))[0] != document:
            return Started(arn, None)
        if name not in self.running:
            self.running[name] = document, self.now()
            self.order.append(name)
        at = self.running[name][1]
        self.hook("start done")
        return Started(arn, at)

    def state_of(self, arn: str) -> ExecutionState:
        name = arn.removeprefix("arn:")
        if name in self.running:
            return ExecutionState.RUNNING
        return ExecutionState.FAILED if name in self.failed else ExecutionState.ENDED

    def end(self, name: str, *, failed: bool = False) -> None:
        """End an execution."""
        self.running.pop(name, None)
        self.ended.add(name)
        if failed:
            self.failed.add(name)
