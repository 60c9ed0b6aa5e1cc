"""Tables in memory, with the commit rules of Iceberg and Delta.

A table's data files are outputs in a :class:`MemoryStore`, or its own files, which a rewrite or
another writer created. The table's rows are read from them as by a query engine.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from compactor.errors import TableConflict, TransientStoreError
from compactor.sinks.contents import Contents, CurrentFiles, FileSet, History, TableChange
from compactor.sinks.named_history import Restored, Snapshot, restored_before, rolled_back
from compactor.sinks.table_catalog import Holdings, TableFile, TableState
from tests.support.memory_store import MemoryStore

Reader = Callable[[bytes], Sequence[int]]
ADDRESS = "glue:lake.events"
#: Operations of commits, by Iceberg's names.
APPEND, REWRITE = "append", "replace"
_METADATA_KEPT = 12


class TableGuard(StrEnum):
    """A condition that a table's client can leave out."""

    COMMIT_IF_UNCHANGED = "condition of the table's commit"
    NUMBER = "look at the table's number before each commit"
    DELETES = "look at what is deleted of a file"


@dataclass(frozen=True)
class Files:
    """The files of one state of a table.

    Attributes:
        outputs: outputs, as bucket and key.
        own: the table's own files.
        deletes: rows that are deleted without a new file, as name of the file and row.
    """

    outputs: frozenset[tuple[str, str]] = frozenset()
    own: frozenset[str] = frozenset()
    deletes: frozenset[tuple[str, Any]] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """The names of all files in the metadata."""
        return frozenset(map(uri_of, self.outputs)) | self.own

    def without(self, names: Collection[str]) -> Files:
        """Return the state without some files and their deleted rows."""
        return Files(
            frozenset(one for one in self.outputs if uri_of(one) not in names),
            frozenset(one for one in self.own if one not in names),
            frozenset(one for one in self.deletes if one[0] not in names),
        )


def uri_of(place: tuple[str, str]) -> str:
    """Return the name of an output in the metadata."""
    bucket, key = place
    return f"s3://{bucket}/{key}"


@dataclass
class _Node:
    snapshot: Snapshot
    files: Files
    change: _Change


@dataclass(frozen=True)
class _Change:
    """The changes of a commit: names of removed and added files, with their row counts."""

    operation: str
    removed: Mapping[str, int]
    added: Mapping[str, int]

    def told(self, at: str, history: History) -> TableChange:
        rewrites = self.operation == REWRITE
        rows = sum(self.removed.values())
        removed = [one for one in self.removed if history.follows(one)]
        one = FileSet(removed, rows, rows, sorted(self.added), sum(self.added.values()))
        return TableChange(f"{at} ({self.operation})", rewrites, [one])


class MemoryTable:
    """What both formats share: files, and the rows that are read from them.

    Attributes:
        uuid: the table's UUID; empty if it does not exist.
        own: rows of the table's own files; record numbers if the table has no key.
        numbers: the last published entry, by snapshot or version.
        forgot: True once the metadata no longer shows some rewrite.
        poison: records whose outputs do not fit the table before ``takes_all`` is set.
    """

    def __init__(self, s3: MemoryStore, read: Reader) -> None:
        self.s3 = s3
        self.uuid = ""
        self.own: dict[str, tuple[Any, ...]] = {}
        self.numbers: dict[int, int] = {}
        self.forgot = False
        self.poison: set[Any] = set()
        self.takes_all = False
        self._read = read
        self._rows: dict[str, int] = {}
        self._names = itertools.count(1)

    @property
    def files(self) -> Files:
        raise NotImplementedError

    def change(self, files: Files, operation: str) -> None:
        """Commit files on top of the current state."""
        raise NotImplementedError

    def records(self) -> Counter[Any]:
        """Return every row that a query finds, with its count."""
        return self.records_of(self.files)

    def records_of(self, files: Files) -> Counter[Any]:
        """Return the rows of one state of the table."""
        found: Counter[Any] = Counter()
        for place in files.outputs:
            found.update(self._of_output(place))
        for name in files.own:
            found.update(self.own[name])
        found.subtract(row for _, row in files.deletes)
        return +found

    def _of_output(self, place: tuple[str, str]) -> Sequence[Any]:
        bucket, key = place
        body = self.s3.contents(bucket).get(key)
        assert body is not None, f"the table names {key}, which is gone"
        return self._read(body)

    def written(self, records: Sequence[Any]) -> str:
        """Write a new file of the table's own; return its name."""
        name = f"own-{next(self._names)}"
        self.own[name] = tuple(records)
        return name

    # What others do.

    def append_foreign(self, records: Sequence[Any]) -> None:
        name = self.written(records)
        self.change(replace(self.files, own=self.files.own | {name}), APPEND)

    def rewrite(self) -> None:
        """Rewrite all records into one new file."""
        self.change(self.rewritten(), REWRITE)

    def rewritten(self) -> Files:
        return Files(own=frozenset({self.written(list(self.records().elements()))}))

    def delete(self, row: Any, *, in_place: bool) -> None:
        """Delete an existing row, either in place or by replacing its file."""
        files = self.files
        name, rows = next((name, rows) for name, rows in self._each(files) if row in rows)
        if in_place:
            self.change(replace(files, deletes=files.deletes | {(name, row)}), "delete")
            return
        kept = files.without({name})
        left = [one for one in rows if one != row]
        own = kept.own | {self.written(left)} if left else kept.own
        self.change(replace(kept, own=own), "overwrite")

    def overwrite(self, records: Sequence[Any]) -> None:
        """Replace all records by these."""
        self.change(Files(own=frozenset({self.written(records)})), "overwrite")

    def _each(self, files: Files) -> Iterator[tuple[str, list[Any]]]:
        """Yield the names of files, with the rows that a query finds in each."""
        held = [(uri_of(place), self._of_output(place)) for place in sorted(files.outputs)]
        held += [(name, self.own[name]) for name in sorted(files.own)]
        for name, rows in held:
            yield name, [row for row in rows if (name, row) not in files.deletes]

    def forget(self, kept: Files) -> None:
        """Delete the outputs that the table once had and no longer names."""
        for bucket, key in self.given - kept.outputs:
            self.s3.remove(bucket, key)
        self.given &= kept.outputs

    def _counted(self, names: Iterable[str], files: Files) -> dict[str, int]:
        """Return the row counts of files in the metadata; those of outputs are cached."""
        for place in files.outputs:
            # For a missing output the metadata keeps its writer's count.
            if uri_of(place) not in self._rows and place[1] in self.s3.contents(place[0]):
                self._rows[uri_of(place)] = len(self._of_output(place))
        return {one: self._rows[one] if one in self._rows else len(self.own[one]) for one in names}

    given: set[tuple[str, str]]
    properties: dict[str, str]


class IcebergTable(MemoryTable):
    """Snapshots with parents and sequence numbers, properties, and one pointer that is swapped."""

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
        self.numbers = {}
        self.given = set()
        self.earlier: list[dict[int, Snapshot]] = []

    def create(self) -> None:
        self.drop()
        self.uuid = f"uuid-{next(self._uuids)}"

    @property
    def files(self) -> Files:
        return self.snapshots[self.current].files if self.current is not None else Files()

    def change(self, files: Files, operation: str) -> None:
        self.commit(self.current, files, {}, operation)

    def commit(
        self, base: int | None, files: Files, properties: dict[str, str], operation: str = APPEND
    ) -> int:
        """Add a snapshot on top of ``base``; refused if the table is at another one."""
        if base != self.current:
            raise TableConflict("the table is at another snapshot")
        before = self.files
        self._log()
        made = next(self._ids)
        self.sequence += 1
        snapshot = Snapshot(base, self.sequence, not before.names)
        change = _Change(
            operation,
            self._counted(before.names - files.names, before),
            self._counted(files.names - before.names, files),
        )
        self.snapshots[made] = _Node(snapshot, files, change)
        self.current = made
        self.properties |= properties
        self.given |= files.outputs
        return made

    def _log(self) -> None:
        """Add the current metadata to the log of earlier ones, which has a limited length."""
        metadata = {name: node.snapshot for name, node in self.snapshots.items()}
        self.earlier = [metadata, *self.earlier][:_METADATA_KEPT]

    # What others do.

    def expire(self) -> None:
        """Expire all but the current snapshot and its files."""
        self.expire_these(name for name in [*self.snapshots] if name != self.current)

    def expire_these(self, names: Iterable[int], *, by_pyiceberg: bool = False) -> None:
        """Expire these snapshots and their unreferenced files.

        If by pyiceberg, the remaining snapshots also lose the id of an expired parent.
        """
        self._log()
        for name in names:
            self.forgot |= self.snapshots.pop(name).change.operation != APPEND
        for node in self.snapshots.values():
            if by_pyiceberg and node.snapshot.parent not in self.snapshots:
                node.snapshot = node.snapshot._replace(parent=None)
        named = frozenset().union(*(node.files.outputs for node in self.snapshots.values()))
        self.forget(Files(outputs=named))

    def go_back(self) -> bool:
        """Roll back to the parent snapshot; return False if it does not exist."""
        parent = self.snapshots[self.current].snapshot.parent if self.current is not None else None
        if parent not in self.snapshots:
            return False
        self._log()
        self.current = parent
        return True

    # What metadata says.

    def current_of(self, at: int, wanted: Callable[[str], bool]) -> CurrentFiles:
        """Return the files of a snapshot; raises TransientStoreError if it has expired since."""
        if at not in self.snapshots:
            raise TransientStoreError(f"snapshot {at} is gone: look again")
        files = self.snapshots[at].files
        names = {one for one in files.names if wanted(one)}
        partly = {name: "delete files" for name, _ in files.deletes if name in names}
        return CurrentFiles(names - partly.keys(), partly)

    def history(self, history: History) -> None:
        each = sorted(self.snapshots.items(), key=lambda one: one[1].snapshot.sequence)
        for name, node in each:
            if node.change.operation != APPEND:
                history.take(node.change.told(f"snapshot {name}", history))


class DeltaTable(MemoryTable):
    """Numbered versions, each created if absent; transactions by application."""

    def __init__(self, s3: MemoryStore, read: Reader) -> None:
        super().__init__(s3, read)
        self._uuids = itertools.count(1)
        self.drop()

    def drop(self) -> None:
        self.uuid = ""
        self.versions: list[Files] = []
        self.operations: list[str] = []
        self.transactions: dict[str, tuple[int, int]] = {}
        self.restores: list[Restored] = []
        self.properties = {}
        self.numbers = {}
        self.given = set()

    def create(self) -> None:
        self.drop()
        self.uuid = f"uuid-{next(self._uuids)}"
        self.versions.append(Files())
        self.operations.append(APPEND)

    @property
    def files(self) -> Files:
        return self.versions[-1] if self.versions else Files()

    def change(self, files: Files, operation: str) -> None:
        self.commit(len(self.versions), files, {}, operation)

    def commit(
        self, version: int, files: Files, transactions: dict[str, int], operation: str = APPEND
    ) -> None:
        """Create a version; refused if it exists."""
        if version != len(self.versions):
            raise TableConflict(f"version {version} is there")
        self._counted((), files)
        self.versions.append(files)
        self.operations.append(operation)
        self.transactions |= {app: (number, version) for app, number in transactions.items()}
        self.given |= files.outputs

    def expire(self) -> None:
        """Delete the files that only earlier versions name, like VACUUM."""
        self.forget(self.files)
        earlier = {name for version in self.versions for name in version.own}
        for name in earlier - self.files.own:
            self._rows[name] = len(self.own[name]) if name in self.own else self._rows[name]
            self.own.pop(name, None)

    def go_back(self) -> bool:
        """Restore the previous version; return False if there is none or its files are gone."""
        if len(self.versions) < 2:
            return False
        wanted = self.versions[-2]
        if wanted.outputs - self.given or wanted.own - self.own.keys():
            return False
        to = len(self.versions) - 2
        self.restores.append(Restored(len(self.versions), to))
        self.versions.append(self.versions[to])
        self.operations.append("restore")
        return True

    # What the log says.

    def current_of(self, at: int, wanted: Callable[[str], bool]) -> CurrentFiles:
        """Return the files of a version; with a deletion vector a file counts as another one."""
        named = self._named(self.versions[at])
        found = CurrentFiles({one for one in named if wanted(one)})
        found.partly = {
            one: "a deletion vector" for one, _ in self.versions[at].deletes if wanted(one)
        }
        return found

    def history(self, history: History) -> None:
        for version in range(1, len(self.versions)):
            before, after = (self._named(self.versions[one]) for one in (version - 1, version))
            gone, come = before.keys() - after.keys(), after.keys() - before.keys()
            change = _Change(
                self.operations[version],
                {one: before[one] for one in gone},
                {one: after[one] for one in come},
            )
            history.take(change.told(f"version {version}", history))

    def _named(self, files: Files) -> dict[str, int]:
        """Return name with deletion vector -> remaining rows, for each file."""
        counted = self._counted(files.names, files)
        taken: dict[str, list[str]] = {}
        for name, row in files.deletes:
            taken.setdefault(name, []).append(str(row))
        return {
            f"{name} {sorted(taken[name])}" if name in taken else name: rows
            - len(taken.get(name, ()))
            for name, rows in counted.items()
        }


def state_of(table: IcebergTable | DeltaTable, log_id: str) -> TableState | None:
    """Return the current table and its number for this log; None if there is no table."""
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
        fault = rolled_back(snapshots, table.current, ours, sequence, table.earlier)
    return _state(table, last, str(table.current), fault, table.current)


def _delta_state(table: DeltaTable, log_id: str) -> TableState:
    last, version = table.transactions.get(log_id, (0, 0))
    fault = restored_before(table.restores, version) if last else ""
    now = len(table.versions) - 1
    return _state(table, last, str(now), fault, now)


def _state(
    table: MemoryTable, last: int, version: str, fault: str, handle: int | None
) -> TableState:
    properties = dict(table.properties)
    shape = "wide" if table.takes_all else "narrow"
    place = "s3://tables/t"
    return TableState(table.uuid, place, last, version, fault, handle, properties, shape=shape)


def commit_with_number(
    table: IcebergTable | DeltaTable, at: int | None, files: Files, log_id: str, number: int
) -> object:
    """Commit files with a number, on top of the snapshot or version that was read.

    Returns:
        The new snapshot or version.

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
        table.numbers[made] = number
        return made
    assert at is not None
    table.commit(at + 1, files, {log_id: number})
    table.numbers[at + 1] = number
    return at + 1


def ancestors_of(table: IcebergTable | DeltaTable) -> Iterator[tuple[int, Files]]:
    """Yield the known ancestors of the current state, newest first, itself included."""
    if isinstance(table, IcebergTable):
        at = table.current
        while at in table.snapshots:
            yield at, table.snapshots[at].files
            at = table.snapshots[at].snapshot.parent
        if at is not None:
            yield -1, Files()
        return
    version, back = len(table.versions) - 1, {one.version: one.to for one in table.restores}
    while version >= 0:
        yield version, table.versions[version]
        version = back.get(version, version - 1)


def holdings_of(table: IcebergTable | DeltaTable, outputs: Collection[str]) -> Holdings:
    """Return which outputs a table has; see :class:`compactor.sinks.table_catalog.Holdings`."""
    number: int | None = 0
    seen: set[str] = set()
    for at, files in ancestors_of(table):
        if at in table.numbers or at < 0:
            number = table.numbers.get(at)
            break
        seen |= {f"s3://{bucket}/{key}" for bucket, key in files.outputs}
    present = {f"s3://{bucket}/{key}" for bucket, key in table.files.outputs} & set(outputs)
    passed = (seen & set(outputs)) - present
    rows = sum(len(table.own[name]) for name in table.files.own)
    return Holdings(frozenset(present), frozenset(passed), number, len(table.files.own), rows)


def now_at(table: IcebergTable | DeltaTable) -> int | None:
    """Return the current snapshot or version of a table."""
    return table.current if isinstance(table, IcebergTable) else len(table.versions) - 1


@dataclass
class MemoryCatalog:
    """Implements :class:`compactor.sinks.table_catalog.TableCatalog`.

    Attributes:
        table: the table in memory.
        ask: performs each request; called with its name and a function that sends it.
        without: conditions that are left out.
        misfits: why an output does not fit, by its key.
        believed: the table's number as cached by a publisher that reads it only once.
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

    def holdings(self, table: TableState, outputs: Collection[str]) -> Holdings:
        found = self.ask("table_holdings", lambda: holdings_of(self.table, outputs))
        assert isinstance(found, Holdings)
        return found

    def contents(self, table: TableState) -> Contents:
        at = table.handle
        assert isinstance(at, int) or at is None

        def read(wanted: Callable[[str], bool]) -> object:
            found = CurrentFiles() if at is None else self.table.current_of(at, wanted)
            if TableGuard.DELETES in self.without:
                found.whole |= found.partly.keys()
            return found

        def current(wanted: Callable[[str], bool]) -> CurrentFiles:
            found = self.ask("table_files", lambda: read(wanted))
            assert isinstance(found, CurrentFiles)
            return found

        def history(history: History) -> None:
            self.ask("table_history", lambda: self.table.history(history))

        return Contents("s3://", current, history)

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
        # A file that is named twice is read twice; a copy of it makes its records count twice.
        twice = [place for place in added if place in before.outputs]
        own = before.own | {self._copy(place) for place in twice}
        after = replace(before, outputs=before.outputs | added.keys(), own=own)
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
    """Send a request and lose its answer."""
    request()
    raise TransientStoreError("no answer")
