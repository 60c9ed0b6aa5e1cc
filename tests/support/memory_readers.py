"""The readers' table in memory, by Glue's rules: no conditions on partitions, batches of 100.

With a simple query engine, which plans from the catalog and reads the objects later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from compactor.errors import AlreadyExists
from compactor.readers.reader_catalog import CatalogChange, CatalogEntry, Values
from tests.support.memory_store import MemoryStore
from tests.support.world import records_in

TABLE = "glue:lake.logs"
SYMLINK = "SymlinkTextInputFormat"
_MOST = 100


@dataclass
class MemoryReaders:
    """Implements :class:`compactor.readers.reader_catalog.ReaderCatalog`.

    Attributes:
        before_change: called before partitions are changed, to do what others do meanwhile.
        refuse: partitions whose change is refused, with the reason.
    """

    made: dict[str, Any] | None = None
    partitions: dict[Values, CatalogEntry] = field(default_factory=dict)
    before_change: Callable[[], None] = lambda: None
    refuse: dict[Values, str] = field(default_factory=dict)
    changes: int = 0

    def table(self) -> Mapping[str, Any] | None:
        return deepcopy(self.made)

    def create_table(self, document: Mapping[str, Any]) -> None:
        if self.made is not None:
            raise AlreadyExists("it is there")
        self.made = deepcopy(dict(document))

    def entries(self, wanted: Sequence[Values]) -> Mapping[Values, CatalogEntry]:
        return {values: self.partitions[values] for values in wanted if values in self.partitions}

    def change(self, changes: Sequence[CatalogChange]) -> Mapping[Values, str]:
        assert len(changes) <= _MOST
        self.before_change()
        refused: dict[Values, str] = {}
        for one in changes:
            if one.values in self.refuse:
                refused[one.values] = self.refuse[one.values]
            elif one.new == (one.values in self.partitions):
                refused[one.values] = "AlreadyExists" if one.new else "EntityNotFound"
            else:
                self.changes += 1
                self.partitions[one.values] = CatalogEntry(
                    one.values,
                    one.descriptor["Location"],
                    one.descriptor["InputFormat"],
                    dict(one.parameters),
                    deepcopy(dict(one.descriptor)),
                )
        return refused


def planned(catalog: MemoryReaders, store: MemoryStore) -> list[tuple[str, str]]:
    """Return the objects that a query over the whole table reads, as an engine plans it."""
    found: list[tuple[str, str]] = []
    for entry in catalog.partitions.values():
        bucket, _, prefix = entry.location.removeprefix("s3://").partition("/")
        there = _visible(store, bucket, prefix)
        if SYMLINK not in entry.input_format:
            found += [(bucket, key) for key in there]
            continue
        for key in there:
            lines = store.get(bucket, key).decode().split("\n")[:-1]
            for line in lines:
                assert line.startswith("s3://"), f"an engine stumbles over {line!r}"
                target, _, name = line.removeprefix("s3://").partition("/")
                found.append((target, name))
    return found


def read(plan: Sequence[tuple[str, str]], store: MemoryStore) -> Counter[int]:
    """Return the records of a plan's objects; a missing one fails the query, as in engines."""
    found: Counter[int] = Counter()
    for bucket, key in plan:
        found += records_in(store.get(bucket, key))
    return found


def shown(catalog: MemoryReaders, store: MemoryStore) -> Counter[int]:
    """Return the records that a query reads now."""
    return read(planned(catalog, store), store)


def _visible(store: MemoryStore, bucket: str, prefix: str) -> list[str]:
    found = []
    for page in store.list_objects(bucket, prefix):
        for one in page:
            segments = one.key[len(prefix) :].split("/")
            if one.size and not any(name.startswith(("_", ".")) for name in segments):
                found.append(one.key)
    return found
