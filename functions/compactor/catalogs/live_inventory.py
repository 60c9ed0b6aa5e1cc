"""S3 Metadata's live inventory table as an inventory: one snapshot of it, read by pyiceberg.

The table has a row for each version of each object in a bucket, including delete markers, and lags
by up to an hour (Amazon S3 User Guide, "S3 Metadata live inventory tables schema"). Its data files
are not sorted by key.

No column says which version is current. The row of a key with the latest ``last_modified_date`` is
used, and among rows of the same second the one with the largest ``sequence_number``. The sequence
alone is not enough, because it also grows when an old version is tagged or moved to another storage
class. In any case, a GET pinned to the ETag shows whether the version is current.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import orc
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchIcebergTableError, NoSuchNamespaceError, NoSuchTableError
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, StartsWith
from pyiceberg.manifest import DataFile, FileFormat
from pyiceberg.table import FileScanTask, StaticTable, Table
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.table.snapshots import Snapshot

from compactor.aws.table_bucket import metadata_location
from compactor.errors import IntegrityError, InvalidInput, ObjectMissing
from compactor.inventory.rows import UNLISTED, Row
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.settings.tables import S3TABLES, TableAddress
from compactor.table_formats.answers import error_code, translated
from compactor.table_formats.file_io import place_of, properties_of

FIELD = "listing"
#: The documented columns that are read here.
COLUMNS = (
    "bucket",
    "key",
    "sequence_number",
    "is_delete_marker",
    "size",
    "last_modified_date",
    "e_tag",
    "storage_class",
)
# Only journal tables have this column; they have a row for each event.
_OF_A_JOURNAL = "record_type"
_BATCH_ROWS = 65_536
_FIELD_ID = b"PARQUET:field_id"
# A version that was gone when S3 Metadata read it has no time; any other row counts as later.
_NO_TIME = 0.0


class LiveInventory:
    """One snapshot of a live inventory table; an inventory of :mod:`compactor.inventory`.

    Args:
        table: as it was loaded.
        snapshot: the one to read.
        address: of the table.
        settings: of the run whose source it lists.
        store: where the table's files are.
    """

    def __init__(
        self,
        table: Table,
        snapshot: Snapshot,
        address: TableAddress,
        settings: Settings,
        store: ObjectStore,
    ) -> None:
        root = settings.source.root
        self._table, self._store, self._bucket = table, store, root.bucket
        self.uri = f"{address.text}@{snapshot.snapshot_id}"
        named = f"{table.metadata.table_uuid}@{snapshot.snapshot_id}"
        self.md5 = hashlib.md5(named.encode(), usedforsecurity=False).hexdigest()
        #: When S3 committed the snapshot.
        self.created_at = snapshot.timestamp_ms / 1000
        scan = table.scan(
            _below(root.prefix),
            selected_fields=COLUMNS,
            snapshot_id=snapshot.snapshot_id,
        )
        schema = scan.projection()
        self._ids = {name: schema.find_field(name).field_id for name in COLUMNS}
        with _reading(self.uri):
            # Every call must number the files in the same order.
            self._tasks = sorted(scan.plan_files(), key=lambda one: one.file.file_path)

    @property
    def files(self) -> int:
        """Number of data files that may have keys of the source."""
        return len(self._tasks)

    def rows(self, number: int, prefix: str) -> Iterator[Row]:
        """Yield the rows of a data file below a prefix, without deleted ones.

        Raises:
            InvalidInput: the table is of another bucket, or the snapshot is gone.
            IntegrityError: the file is not Parquet with these columns.
        """
        task = self._tasks[number]
        where = task.file.file_path
        with _reading(self.uri):
            try:
                yield from self._rows(task, prefix)
            except (pa.ArrowException, OSError, KeyError, TypeError) as error:
                if isinstance(error, FileNotFoundError):
                    raise
                raise IntegrityError(f"{where} is no data file of {self.uri}: {error}") from error

    def _rows(self, task: FileScanTask, prefix: str) -> Iterator[Row]:
        deleted = _deleted(self._table, task)
        offset = 0
        with pq.ParquetFile(_Ranges(self._store, task.file), pre_buffer=False) as file:
            names = _names_in(file, self._ids)
            for batch in file.iter_batches(_BATCH_ROWS, columns=list(names.values())):
                kept = batch if deleted is None else _without(batch, deleted, offset)
                offset += batch.num_rows
                columns = {
                    name: kept.column(names[name]) if name in names else pa.nulls(kept.num_rows)
                    for name in COLUMNS
                }
                self._require_bucket(columns["bucket"])
                yield from _rows_of(columns, prefix)

    def _require_bucket(self, column: Any) -> None:
        others = sorted(set(pc.unique(column).to_pylist()) - {self._bucket}, key=str)
        if others:
            accepted = f"an inventory of the source's bucket {self._bucket}"
            raise InvalidInput(FIELD, self.uri, f"{accepted}; this one is of {others[0]}")


def _below(prefix: str) -> BooleanExpression:
    if not prefix:
        return AlwaysTrue()
    return StartsWith("key", prefix)  # type: ignore[call-arg,arg-type] # its own __init__ takes them


def open_live(settings: Settings, store: ObjectStore, begun: str) -> LiveInventory:
    """Open the live inventory table that ``listing`` names.

    Args:
        settings: of the run.
        store: where the table's files are.
        begun: the ``uri`` of the inventory that an earlier call started on, to read the same
            snapshot; empty for the current one.

    Raises:
        InvalidInput: there is no such table, it is not a live inventory, or the snapshot expired.
        TransientStoreError: the catalog or the store did not answer.
    """
    address = settings.listing_source.table
    if address is None:
        raise InvalidInput(FIELD, None, "the address of a table")
    table = _loaded(address, store)
    _require_columns(table, address)
    snapshot = table.metadata.current_snapshot()
    if begun:
        snapshot = table.metadata.snapshot_by_id(int(begun.rpartition("@")[2]))
        if snapshot is None:
            raise _expired(begun)
    if snapshot is None:
        accepted = "a live inventory table that has a snapshot: S3 has not filled this one yet"
        raise InvalidInput(FIELD, address.text, accepted)
    return LiveInventory(table, snapshot, address, settings, store)


def _loaded(address: TableAddress, store: ObjectStore) -> Table:
    properties = properties_of(store)
    try:
        with translated(address.text):
            if address.kind == S3TABLES:
                namespace = ".".join(address.name[:-1])
                location = metadata_location(address.uri, namespace, address.name[-1])
                return StaticTable.from_metadata(location, properties)
            given = {"type": address.kind, "uri": address.uri, **properties}
            catalog = load_catalog(address.catalog, **given)
            return catalog.load_table(address.name)
    except (NoSuchIcebergTableError, NoSuchTableError, NoSuchNamespaceError):
        raise _no_table(address) from None
    except Exception as error:
        if error_code(error) == "NotFoundException":
            raise _no_table(address) from None
        raise


def _no_table(address: TableAddress) -> InvalidInput:
    accepted = "a live inventory table: there is none of this name"
    return InvalidInput(FIELD, address.text, accepted)


def _require_columns(table: Table, address: TableAddress) -> None:
    known = {one.name for one in table.schema().fields}
    missing = [name for name in COLUMNS if name not in known]
    if missing or _OF_A_JOURNAL in known:
        why = f"it has no column {missing[0]}" if missing else "it is a journal"
        accepted = f"a live inventory table of S3 Metadata, which this one is not: {why}"
        raise InvalidInput(FIELD, address.text, accepted)


@contextmanager
def _reading(uri: str) -> Iterator[None]:
    """Report missing files as an expired snapshot."""
    try:
        yield
    except (FileNotFoundError, ObjectMissing) as error:
        raise _expired(uri) from error
    except ValueError as error:
        if "equality deletes" not in str(error):
            raise
        accepted = "a table without equality deletes, which pyiceberg does not read"
        raise InvalidInput(FIELD, uri, accepted) from error


def _expired(uri: str) -> InvalidInput:
    accepted = (
        "a snapshot that the table still has: it expired while this run took it (S3 keeps them for"
        " at most 24 hours); start a new run"
    )
    return InvalidInput(FIELD, uri, accepted)


class _Ranges(io.RawIOBase):
    """A data file that is read by ranges, as needed."""

    def __init__(self, store: ObjectStore, file: DataFile) -> None:
        if file.file_format != FileFormat.PARQUET:
            accepted = f"a table of Parquet files; {file.file_path} is {file.file_format}"
            raise InvalidInput(FIELD, file.file_path, accepted)
        self._store, self._place = store, place_of(file.file_path)
        self._size, self._at = file.file_size_in_bytes, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int = -1) -> bytes:
        length = self._size - self._at if size < 0 else min(size, self._size - self._at)
        if length <= 0:
            return b""
        found = self._store.get_range(*self._place, self._at, length)
        self._at += len(found)
        return found


def _names_in(file: pq.ParquetFile, ids: dict[str, int]) -> dict[str, str]:
    """Return the names that columns have in a file, without those that it lacks."""
    by_id = {
        int(one.metadata[_FIELD_ID]): one.name
        for one in file.schema_arrow
        if one.metadata and _FIELD_ID in one.metadata
    }
    return {name: by_id[number] for name, number in ids.items() if number in by_id}


def _deleted(table: Table, task: FileScanTask) -> Any:
    """Return the positions in a data file that are deleted from the table; None if none are."""
    found: list[Any] = []
    for file in sorted(task.delete_files, key=lambda one: one.file_path):
        positions = _positions(table, file, task.file.file_path)
        found += [] if positions is None else positions.chunks
    return pa.chunked_array(found) if found else None


def _positions(table: Table, file: DataFile, path: str) -> Any:
    """Return the positions in a data file that a delete file names, or None."""
    with table.io.new_input(file.file_path).open() as opened:
        if file.file_format == FileFormat.PUFFIN:
            vectors = deletion_vectors_from_puffin_file(PuffinFile(opened.read()))
            named = (one for one in vectors if one.referenced_data_file == path)
            return next((one.to_vector() for one in named), None)
        if file.file_format == FileFormat.ORC:
            rows = orc.ORCFile(opened).read(["file_path", "pos"])
        else:
            rows = pq.read_table(opened, columns=["file_path", "pos"])
    return rows.filter(pc.field("file_path") == path).column("pos")


def _without(batch: Any, deleted: Any, offset: int) -> Any:
    """Return a batch without deleted rows, which are given by their positions in the file."""
    here = pa.array(range(offset, offset + batch.num_rows), deleted.type)
    return batch.filter(pc.invert(pc.is_in(here, value_set=deleted)))


def _rows_of(columns: dict[str, Any], prefix: str) -> Iterator[Row]:
    """Yield a batch's rows; those that keep a key out of the listing have the size UNLISTED."""
    below = pc.starts_with(columns["key"], pattern=prefix)
    kept = {name: column.filter(below) for name, column in columns.items()}
    size, etag = kept["size"].cast(pa.int64()), kept["e_tag"].cast(pa.string())
    marker = kept["is_delete_marker"].cast(pa.bool_()).fill_null(False)
    time = _seconds(kept["last_modified_date"])
    is_known = pc.and_(pc.and_(size.is_valid(), etag.is_valid()), time.is_valid())
    listed = pc.and_(is_known, pc.invert(marker))
    texts = (
        etag.fill_null(""),
        pc.if_else(listed, size, UNLISTED),
        kept["storage_class"].cast(pa.string()).fill_null("STANDARD"),
    )
    columns_of_rows: Sequence[list[Any]] = [
        one.to_pylist()
        for one in (kept["key"], time.fill_null(_NO_TIME), kept["sequence_number"], *texts)
    ]
    for key, seconds, sequence, tag, length, kind in zip(*columns_of_rows, strict=True):
        yield Row(key, seconds, sequence, tag.strip('"'), length, kind)


def _seconds(column: Any) -> Any:
    """Return UNIX seconds; the table has UTC times without a time zone."""
    if pa.types.is_null(column.type):
        return column.cast(pa.float64())
    if not pa.types.is_timestamp(column.type):
        raise TypeError(f"last_modified_date is {column.type}, and no timestamp")
    microseconds = column.cast(pa.timestamp("us", tz=column.type.tz), safe=False)
    return pc.divide(microseconds.cast(pa.int64()).cast(pa.float64()), 1e6)
