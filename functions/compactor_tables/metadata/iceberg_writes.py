"""Finds what a snapshot of an Iceberg table wrote, by its own manifests (pyiceberg 0.12)."""

from __future__ import annotations

from collections.abc import MutableMapping
from itertools import chain

from pyiceberg.io import FileIO, load_file_io
from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata

from compactor.errors import TransientStoreError
from compactor.ports import ObjectStore
from compactor.table_formats.file_io import properties_of
from compactor.table_formats.iceberg_manifests import Reading
from compactor_tables.metadata.measured_iceberg import Names
from compactor_tables.touched_partitions import Touched

_MOST_KNOWN = 5_000


class IcebergWrites:
    """Implements :class:`compactor_tables.service_ports.Writes`.

    Args:
        store: where the tables' files lie.
        known: cache of earlier results, which never change.
    """

    def __init__(
        self, store: ObjectStore, known: MutableMapping[str, tuple[Touched, ...]] | None = None
    ) -> None:
        # Keeps the store alive: the file IO has only a weak reference to it.
        self._store = store
        self._known = {} if known is None else known

    def touched(self, metadata_uri: str, snapshot_id: str) -> tuple[Touched, ...]:
        # Snapshot ids are random; with the metadata directory they are unique to a table.
        name = f"{metadata_uri.rpartition('/')[0]} {snapshot_id}"
        if name not in self._known:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            try:
                self._known[name] = self._read(metadata_uri, int(snapshot_id))
            except FileNotFoundError as error:
                raise TransientStoreError(f"{error} is gone: look again") from error
        return self._known[name]

    def _read(self, metadata_uri: str, snapshot_id: int) -> tuple[Touched, ...]:
        properties = properties_of(self._store)
        io = load_file_io(properties, metadata_uri)
        metadata = FromInputFile.table_metadata(io.new_input(metadata_uri))
        return tuple(dict.fromkeys(_touched(metadata, metadata_uri, snapshot_id, io)))


def _touched(metadata: TableMetadata, name: str, snapshot_id: int, io: FileIO) -> list[Touched]:
    snapshot = metadata.snapshot_by_id(snapshot_id)
    if snapshot is None:
        raise FileNotFoundError(f"{name}: snapshot {snapshot_id}")
    own = [one for one in snapshot.manifests(io) if one.added_snapshot_id == snapshot_id]
    reading, names = Reading(name, metadata, io), Names(metadata)
    entries = chain.from_iterable(reading.entries(own, kind) for kind in ManifestContent)
    return [
        Touched(spec.spec_id, *names.partition(spec, entry.partition))
        for entry, spec in entries
        # A rewritten manifest includes entries of earlier snapshots.
        if entry.snapshot_id == snapshot_id and entry.status != ManifestEntryStatus.EXISTING
    ]
