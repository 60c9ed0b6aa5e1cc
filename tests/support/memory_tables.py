"""Tables in memory, by the commit rules of Iceberg and of Delta.

A table's data files are outputs in a :class:`MemoryStore`, or files of its own that a rewrite or
another writer made. What a table holds is read from them as a query engine would.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from compactor.errors import TableConflict, TransientStoreError
from compactor.tables.history import Restored, Snapshot, restored_before, rolled_back
from compactor.tables.port import TableFile, TableState
from tests.support.memory_store import MemoryStore

Reader = Callable[[bytes], Sequence[int]]
ADDRESS = "glue:lake.events"


class TableGuard(StrEnum):
    """A condition that a table's client can be made to leave out."""

    COMMIT_IF_UNCHANGED = "condition of the table's commit"
    NUMBER = "look at the table's number before each commit"


@dataclass(frozen=True)
class Files:
    """What one state of a table is made of: outputs by bucket and key, and files of its own."""

    outputs: frozenset[tuple[str, str]] = frozenset()
    own: frozenset[str] = frozenset()


@dataclass
class _Node:
    snapshot: Snapshot
    files: Files


class MemoryTable:
    """What both kinds share: files, and what is read from them.

    Attributes:
        uuid: of the table that stands there; empty where none does.
        own: rows of the table's own files; of a table without a key, numbers of records.
        poison: records whose outputs do not fit the table before ``takes_all`` is set.
    """

    def __init__(self, s3: MemoryStore, read: Reader) -> None:
        self.s3 = s3
        self.uuid = ""
        self.own: dict[str, tuple[Any, ...]] = {}
        self.poison: set[Any] = set()
        self.takes_all = False
        self._read = read
        self._names = itertools.count(1)

    @property
    def files(self) -> Files:
        raise NotImplementedError

    def records(self) -> Counter[Any]:
        """Every row that a query finds, and how often."""
        return self.records_of(self.files)

    def records_of(self, files: Files) -> Counter[Any]:
        """The rows of one state of the table."""
        found: Counter[Any] = Counter()
        for bucket, key in files.outputs:
            body = self.s3.contents(bucket).get(key)
            assert body is not None, f"the table names {key}, which is gone"
            found.update(self._read(body))
        for name in files.own:
            found.update(self.own[name])
        return found

    def written(self, records: Sequence[Any]) -> str:
        """A new file of the table's own."""
        name = f"own-{next(self._names)}"
        self.own[name] = tuple(records)
        return name

    def rewritten(self) -> Files:
        """The same records in one new file."""
        return Files(own=frozenset({self.written(list(self.records().elements()))}))

    def forget(self, kept: Files) -> None:
        """Delete the outputs that the table was given, and that nothing of it names any more."""
        for bucket, key in self.given - kept.outputs:
            self.s3.remove(bucket, key)
        self.given &= kept.outputs

    given: set[tuple[str, str]]
    properties: dict[str, str]


class IcebergTable(MemoryTable):
    """Snapshots with parents and sequence numbers, properties, one pointer swapped at a time."""

    def __init__(self, s3: MemoryStore, read: Reader) -> None:
        super().__init__(s3, read)
        self._ids = itertools.count(1001)
        self._uuids = itertools.count(1)
        self.drop()

    def drop(self) -> None:
        self.uuid = ""
        self.snapshots: dict[int, _Node] = {}
        self.current: int | None = None
        self.sequence = 0
        self.properties = {}
        self.given = set()

    def create(self) -> None:
        self.drop()
        self.uuid = f"uuid-{next(self._uuids)}"

    @property
    def files(self) -> Files:
        return self.snapshots[self.current].files if self.current is not None else Files()

    def commit(self, base: int | None, files: Files, properties: dict[str, str]) -> int:
        """A new snapshot on top of one; refused when the table is at another one."""
        if base != self.current:
            raise TableConflict("the table is at another snapshot")
        made = next(self._ids)
        self.sequence += 1
        self.snapshots[made] = _Node(Snapshot(base, self.sequence), files)
        self.current = made
        self.properties |= properties
        self.given |= files.outputs
        return made

    # What others do.

    def append_foreign(self, records: Sequence[Any]) -> None:
        files = self.files
        name = self.written(records)
        self.commit(self.current, replace(files, own=files.own | {name}), {})

    def rewrite(self) -> None:
        self.commit(self.current, self.rewritten(), {})

    def expire(self) -> None:
        """Only the current snapshot stays, and only its files."""
        if self.current is not None:
            self.snapshots = {self.current: self.snapshots[self.current]}
            self.forget(self.files)

    def go_back(self) -> bool:
        """Roll back to the snapshot before; False where it is not there."""
        parent = self.snapshots[self.current].snapshot.parent if self.current is not None else None
        if parent not in self.snapshots:
            return False
        self.current = parent
        return True


class DeltaTable(MemoryTable):
    """Numbered versions, each created if absent; transactions by application."""

    def __init__(self, s3: MemoryStore, read: Reader) -> None:
        super().__init__(s3, read)
        self._uuids = itertools.count(1)
        self.drop()

    def drop(self) -> None:
        self.uuid = ""
        self.versions: list[Files] = []
        self.transactions: dict[str, tuple[int, int]] = {}
        self.restores: list[Restored] = []
        self.properties = {}
        self.given = set()

    def create(self) -> None:
        self.drop()
        self.uuid = f"uuid-{next(self._uuids)}"
        self.versions.append(Files())

    @property
    def files(self) -> Files:
        return self.versions[-1] if self.versions else Files()

    def commit(self, version: int, files: Files, transactions: dict[str, int]) -> None:
        """Create a version, refused where it is there."""
        if version != len(self.versions):
            raise TableConflict(f"version {version} is there")
        self.versions.append(files)
        self.transactions |= {app: (number, version) for app, number in transactions.items()}
        self.given |= files.outputs

    def append_foreign(self, records: Sequence[Any]) -> None:
        files = self.files
        name = self.written(records)
        self.commit(len(self.versions), replace(files, own=files.own | {name}), {})

    def rewrite(self) -> None:
        self.commit(len(self.versions), self.rewritten(), {})

    def expire(self) -> None:
        """VACUUM of all that only earlier versions name."""
        self.forget(self.files)
        earlier = {name for version in self.versions for name in version.own}
        for name in earlier - self.files.own:
            self.own.pop(name, None)

    def go_back(self) -> bool:
        """RESTORE the version before; False where there is none, or its files are gone."""
        if len(self.versions) < 2:
            return False
        wanted = self.versions[-2]
        if wanted.outputs - self.given or wanted.own - self.own.keys():
            return False
        to = len(self.versions) - 2
        self.restores.append(Restored(len(self.versions), to))
        self.versions.append(self.versions[to])
        return True


def state_of(table: IcebergTable | DeltaTable, log_id: str) -> TableState | None:
    """The table as it is now, and the number that it says for this log; None where none stands."""
    if not table.uuid:
        return None
    found = _iceberg_state if isinstance(table, IcebergTable) else _delta_state
    return found(table, log_id)  # type: ignore[arg-type] # each is given its own kind


def _iceberg_state(table: IcebergTable, log_id: str) -> TableState:
    last = int(table.properties.get(f"{log_id}.last", "0"))
    fault = ""
    if last:
        ours = int(table.properties[f"{log_id}.snapshot"])
        sequence = int(table.properties[f"{log_id}.sequence"])
        snapshots = {name: node.snapshot for name, node in table.snapshots.items()}
        fault = rolled_back(snapshots, table.current, ours, sequence)
    return _state(table, last, str(table.current), fault, table.current)


def _delta_state(table: DeltaTable, log_id: str) -> TableState:
    last, version = table.transactions.get(log_id, (0, 0))
    fault = restored_before(table.restores, version) if last else ""
    now = len(table.versions) - 1
    return _state(table, last, str(now), fault, now)


def _state(
    table: MemoryTable, last: int, version: str, fault: str, handle: int | None
) -> TableState:
    rows = table.records().total()
    properties = dict(table.properties)
    shape = "wide" if table.takes_all else "narrow"
    place = "s3://tables/t"
    return TableState(
        table.uuid, place, last, version, rows, fault, handle, properties, shape=shape
    )


def commit_with_number(
    table: IcebergTable | DeltaTable, at: int | None, files: Files, log_id: str, number: int
) -> object:
    """A commit on what was read at a snapshot, or version, that says how far the table is.

    Returns:
        The snapshot, or the version, that it made.

    Raises:
        TableConflict: the table is at another one.
    """
    if isinstance(table, IcebergTable):
        made = table.commit(at, files, {})
        table.properties |= {
            f"{log_id}.last": str(number),
            f"{log_id}.snapshot": str(made),
            f"{log_id}.sequence": str(table.sequence),
        }
        return made
    assert at is not None
    table.commit(at + 1, files, {log_id: number})
    return at + 1


def now_at(table: IcebergTable | DeltaTable) -> int | None:
    """The snapshot, or the version, that the table is at."""
    return table.current if isinstance(table, IcebergTable) else len(table.versions) - 1


@dataclass
class MemoryCatalog:
    """Implements :class:`compactor.tables.port.TableCatalog`.

    Attributes:
        table: in memory.
        ask: called before each request with its name; what it returns does the request.
        without: conditions that are left out.
        misfits: why an output does not fit, by its key.
        believed: of a publisher that looks at the table's number once: what it takes it for.
    """

    table: IcebergTable | DeltaTable
    ask: Callable[[str, Callable[[], object]], object] = lambda _, request: request()
    without: frozenset[TableGuard] = frozenset()
    log_id: str = ""
    misfits: dict[str, Exception] = field(default_factory=dict)
    believed: int | None = None

    @property
    def address(self) -> str:
        return ADDRESS

    def load(self, log_id: str) -> TableState | None:
        self.log_id = log_id
        state = self.ask("table_load", self._load)
        assert state is None or isinstance(state, TableState)
        return state

    def create(self, files: Sequence[TableFile]) -> None:
        assert files

        def make() -> None:
            if self.table.uuid:
                raise TableConflict("it is there")
            self.table.create()

        self.ask("table_create", make)

    def unfit(
        self, table: TableState | None, files: Sequence[TableFile], *, evolve: bool
    ) -> Mapping[TableFile, str]:
        found = {one: str(self.misfits[one.key]) for one in files if one.key in self.misfits}
        if evolve:
            found = {}
        poison: set[Any] = set() if self.table.takes_all else self.table.poison
        there = [one for one in files if one.key in self.table.s3.contents(one.bucket)]
        for one in there:
            if poison & self.table.records_of(Files(frozenset({(one.bucket, one.key)}))).keys():
                found[one] = "a column is of another type"
        return found

    def append(
        self, table: TableState, files: Sequence[TableFile], number: int, *, evolve: bool
    ) -> str:
        done = self.ask("table_commit", lambda: self._append(table, files, number))
        self.believed = number
        return str(done)

    def _load(self) -> TableState | None:
        found = state_of(self.table, self.log_id)
        if found is not None and TableGuard.NUMBER in self.without:
            self.believed = found.last if self.believed is None else self.believed
            found = replace(found, last=self.believed)
        return found

    def _append(self, table: TableState, files: Sequence[TableFile], number: int) -> object:
        there = self.table
        if not there.uuid or there.uuid != table.uuid:
            raise TableConflict("it is another table")
        before = there.files
        added = Counter((one.bucket, one.key) for one in files)
        # One file named twice is read twice; here its records are counted by a file of its own.
        twice = [place for place in added if place in before.outputs]
        own = before.own | {self._copy(place) for place in twice}
        after = Files(before.outputs | added.keys(), own)
        at = table.handle if self._conditional else now_at(there)
        assert at is None or isinstance(at, int)
        return commit_with_number(there, at, after, self.log_id, number)

    def _copy(self, place: tuple[str, str]) -> str:
        records = self.table.records_of(Files(outputs=frozenset({place})))
        return self.table.written(list(records.elements()))

    @property
    def _conditional(self) -> bool:
        return TableGuard.COMMIT_IF_UNCHANGED not in self.without


def unanswered(request: Callable[[], object]) -> object:
    """A request that is done, and whose answer is lost."""
    request()
    raise TransientStoreError("no answer")
