"""Rewrites small files of an Iceberg table, by pyiceberg's public names (0.12).

A partition's files are read with their deletes applied, written as few, and replaced in one
snapshot. The new files keep the sequence number of the snapshot that was read, so that equality
deletes committed meanwhile apply to their rows as well.
"""

from __future__ import annotations

import io as streams
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.io.pyarrow import (
    schema_to_pyarrow,
)
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    write_manifest_list,
)
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    Summary,
    ancestors_of,
)

from compactor.errors import TableConflict, TransientStoreError
from compactor.ports import ObjectStore
from compactor.settings.tables import TableAddress
from compactor.table_formats.answers import translated
from compactor.table_formats.file_io import place_of
from compactor.table_formats.iceberg_catalogs import iceberg_catalog
from compactor_tables.orders import Order, PartitionOrder
from compactor_tables.rewriting.iceberg_parts import (
    DATA,
    POSITION_DELETES,
    ROWS,
    RUN,
    WHAT,
    Belongs,
    Fitting,
    Group,
    Key,
    change_of,
    committed_snapshot,
    current_snapshot,
    data_file_of,
    deletes_applying,
    key_of,
    only_file_of,
    rewritten_by,
    scanned,
    summary_of,
    write_manifests,
)
from compactor_tables.rewriting.row_files import (
    Located,
    StoredFile,
    plain,
    read_ahead,
    write_files,
)
from compactor_tables.selecting import is_wrong_size
from compactor_tables.table_engine import RewritesOnly, Rewritten, Watch

_MANIFEST_READERS = 16
_MOST_COMMITS = 20
_CODEC, _USUAL_CODEC = "write.parquet.compression-codec", "zstd"


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A snapshot to be committed, on whatever is the table's current one by then.

    Attributes:
        group: the files that are replaced.
        added: those that replace them.
        number: id of the snapshot.
        signed: what its summary records of the run.
        written: manifests of the snapshot, by the paths of those that they replace.
    """

    group: Group
    added: Sequence[DataFile]
    number: int
    signed: Mapping[str, str]
    written: dict[tuple[str, ...], list[ManifestFile]] = field(default_factory=dict)


class IcebergRewrites(RewritesOnly):
    """Implements :class:`compactor_tables.table_engine.Tables`.

    Args:
        address: of the table.
        store: where its files are.
        watch: receives how many files have been read.
    """

    def __init__(
        self,
        address: TableAddress,
        store: ObjectStore,
        watch: Watch = lambda done, total: None,
    ) -> None:
        self._watch = watch
        self._address = address
        self._store = store
        self._catalog = iceberg_catalog(address, store)
        self._read: dict[str, list[ManifestEntry]] = {}

    def _table(self) -> Table:
        with translated(self._address.text):
            return self._catalog.load_table(self._address.name)

    def version(self) -> str:
        """See the protocol; empty for a table without any snapshot."""
        current = self._table().current_snapshot()
        return "" if current is None else str(current.snapshot_id)

    def done(self, what: str, order: Order) -> Rewritten | None:
        """See the protocol."""
        table = self._table()
        return committed_snapshot(table, order, what)

    def rewrite(self, partition: PartitionOrder, order: Order, what: str) -> Rewritten | None:
        """See the protocol; rows are compared before the commit."""
        table = self._table()
        group = self._group(table, partition, order.target_bytes)
        if len(group.files) < 2 and not group.deletes:
            return None
        stored = self._write(table, group, order)
        return self._commit(table, group, stored, order, what)

    def _group(self, table: Table, partition: PartitionOrder, target_bytes: int) -> Group:
        snapshot, belongs = current_snapshot(table), Belongs(table, partition)
        manifests = self._manifests_of(table, snapshot)
        # Those of an unpartitioned spec apply to files of every partition.
        if any(
            entry.data_file.content == DataFileContent.EQUALITY_DELETES
            and entry.status != ManifestEntryStatus.DELETED
            for manifest in manifests
            if manifest.content == ManifestContent.DELETES
            for entry in self._entries(table, manifest)
        ):
            raise TableConflict("others have committed equality deletes since the plan")
        files, deletes = (
            [
                entry
                for manifest in manifests
                if manifest.content == content
                for entry in self._entries(table, manifest)
                if entry.status != ManifestEntryStatus.DELETED and belongs(entry, manifest)
            ]
            for content in (ManifestContent.DATA, ManifestContent.DELETES)
        )
        applying = deletes_applying(files, deletes)
        chosen = [
            one
            for one in files
            if one.data_file.file_path in applying
            or is_wrong_size(one.data_file.file_size_in_bytes, target_bytes)
        ]
        return Group(snapshot, partition.name, chosen, applying)

    def _manifests_of(self, table: Table, snapshot: Snapshot) -> list[ManifestFile]:
        """Return the manifests of a snapshot, whose entries have been read concurrently."""
        manifests = snapshot.manifests(table.io)
        with ThreadPoolExecutor(_MANIFEST_READERS) as pool:
            for _ in pool.map(partial(self._entries, table), manifests):
                pass
        return manifests

    def _entries(self, table: Table, manifest: ManifestFile) -> list[ManifestEntry]:
        """Return the entries of a manifest, which never change."""
        path = manifest.manifest_path
        if path not in self._read:
            try:
                self._read[path] = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
            except FileNotFoundError as error:
                raise TransientStoreError(f"{error} is gone: look again") from error
        return self._read[path]

    def _write(self, table: Table, group: Group, order: Order) -> list[StoredFile]:
        schema = plain(schema_to_pyarrow(table.schema()))
        directory = f"{group.name}/" if group.name else ""
        locations = table.location_provider()

        def place() -> tuple[str, str]:
            return place_of(locations.new_data_location(f"{directory}{uuid.uuid4()}.parquet"))

        return write_files(
            self._rows(table, group, schema),
            schema,
            target_bytes=order.target_bytes,
            codec=table.properties.get(_CODEC, _USUAL_CODEC),
            place=place,
            store=self._store,
        )

    def _rows(self, table: Table, group: Group, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the rows of a group, in the table's present columns, with deletes applied."""
        whole = [
            Located(one, *place_of(one.data_file.file_path), one.data_file.file_size_in_bytes)
            for one in group.files
            if one.data_file.file_path not in group.deletes
        ]
        read = partial(self._table_of, table, schema, Fitting(schema))
        for number, rows in enumerate(read_ahead(whole, read, self._store), start=1):
            self._watch(number, len(group.files))
            yield rows
        tasks = [
            FileScanTask(one.data_file, {*group.deletes[one.data_file.file_path]})
            for one in group.files
            if one.data_file.file_path in group.deletes
        ]
        yield from scanned(table, schema, tasks)

    def _table_of(
        self, table: Table, schema: pa.Schema, is_fit: Fitting, entry: ManifestEntry, body: bytes
    ) -> pa.Table:
        file = pq.ParquetFile(streams.BytesIO(body))
        if is_fit(file.schema_arrow):
            return file.read().cast(schema)
        # Written by an older schema, or by a writer with other types or without ids.
        return pa.concat_tables(
            [schema.empty_table(), *scanned(table, schema, [FileScanTask(entry.data_file)])]
        )

    def _commit(
        self, table: Table, group: Group, stored: Sequence[StoredFile], order: Order, what: str
    ) -> Rewritten:
        added = [data_file_of(table, group, one) for one in stored]
        rows = sum(one.record_count for one in added)
        signed = {RUN: order.run_id, WHAT: what, ROWS: f"{rows}"}
        replacement = _Replacement(group, added, table.metadata.new_snapshot_id(), signed)
        for _ in range(_MOST_COMMITS):
            snapshot = self._snapshot(table, replacement)
            try:
                self._catalog.commit_table(table, *change_of(table, snapshot))
            except Exception as error:
                # A commit whose answer was lost is in the table; a retry by a client is refused.
                table = self._table()
                found = committed_snapshot(table, order, what)
                if found is not None:
                    return found
                if not isinstance(error, CommitFailedException):
                    with translated(self._address.text):
                        raise
                self._require_untouched(table, group)
                continue
            return rewritten_by(snapshot)
        raise TableConflict(f"others committed first, {_MOST_COMMITS} times in a row")

    def _require_untouched(self, table: Table, group: Group) -> None:
        """Check that commits since the snapshot that was read left the group's rows as they are.

        Raises:
            TableConflict: a file was removed, rows of it may have been deleted, or the table was
                rolled back.
        """
        current = current_snapshot(table)
        since = [*ancestors_of(current, table.metadata)]
        if group.snapshot.snapshot_id not in {one.snapshot_id for one in since}:
            raise TableConflict(f"the table no longer descends from {group.snapshot.snapshot_id}")
        manifests = self._manifests_of(table, current)
        last, missing = group.snapshot.sequence_number or 0, group.paths
        for manifest in manifests:
            for entry in self._entries(table, manifest):
                if entry.status == ManifestEntryStatus.DELETED:
                    continue
                file = entry.data_file
                if file.content == DATA:
                    missing.discard(file.file_path)
                elif (
                    file.content == POSITION_DELETES
                    and (entry.file_sequence_number or 0) > last
                    and only_file_of(file) in {None, *group.paths}
                ):
                    raise TableConflict(f"{file.file_path} may delete rows of rewritten files")
        if missing:
            raise TableConflict(f"{min(missing)} was removed by another writer")

    def _snapshot(self, table: Table, change: _Replacement) -> Snapshot:
        """Write the manifests of a snapshot in which a group's files are replaced; return it."""
        metadata, parent = table.metadata, current_snapshot(table)
        number, gone = change.number, change.group.paths
        manifests = self._manifests_of(table, parent)
        kept: list[ManifestFile] = []
        present: list[ManifestEntry] = []
        removed: list[ManifestEntry] = []
        dropped: list[DataFile] = []
        touched: list[str] = []
        spent = self._spent(table, manifests, gone)
        for manifest in manifests:
            live = [
                one
                for one in self._entries(table, manifest)
                if one.status != ManifestEntryStatus.DELETED
            ]
            if manifest.content == ManifestContent.DELETES:
                if all(spent(one) for one in live):
                    dropped += [one.data_file for one in live]
                else:
                    kept.append(manifest)
            elif any(one.data_file.file_path in gone for one in live):
                touched.append(manifest.manifest_path)
                for one in live:
                    (removed if one.data_file.file_path in gone else present).append(one)
            elif live:
                kept.append(manifest)
        # Another commit that only appends changes nothing of these.
        if tuple(touched) not in change.written:
            change.written[tuple(touched)] = self._manifests(table, change, removed, present)
        manifests = change.written[tuple(touched)]
        path = table.location_provider().new_metadata_location(
            f"snap-{number}-0-{uuid.uuid4()}.avro"
        )
        with write_manifest_list(
            metadata.format_version,
            table.io.new_output(path),
            number,
            parent.snapshot_id,
            metadata.next_sequence_number(),
            "deflate",
        ) as writer:
            writer.add_manifests([*manifests, *kept])
        gone_files = [*(one.data_file for one in removed), *dropped]
        summary = summary_of(table, parent, change.added, gone_files)
        named: dict[str, Any] = {
            "snapshot-id": number,
            "parent-snapshot-id": parent.snapshot_id,
            "sequence-number": metadata.next_sequence_number(),
            "manifest-list": path,
            "schema-id": metadata.current_schema_id,
        }
        return Snapshot(summary=Summary(Operation.REPLACE, **summary, **change.signed), **named)

    def _manifests(
        self,
        table: Table,
        change: _Replacement,
        removed: Sequence[ManifestEntry],
        present: Sequence[ManifestEntry],
    ) -> list[ManifestFile]:
        """Write the manifests of a group's new files, its old files, and the files beside these."""
        last = change.group.snapshot.sequence_number or 0
        fresh = [
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED,
                snapshot_id=change.number,
                sequence_number=last if table.metadata.format_version > 1 else None,
                data_file=one,
            )
            for one in change.added
        ]
        write = partial(write_manifests, table, change.group.spec_id, change.number)
        return [*write("add", fresh), *write("delete", removed), *write("existing", present)]

    def _spent(
        self, table: Table, manifests: Sequence[ManifestFile], gone: set[str]
    ) -> Callable[[ManifestEntry], bool]:
        """Return whether position deletes apply to no file any more, once these are gone."""
        oldest: dict[Key, int] = {}
        if any(one.content == ManifestContent.DELETES for one in manifests):
            for entry in chain(*(self._entries(table, one) for one in manifests)):
                file = entry.data_file
                if (
                    file.content == DATA
                    and entry.status != ManifestEntryStatus.DELETED
                    and file.file_path not in gone
                ):
                    number = entry.sequence_number or 0
                    oldest[key_of(file)] = min(number, oldest.get(key_of(file), number))

        def spent(entry: ManifestEntry) -> bool:
            file, number = entry.data_file, entry.sequence_number or 0
            if file.content != POSITION_DELETES:
                return False
            return only_file_of(file) in gone or oldest.get(key_of(file), number + 1) > number

        return spent
