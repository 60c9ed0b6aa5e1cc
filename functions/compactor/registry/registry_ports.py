"""What the registry needs from the outside world: a table with conditions, and what starts runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

import msgspec

from compactor.model import Partition
from compactor.registry.items import Batch, Head, Item, Mark, Removal


@dataclass(frozen=True, slots=True)
class StreamIdentity:
    """What a stream is: from one source, divided so, to one destination.

    Attributes:
        scheme: how its keys name partitions, as text.
    """

    name: str
    source: str
    destination: str
    state: str
    scheme: str


class Registered(msgspec.Struct, frozen=True):
    """What became of items that were to be registered.

    Attributes:
        new: those that were not known, or not so.
        failed: those that the table did not take, and why.
    """

    new: Sequence[Item]
    known: int
    failed: Sequence[tuple[Item, Exception]] = ()


class Withdrawn(msgspec.Struct, frozen=True):
    """What became of removals; the failed ones with why."""

    done: int
    failed: Sequence[tuple[Removal, Exception]] = ()


class Registry(Protocol):
    """A table of items, by stream and partition. Every method may raise TransientStoreError.

    ``InvalidInput`` is raised where the table does not exist or may not be used.
    """

    def claim(self, stream: StreamIdentity, now: float) -> str:
        """Make sure that a stream is this one, which the first caller says.

        Returns:
            A text that no other stream of this name ever had.

        Raises:
            InvalidInput: it is another one.
        """
        ...

    def register(self, stream: str, items: Sequence[Item]) -> Registered:
        """Remember each item where it :func:`supersedes` what is remembered of its key."""
        ...

    def withdraw(self, stream: str, removals: Sequence[Removal]) -> Withdrawn:
        """Forget that an object is pending, where the removal is the latest of its key."""
        ...

    def touch(self, stream: str, path: str, newest: float) -> None:
        """Note that a partition may have something pending. To be called after ``register``."""
        ...

    def heads(self, stream: str) -> Iterator[Head]:
        """The partitions that may have something pending; consistently read."""
        ...

    def head(self, stream: str, path: str) -> Head | None:
        """The head of one partition, whether or not something may be pending in it."""
        ...

    def rest(self, stream: str, head: Head, now: float) -> bool:
        """Note that nothing of a partition is pending; False where it was touched meanwhile."""
        ...

    def pending(self, stream: str, partition: Partition, after: str = "") -> Iterator[Item]:
        """What is pending or left, consistently read, in UTF-8 order of names.

        Args:
            stream: its name.
            partition: which.
            after: only names after this one.
        """
        ...

    def mark(self, stream: str, marks: Iterable[Mark], now: float) -> int:
        """Note what became of items, by transactions; returns of how many.

        An item that is not what it was any more is left as it is.
        """
        ...

    def batch(self, stream: str) -> Batch:
        """How far the executions of a stream are."""
        ...

    def arrived(self, stream: str, objects: int, size: int) -> Batch:
        """Count what was registered; a hint."""
        ...

    def may_look(self, stream: str, now: float, pause_seconds: float) -> bool:
        """Take the right to see what is due: True for one caller within so many seconds."""
        ...

    def looked(self, stream: str, number: int, objects: int, size: int) -> None:
        """Set the hints of a batch to what was seen."""
        ...

    def advance(self, stream: str, number: int, cut: float, execution: str) -> bool:
        """Go on to the next batch; False where another writer did."""
        ...


class Started(NamedTuple):
    """What became of a request to start an execution.

    Attributes:
        at: when it was started, by this call or an earlier one, UNIX seconds; None where an
            execution of this name has ended already.
    """

    arn: str
    at: float | None


class ExecutionState(Enum):
    """How an execution stands."""

    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"


class Executions(Protocol):
    """What starts runs. Every method may raise TransientStoreError."""

    def start(self, name: str, document: str) -> Started:
        """Start an execution, once: the second call of the same name and input does nothing."""
        ...

    def state_of(self, arn: str) -> ExecutionState:
        """How an execution stands; one that is not known any more has ended."""
        ...
