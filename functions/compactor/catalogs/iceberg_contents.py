"""Which files an Iceberg table consists of, and what replaced others, from its manifests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyiceberg.manifest import ManifestContent, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Snapshot

from compactor.errors import TransientStoreError
from compactor.settings.uris import S3Uri
from compactor.sinks.contents import Contents, CurrentFiles, FileSet, History, TableChange
from compactor.table_formats.answers import translated
from compactor.table_formats.iceberg_manifests import Deletes, Entry, Reading

_DELETED, _ADDED = ManifestEntryStatus.DELETED, ManifestEntryStatus.ADDED
_Place = tuple[int, object]


def iceberg_contents(table: Table, address: str, below: S3Uri) -> Contents:
    """Return the contents of a table at its current snapshot.

    Args:
        table: as loaded by pyiceberg.
        address: of the table, for messages.
        below: prefix of all outputs.
    """
    reader = _Reader(table, address)
    return Contents(below.uri, reader.current, reader.history)


class _Reader:
    def __init__(self, table: Table, address: str) -> None:
        self._metadata = table.metadata
        self._io = table.io
        self._address = address
        self._reading = Reading(address, table.metadata, table.io)

    def current(self, wanted: Callable[[str], bool]) -> CurrentFiles:
        found = CurrentFiles()
        snapshot = self._metadata.current_snapshot()
        if snapshot is None:
            return found
        with self._answers():
            manifests = snapshot.manifests(self._io)
            deletes = Deletes()
            for entry, spec in self._reading.entries(
                manifests,
                ManifestContent.DELETES,
                lambda one: one.referenced is None or wanted(one.referenced),
            ):
                deletes.add(entry, spec)
            for entry, spec in self._reading.entries(
                manifests,
                ManifestContent.DATA,
                lambda one: one.status != _DELETED and wanted(one.path),
            ):
                if deletes.of(entry, spec.spec_id)[0]:
                    found.partly[entry.path] = self._taken_by(deletes, entry, spec.spec_id)
                else:
                    found.whole.add(entry.path)
        return found

    def _taken_by(self, deletes: Deletes, entry: Entry, spec_id: int) -> str:
        rows = deletes.of(entry, spec_id)[1]
        newest = deletes.newest(entry, spec_id)
        known = (
            one.snapshot_id for one in self._metadata.snapshots if one.sequence_number == newest
        )
        at = next((f"snapshot {one}" for one in known), "a snapshot that expired")
        what = f"delete {rows:,} of its rows" if rows else "may delete rows of it"
        return f"delete files, the newest of {at}, {what}"

    def history(self, history: History) -> None:
        # A rewrite still shows where rows went if its snapshot is no longer an ancestor.
        for snapshot in sorted(self._metadata.snapshots, key=lambda one: one.sequence_number or 0):
            operation = snapshot.summary.operation if snapshot.summary is not None else None
            if operation != Operation.APPEND:
                history.take(self._change(snapshot, operation, history))

    def _change(
        self, snapshot: Snapshot, operation: Operation | None, history: History
    ) -> TableChange:
        rewrites = operation == Operation.REPLACE
        suffix = f" ({operation.value})" if operation is not None else ""
        at = f"snapshot {snapshot.snapshot_id}{suffix}"
        gathered = _Gathered(snapshot.snapshot_id, history.follows, rewrites=rewrites)
        with self._answers():
            try:
                own = [one for one in snapshot.manifests(self._io) if _is_own(one, snapshot)]
                for entry, spec in self._reading.entries(
                    own, ManifestContent.DATA, gathered.is_change
                ):
                    gathered.add(entry, spec.spec_id)
            except FileNotFoundError:
                # The snapshot expired after the table was loaded, so its manifests are gone.
                return TableChange(at, rewrites, ())
        return TableChange(at, rewrites, gathered.sets())

    @contextmanager
    def _answers(self) -> Iterator[None]:
        with translated(self._address):
            try:
                yield
            except FileNotFoundError as error:
                raise TransientStoreError(
                    f"{self._address}: {error} is gone: look again"
                ) from error


def _is_own(manifest: ManifestFile, snapshot: Snapshot) -> bool:
    return manifest.added_snapshot_id == snapshot.snapshot_id


@dataclass(slots=True)
class _Sums:
    removed: list[str] = field(default_factory=list)
    removed_rows: int = 0
    added: list[str] = field(default_factory=list)
    added_rows: int = 0


class _Gathered:
    """What one snapshot removed and added, by partition."""

    def __init__(self, snapshot_id: int, follows: Callable[[str], bool], *, rewrites: bool) -> None:
        self._snapshot_id = snapshot_id
        self._follows = follows
        self._rewrites = rewrites
        self._found: dict[_Place, _Sums] = {}
        self._specs: set[int] = set()

    def is_change(self, entry: Entry) -> bool:
        """Return True for entries of this snapshot; manifests also carry those of others."""
        return entry.snapshot_id == self._snapshot_id and entry.status in (_DELETED, _ADDED)

    def add(self, entry: Entry, spec_id: int) -> None:
        self._specs.add(spec_id)
        sums = self._found.setdefault((spec_id, entry.partition), _Sums())
        if entry.status == _DELETED:
            sums.removed_rows += entry.rows
            if self._follows(entry.path):
                sums.removed.append(entry.path)
            return
        sums.added_rows += entry.rows
        if self._rewrites:
            sums.added.append(entry.path)

    def sets(self) -> list[FileSet]:
        """Return one set for each partition, or a single one if the partitioning changed."""
        found = list(self._found.values())
        if len(self._specs) > 1:
            found = [_together(found)]
        return [
            FileSet(one.removed, one.removed_rows, one.removed_rows, one.added, one.added_rows)
            for one in found
        ]


def _together(found: list[_Sums]) -> _Sums:
    made = _Sums()
    for one in found:
        made.removed += one.removed
        made.removed_rows += one.removed_rows
        made.added += one.added
        made.added_rows += one.added_rows
    return made
