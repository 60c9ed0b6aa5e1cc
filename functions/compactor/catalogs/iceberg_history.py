"""What the history of an Iceberg table shows: the outputs it was given, and its past columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus
from pyiceberg.schema import index_name_by_id
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.table.snapshots import Snapshot

from compactor.errors import TransientStoreError
from compactor.sinks.table_catalog import Holdings

# Marks a cherry-picked snapshot: a copy of one commit, which says nothing about earlier ones.
_COPY_OF = "source-snapshot-id"


def holdings(table: Table, number_property: str, outputs: Collection[str]) -> Holdings:
    """Return which outputs a table has; implements :class:`TableCatalog`'s method.

    Args:
        table: as it was loaded.
        number_property: key of our entry number in the summary of each of our snapshots.
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
    """Return the number of the latest ancestor that has one, and all snapshots after it.

    The number is 0 if no ancestor back to the table's first snapshot has one, and None if
    ancestors have expired.
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
    """Return whether a parentless snapshot is the first; pyiceberg also clears expired parents."""
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
            # A rewritten manifest also names the files of earlier snapshots.
            added = entry.status == ManifestEntryStatus.ADDED
            if added and entry.snapshot_id in (None, snapshot.snapshot_id):
                yield entry.data_file.file_path


def past_columns(metadata: TableMetadata) -> dict[str, str]:
    """Return what became of each past column whose field was renamed or dropped.

    Files without field ids, such as outputs, are read by column name. A name that used to be
    another field's would therefore show the values of older files.

    Returns:
        A phrase by the column's name in lower case, such as ``dropped``.
    """
    now = index_name_by_id(metadata.schema())
    names = {name.lower() for name in now.values()}
    found: dict[str, str] = {}
    for field_id, name in _every_name(metadata):
        if now.get(field_id) == name:
            continue
        became = f"renamed to {now[field_id]}" if field_id in now else "dropped"
        again = ", and has another column of this name now" if name.lower() in names else ""
        found[name.lower()] = f"{became}{again}"
    return found


def _every_name(metadata: TableMetadata) -> Iterator[tuple[int, str]]:
    """Yield field ids and names, as far back as the table's metadata has them."""
    for schema in metadata.schemas:
        yield from index_name_by_id(schema).items()
    mapping = metadata.name_mapping()
    if mapping is not None:
        yield from mapped_names(mapping)


def mapped_names(mapping: NameMapping) -> Iterator[tuple[int, str]]:
    """Yield field ids with the names that a mapping has for them, including nested ones."""
    yield from _mapped(mapping.root, "")


def _mapped(fields: Iterable[MappedField], path: str) -> Iterator[tuple[int, str]]:
    for one in fields:
        for name in one.names:
            if one.field_id is not None:
                yield one.field_id, f"{path}{name}"
            yield from _mapped(one.fields, f"{path}{name}.")


def name_mapping(metadata: TableMetadata) -> NameMapping:
    """Return the mapping for files without field ids: each name maps to its first field.

    Dropped fields are included: pyiceberg cannot read a file with an unmapped column.
    """
    owners: dict[str, int | None] = {}
    names: dict[int | None, list[str]] = {}
    found: dict[int | None, MappedField] = {}
    for schema in (*sorted(metadata.schemas, key=lambda one: one.schema_id), metadata.schema()):
        for one in schema.name_mapping.root:
            (name,) = one.names
            own = names.setdefault(one.field_id, [])
            if owners.setdefault(name, one.field_id) == one.field_id and name not in own:
                own.append(name)
            found[one.field_id] = one
    return NameMapping([one.model_copy(update={"names": names[key]}) for key, one in found.items()])
