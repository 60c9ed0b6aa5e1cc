"""What the history of an Iceberg table shows: which outputs it was given, and its past columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from compactor.errors import TransientStoreError
from compactor.tables.port import Holdings

# A cherry-picked snapshot is a copy of a commit, and says nothing of those before it.
_COPY_OF = "source-snapshot-id"


def holdings(table: Table, number_property: str, outputs: Collection[str]) -> Holdings:
    """Which outputs a table has; see :class:`compactor.tables.port.TableCatalog`.

    Args:
        table: as it was loaded.
        number_property: by which the summary of each of our snapshots has its number.
        outputs: their URIs.

    Raises:
        TransientStoreError: a snapshot expired while it was read.
    """
    wanted = frozenset(outputs)
    number, since = _since_our_last(table.metadata, number_property)
    present: set[str] = set()
    others = other_rows = 0
    try:
        for entry in _live(table.metadata, table.io):
            if entry.data_file.file_path in wanted:
                present.add(entry.data_file.file_path)
            else:
                others += 1
                other_rows += entry.data_file.record_count
        added = {path for one in since for path in _added(one, table.io)}
    except FileNotFoundError as error:
        raise TransientStoreError(f"{error} is gone: look again") from error
    return Holdings(
        present=frozenset(present),
        passed=(wanted & added) - present,
        number=number,
        others=others,
        other_rows=other_rows,
    )


def _since_our_last(metadata: TableMetadata, name: str) -> tuple[int | None, list[Snapshot]]:
    """The number of the last ancestor that has one, and all snapshots after it.

    The number is 0 where the first snapshot of all has none, and None where it expired.
    """
    since: list[Snapshot] = []
    at = metadata.current_snapshot()
    while at is not None:
        number = _number(at, name)
        if number is not None:
            return number, since
        since.append(at)
        if at.parent_snapshot_id is None:
            return (0 if _is_first(at, metadata) else None), since
        at = metadata.snapshot_by_id(at.parent_snapshot_id)
        if at is None:
            return None, since
    return 0, since


def _is_first(snapshot: Snapshot, metadata: TableMetadata) -> bool:
    """True when a snapshot without a parent never had one: pyiceberg forgets those that expire."""
    known = {one.sequence_number for one in metadata.snapshots}
    sequence = snapshot.sequence_number
    return bool(sequence) and known.issuperset(range(1, sequence or 1))


def _number(snapshot: Snapshot, name: str) -> int | None:
    summary = snapshot.summary
    text = summary[name] if summary is not None and summary[_COPY_OF] is None else None
    return int(text) if text is not None and text.isdecimal() else None


def _live(metadata: TableMetadata, io: FileIO) -> Iterator[ManifestEntry]:
    current = metadata.current_snapshot()
    for manifest in current.manifests(io) if current is not None else ():
        if manifest.content == ManifestContent.DATA:
            yield from manifest.fetch_manifest_entry(io, discard_deleted=True)


def _added(snapshot: Snapshot, io: FileIO) -> Iterator[str]:
    for manifest in snapshot.manifests(io):
        if manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=False):
            # A rewritten manifest names the files of earlier snapshots as well.
            added = entry.status == ManifestEntryStatus.ADDED
            if added and entry.snapshot_id in (None, snapshot.snapshot_id):
                yield entry.data_file.file_path
