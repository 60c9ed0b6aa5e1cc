"""Registers messages about objects as items.

Items are written first, then the heads of their partitions; only then is a message acknowledged. So
an item without a head gets one when its message is delivered again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from compactor.errors import TransientStoreError
from compactor.planning.key_rules import KeyRules
from compactor.registry.events import ForeignMessage, Happened, ObjectEvent, decode
from compactor.registry.items import Item, Removal, latest
from compactor.registry.registry_ports import Registry
from compactor.registry.streams import Stream


@dataclass(slots=True)
class Registration:
    """The result of registering messages.

    Attributes:
        failed: ids of the messages to be delivered again, with the reason.
        refused: number of these that are not from S3.
        new: objects that were not known.
        known: duplicate or late events.
        withdrawn: objects that were removed.
        ignored: objects that belong to no stream.
    """

    failed: dict[str, str] = field(default_factory=dict)
    refused: int = 0
    new: int = 0
    known: int = 0
    withdrawn: int = 0
    ignored: int = 0


def register(
    messages: Iterable[tuple[str, str]],
    streams: Sequence[Stream],
    registry: Registry,
    now: float,
) -> Registration:
    """Register what messages report about objects. Safe to repeat, and in any order.

    Args:
        messages: id and body of each.
        streams: each gets the objects below its source.
        registry: where items are stored.
        now: UNIX seconds.

    Raises:
        InvalidInput: the table must not be used; no message is acknowledged then.
    """
    result = Registration()
    wanted = {stream.name: _Wanted(stream, now) for stream in streams}
    for message, body in messages:
        try:
            events = decode(body)
        except ForeignMessage as error:
            result.failed[message] = str(error)
            result.refused += 1
            continue
        for event in events:
            taken = [one.take(message, event) for one in wanted.values()]
            result.ignored += not any(taken)
    for one in wanted.values():
        one.store(registry, result)
    return result


class _Wanted:
    """What messages contain for one stream."""

    def __init__(self, stream: Stream, now: float) -> None:
        self._stream = stream
        self._now = now
        self._items: list[Item] = []
        self._removals: list[Removal] = []
        # Partition path and name -> ids of the messages about it.
        self._messages: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        self._reason_to_skip = KeyRules(stream.settings)

    def take(self, message: str, event: ObjectEvent) -> bool:
        """Add an event; return whether it belongs to this stream."""
        partition = self._stream.scheme.partition(event.bucket, event.key)
        if partition is None:
            return False
        name = event.key[len(partition.prefix) :]
        if event.happened is Happened.REMOVED:
            removal = Removal(partition, name, event.time, event.sequencer, event.version)
            self._removals.append(removal)
        else:
            item = Item(
                partition,
                name,
                event.etag,
                event.size,
                event.time,
                event.sequencer,
                self._now,
                event.version,
            )
            if self._is_unwanted(item):
                return False
            self._items.append(item)
        self._messages[partition.path, name].add(message)
        return True

    def store(self, registry: Registry, result: Registration) -> None:
        """Register everything, and record which messages failed."""
        name = self._stream.name
        if self._items:
            items = latest(self._items)
            found = registry.register(name, items)
            result.new += len(found.new)
            result.known += len(self._items) - len(found.new) - len(found.failed)
            for one, error in found.failed:
                self._fail(result, (one.partition.path, one.name), error)
            self._touch(registry, items, result)
        if self._removals:
            withdrawn = registry.withdraw(name, self._removals)
            result.withdrawn += withdrawn.done
            for removal, error in withdrawn.failed:
                self._fail(result, (removal.partition.path, removal.name), error)

    def _touch(self, registry: Registry, items: Sequence[Item], result: Registration) -> None:
        """Touch all partition heads, also for known items: an earlier try may have died."""
        newest: dict[str, float] = {}
        for one in items:
            path = one.partition.path
            newest[path] = max(newest.get(path, 0.0), one.time)
        for path, time in newest.items():
            try:
                registry.touch(self._stream.name, path, time)
            except TransientStoreError as error:
                for one in items:
                    if one.partition.path == path:
                        self._fail(result, (path, one.name), error)

    def _fail(self, result: Registration, place: tuple[str, str], error: Exception) -> None:
        for message in self._messages[place]:
            result.failed[message] = f"{type(error).__name__}: {error}"

    def _is_unwanted(self, item: Item) -> bool:
        return self._reason_to_skip(item.source) is not None
