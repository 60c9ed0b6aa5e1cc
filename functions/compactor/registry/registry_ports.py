"""The registry's ports: a table with conditional writes, and what starts runs."""

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
    """What identifies a stream: one source with its partitioning, and one destination.

    Attributes:
        scheme: how its keys name partitions, as text.
    """

    name: str
    source: str
    destination: str
    state: str
    scheme: str


class Registered(msgspec.Struct, frozen=True):
    """The result of registering items.

    Attributes:
        new: items that were not stored, or stored differently.
        failed: items that the table did not accept, with the reason.
    """

    new: Sequence[Item]
    known: int
    failed: Sequence[tuple[Item, Exception]] = ()


class Withdrawn(msgspec.Struct, frozen=True):
    """The result of removals; failed ones with the reason."""

    done: int
    failed: Sequence[tuple[Removal, Exception]] = ()


class Registry(Protocol):
    """A table of items, by stream and partition. Every method may raise TransientStoreError.

    ``InvalidInput`` is raised if the table does not exist or must not be used.
    """

    def claim(self, stream: StreamIdentity, now: float) -> str:
        """Check that a stream has this identity, which the first caller sets.

        Returns:
            A text that no other stream of this name ever had.

        Raises:
            InvalidInput: the stream has another identity.
        """
        ...

    def register(self, stream: str, items: Sequence[Item]) -> Registered:
        """Store each item if it :func:`supersedes` what is stored for its key."""
        ...

    def withdraw(self, stream: str, removals: Sequence[Removal]) -> Withdrawn:
        """Record removals, each if it is the latest event of its key."""
        ...

    def touch(self, stream: str, path: str, newest: float) -> None:
        """Record that a partition may have pending items. Call after ``register``."""
        ...

    def heads(self, stream: str) -> Iterator[Head]:
        """Yield the partitions that may have pending items, with consistent reads."""
        ...

    def head(self, stream: str, path: str) -> Head | None:
        """Return the head of a partition, whether it may have pending items or not."""
        ...

    def rest(self, stream: str, head: Head, now: float) -> bool:
        """Record that a partition has nothing pending; False if it was touched meanwhile."""
        ...

    def pending(self, stream: str, partition: Partition, after: str = "") -> Iterator[Item]:
        """Yield pending and left items, with consistent reads, sorted by name in UTF-8 order.

        Args:
            stream: its name.
            partition: the partition.
            after: only names after this one.
        """
        ...

    def mark(self, stream: str, marks: Iterable[Mark], now: float) -> int:
        """Record the new states of items in transactions; return how many were recorded.

        An item that has changed meanwhile is left as it is.
        """
        ...

    def batch(self, stream: str) -> Batch:
        """Return the progress of a stream's executions."""
        ...

    def advance(self, stream: str, number: int, cut: float, execution: str) -> bool:
        """Advance to the next batch; return False if another writer did."""
        ...


class Started(NamedTuple):
    """The result of starting an execution.

    Attributes:
        at: when it was started, by this call or an earlier one, UNIX seconds; None if an
            execution of this name has already ended.
    """

    arn: str
    at: float | None


class ExecutionState(Enum):
    """The state of an execution."""

    RUNNING = "running"
    ENDED = "ended"
    FAILED = "failed"


class Executions(Protocol):
    """What starts runs. Every method may raise TransientStoreError."""

    def start(self, name: str, document: str) -> Started:
        """Start an execution once: a second call with the same name and input does nothing."""
        ...

    def state_of(self, arn: str) -> ExecutionState:
        """Return the state of an execution; one that is no longer known has ended."""
        ...
