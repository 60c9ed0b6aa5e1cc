"""The product with one guard of the registry removed: event schedules must notice each removal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest.mock import patch

from compactor.partition.events import _Judge
from compactor.registry.items import Item, ItemState, Mark
from compactor.registry.registering import _Wanted
from tests.support.memory_registry import MemoryRegistry


@contextmanager
def _each_name_is_new() -> Iterator[None]:
    """Never reuse a name: repeated and concurrent starts then start their batch again."""
    numbers = iter(range(10**9))

    def name(stream: str, born: str, number: int) -> str:
        return f"{stream}-{born}-{number}-{next(numbers)}"

    with patch("compactor.registry.starting.execution_name", name):
        yield


@contextmanager
def _heads_before_items() -> Iterator[None]:
    store = _Wanted.store

    def touch_first(self: Any, registry: Any, result: Any) -> None:
        self._touch(registry, self._items, result)
        with patch.object(_Wanted, "_touch", lambda *_: None):
            store(self, registry, result)

    with patch.object(_Wanted, "store", touch_first):
        yield


def _marked_unseen(self: _Judge, item: Item) -> Mark:
    return Mark(item, ItemState.COMPACTED)


def _mark_anyway(self: MemoryRegistry, stream: str, marks: Any, now: float) -> int:
    for mark in list(marks):
        self.hook("mark")
        place = stream, mark.item.partition.path, mark.item.name
        self.items[place] = type(mark.item)(
            mark.item.partition,
            mark.item.name,
            mark.item.etag,
            mark.item.size,
            mark.item.time,
            mark.item.sequencer,
            state=mark.state,
            reason=mark.reason,
        )
    return 0


def _rest_anyway(self: MemoryRegistry, stream: str, head: Any, now: float) -> bool:
    self.hook("rest")
    self._heads[stream, head.path].active = False
    return True


def _in(place: str, instead: Any) -> Callable[[], AbstractContextManager[Any]]:
    return lambda: patch(place, instead)


_TABLE = "tests.support.memory_registry"
EVENT_MUTATIONS: Mapping[str, Callable[[], AbstractContextManager[Any]]] = {
    "the condition of a put": _in(f"{_TABLE}.supersedes", lambda new, old: True),
    "the sequencer of a put": _in(
        f"{_TABLE}.supersedes", lambda new, old: new.etag != old.etag or not new.sequencer
    ),
    "the sequencer of a delete": _in(f"{_TABLE}.withdraws", lambda removal, old: old is not None),
    "the name of an execution": _each_name_is_new,
    "items before heads": _heads_before_items,
    "a mark only of what the log names": _in(
        "compactor.partition.events._Judge.__call__", _marked_unseen
    ),
    "the condition of a mark": _in(f"{_TABLE}.MemoryRegistry.mark", _mark_anyway),
    "the condition of a rest": _in(f"{_TABLE}.MemoryRegistry.rest", _rest_anyway),
}

#: Seeds of schedules that noticed; an outdated one only costs time.
EVENT_NOTICED: Mapping[str, int] = {
    "the sequencer of a delete": 177,
    "the name of an execution": 81,
    "items before heads": 64,
    "a mark only of what the log names": 44,
    "the condition of a mark": 1572,
    "the condition of a rest": 102,
}
