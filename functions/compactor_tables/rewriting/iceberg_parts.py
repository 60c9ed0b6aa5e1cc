"""What a rewrite of an Iceberg table is made of: files, deletes, manifests and a snapshot."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import (
    ArrowScan,
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
)
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestFile,
    write_manifest,
)
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.refs import SnapshotRefType
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    SnapshotSummaryCollector,
    Summary,
    ancestors_of,
    update_snapshot_summaries,
)
from pyiceberg.table.update import (
    AddSnapshotUpdate,
    AssertRefSnapshotId,
    AssertTableUUID,
    SetSnapshotRefUpdate,
    TableRequirement,
    TableUpdate,
)

from compactor.errors import InvalidInput
from compactor.sizes import MIB
from compactor_tables.metadata.measured_iceberg import Names
from compactor_tables.orders import Order, PartitionOrder
from compactor_tables.rewriting.row_files import (
    StoredFile,
    fits,
)
from compactor_tables.table_engine import PREFIX, Rewritten

RUN, WHAT, ROWS = f"{PREFIX}.maintenance", f"{PREFIX}.what", f"{PREFIX}.rows"
_MAIN = "main"
DATA, POSITION_DELETES = DataFileContent.DATA, DataFileContent.POSITION_DELETES
_FILE_PATH_COLUMN = 2147483546
_MANIFEST_BYTES = 8 * MIB


@dataclass(frozen=True, slots=True)
class Group:
    """The files of one partition that are replaced together.

    Attributes:
        snapshot: that was read.
        name: of the partition.
        files: live data files.
        deletes: position delete files that may apply to each of them, by path.
    """

    snapshot: Snapshot
    name: str
    files: list[ManifestEntry]
    deletes: Mapping[str, set[DataFile]]

    @property
    def spec_id(self) -> int:
        """That of their partition spec."""
        return self.files[0].data_file.spec_id

    @property
    def paths(self) -> set[str]:
        """Of the files."""
        return {one.data_file.file_path for one in self.files}


class Belongs:
    """Whether an entry of a manifest is one of a partition."""

    def __init__(self, table: Table, partition: PartitionOrder) -> None:
        self._name, self._spec = partition.name, table.metadata.specs()[partition.spec]
        self._names = Names(table.metadata)
        self._known: dict[tuple[Any, ...], bool] = {}

    def __call__(self, entry: ManifestEntry, manifest: ManifestFile) -> bool:
        """Return whether it is."""
        if manifest.partition_spec_id != self._spec.spec_id:
            return False
        values = values_of(entry.data_file)
        if values not in self._known:
            self._known[values] = self._names.partition(self._spec, values)[0] == self._name
        return self._known[values]


class Fitting:
    """Which schemas of files are the table's own; most files of a table have the same."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._known: list[tuple[pa.Schema, bool]] = []

    def __call__(self, found: pa.Schema) -> bool:
        """Return whether a file's is."""
        found = found.remove_metadata() if found.metadata else found
        for known, is_fit in self._known:
            if known.equals(found, check_metadata=True):
                return is_fit
        is_fit = fits(found, self._schema)
        self._known.append((found, is_fit))
        return is_fit


Key = tuple[int, tuple[Any, ...]]


def values_of(file: DataFile) -> tuple[Any, ...]:
    """Return the values of a file's partition, by its spec."""
    return tuple(file.partition[number] for number in range(len(file.partition)))


def key_of(file: DataFile) -> Key:
    """Return a file's partition as spec and values."""
    return file.spec_id, values_of(file)


def current_snapshot(table: Table) -> Snapshot:
    """Return the table's current snapshot.

    Raises:
        InvalidInput: it has none.
    """
    snapshot = table.current_snapshot()
    if snapshot is None:
        raise InvalidInput("table", ".".join(table.name()), "a table that has a snapshot")
    return snapshot


def change_of(
    table: Table, snapshot: Snapshot
) -> tuple[tuple[TableRequirement, ...], tuple[TableUpdate, ...]]:
    """Return what makes a snapshot the table's current one, if its parent still is."""
    metadata = table.metadata
    parent: Any = {"snapshot-id": snapshot.parent_snapshot_id}
    branch: dict[str, Any] = {"ref-name": _MAIN, "snapshot-id": snapshot.snapshot_id}
    if _MAIN in metadata.refs:
        # A branch keeps its retention only if it is set again.
        ages = metadata.refs[_MAIN].model_dump(by_alias=True, exclude_none=True)
        branch = {**ages, **branch}
    return (
        (AssertTableUUID(uuid=metadata.table_uuid), AssertRefSnapshotId(ref=_MAIN, **parent)),
        (
            AddSnapshotUpdate(snapshot=snapshot),
            SetSnapshotRefUpdate(**{**branch, "type": SnapshotRefType.BRANCH}),
        ),
    )


def only_file_of(deletes: DataFile) -> str | None:
    """Return the only data file that position deletes apply to, by their bounds."""
    lower, upper = (
        (one or {}).get(_FILE_PATH_COLUMN) for one in (deletes.lower_bounds, deletes.upper_bounds)
    )
    return bytes(lower).decode(errors="replace") if lower is not None and lower == upper else None


def deletes_applying(
    files: Sequence[ManifestEntry], deletes: Sequence[ManifestEntry]
) -> dict[str, set[DataFile]]:
    """Return the position deletes that may apply to the files of a partition, by path."""
    found: dict[str, set[DataFile]] = {}
    for one in files if deletes else ():
        path, number = one.data_file.file_path, one.sequence_number or 0
        applying = {
            each.data_file
            for each in deletes
            if (each.sequence_number or 0) >= number
            and only_file_of(each.data_file) in {None, path}
        }
        if applying:
            found[path] = applying
    return found


def scanned(table: Table, schema: pa.Schema, tasks: Sequence[FileScanTask]) -> Iterator[pa.Table]:
    """Yield the rows of files as pyiceberg reads them, in the table's present columns."""
    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    for batch in scan.to_record_batches(tasks) if tasks else ():
        yield pa.Table.from_batches([batch]).cast(schema)


def data_file_of(table: Table, group: Group, stored: StoredFile) -> DataFile:
    """Return a stored file as one of a group's partition, with its statistics."""
    schema = table.schema()
    statistics = data_file_statistics_from_parquet_metadata(
        stored.metadata,
        compute_statistics_plan(schema, table.properties),
        parquet_path_to_id_mapping(schema),
    )
    made = DataFile.from_args(
        content=DATA,
        file_path=f"s3://{stored.bucket}/{stored.key}",
        file_format=FileFormat.PARQUET,
        partition=group.files[0].data_file.partition,
        file_size_in_bytes=stored.size,
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
    made.spec_id = group.spec_id
    return made


def write_manifests(
    table: Table, spec_id: int, number: int, how: str, entries: Iterable[ManifestEntry]
) -> list[ManifestFile]:
    """Write entries to manifests of limited size; return these."""
    found: list[ManifestFile] = []
    waiting = iter(entries)
    following = next(waiting, None)
    spec = table.metadata.specs()[spec_id]
    while following is not None:
        path = table.location_provider().new_metadata_location(f"{uuid.uuid4()}-m{len(found)}.avro")
        output = table.io.new_output(path)
        version = table.metadata.format_version
        with write_manifest(version, spec, table.schema(), output, number, "deflate") as writer:
            while following is not None and writer.tell() < _MANIFEST_BYTES:
                getattr(writer, how)(following)
                following = next(waiting, None)
        found.append(writer.to_manifest_file())
    return found


def summary_of(
    table: Table,
    parent: Snapshot,
    added: Iterable[DataFile],
    removed: Iterable[DataFile],
) -> dict[str, str]:
    """Return a snapshot's summary: what it adds and removes, and totals from its parent's."""
    counted = SnapshotSummaryCollector()
    schema, specs = table.schema(), table.metadata.specs()
    for one in added:
        counted.add_file(one, schema, specs[one.spec_id])
    for one in removed:
        counted.remove_file(one, schema, specs[one.spec_id])
    before = parent.summary.additional_properties if parent.summary is not None else {}
    # Totals are computed for the other operations alone.
    totals = update_snapshot_summaries(Summary(Operation.OVERWRITE, **counted.build()), before)
    return {**totals.additional_properties}


def committed_snapshot(table: Table, order: Order, what: str) -> Rewritten | None:
    """Return this run's rewrite with this purpose, or None."""
    for snapshot in ancestors_of(table.current_snapshot(), table.metadata):
        signed = snapshot.summary.additional_properties if snapshot.summary is not None else {}
        if (signed.get(RUN), signed.get(WHAT)) == (order.run_id, what):
            return rewritten_by(snapshot)
    return None


def rewritten_by(snapshot: Snapshot) -> Rewritten:
    """Return what a snapshot that is ours has rewritten."""
    assert snapshot.summary is not None  # noqa: S101 - it is ours
    summary = snapshot.summary.additional_properties

    def count(name: str) -> int:
        return int(summary.get(name) or 0)

    return Rewritten(
        before=str(snapshot.parent_snapshot_id),
        after=str(snapshot.snapshot_id),
        files=count("deleted-data-files"),
        bytes=count("removed-files-size"),
        into=count("added-data-files"),
        into_bytes=count("added-files-size"),
        rows=count(ROWS) if ROWS in summary else None,
    )
