"""Tables of other writers with files of many sizes, created by the real libraries."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestWriterV2,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import Record

from compactor.settings.tables import TableAddress, parse_table
from compactor.table_formats.iceberg_catalogs import iceberg_catalog
from tests.support.memory_store import ManualClock, MemoryStore

BUCKET = "lake"
_FILE_PATH_COLUMN = 2147483546


class Named(NamedTuple):
    """A file that a table names but that does not exist."""

    size: int
    rows: int = 10
    partition: tuple[Any, ...] = ()


class IcebergLake:
    """Tables in a local catalog, with their files in an in-memory store.

    Args:
        directory: the directory for the catalog.
        now: the store's time in UNIX seconds; snapshots have the machine's time.
    """

    def __init__(self, directory: Path, now: float = 1_700_000_000.0) -> None:
        self.store = MemoryStore(ManualClock(now))
        self.store.add_bucket(BUCKET)
        self._uri = f"sqlite:///{directory}/catalog.db"
        self.catalog = iceberg_catalog(self.address("any"), self.store)
        self.catalog.create_namespace_if_not_exists("db")
        self._files = 0

    def address(self, name: str) -> TableAddress:
        return parse_table(f"sql:{self._uri}#db.{name}")

    def create(
        self,
        name: str,
        schema: Schema | pa.Schema,
        spec: PartitionSpec = UNPARTITIONED_PARTITION_SPEC,
        **properties: str,
    ) -> Table:
        return self.catalog.create_table(
            f"db.{name}",
            schema,
            location=f"s3://{BUCKET}/{name}",
            partition_spec=spec,
            properties=properties,
        )

    def name(
        self, table: Table, files: Iterable[Named], kind: FileFormat = FileFormat.PARQUET
    ) -> list[str]:
        """Add these files in one commit; return their paths."""
        made = [self._file(table, one, DataFileContent.DATA, kind=kind) for one in files]
        transaction = table.transaction()
        with transaction.update_snapshot().fast_append() as producer:
            for one in made:
                producer.append_data_file(one)
        transaction.commit_transaction()
        return [one.file_path for one in made]

    def delete(
        self,
        table: Table,
        files: Iterable[Named],
        *,
        of: str | None = None,
        content: DataFileContent = DataFileContent.POSITION_DELETES,
    ) -> None:
        """Add delete files in one commit.

        Args:
            of: the only data file whose rows they delete.
            content: position or equality deletes.
        """
        bound = {_FILE_PATH_COLUMN: of.encode()} if of else None
        made = [self._file(table, one, content, bound) for one in files]
        transaction = table.transaction()
        with _DeleteFiles(Operation.DELETE, transaction, table.io) as producer:
            for one in made:
                producer.append_data_file(one)
        transaction.commit_transaction()

    def _file(
        self,
        table: Table,
        one: Named,
        content: DataFileContent,
        bound: Mapping[int, bytes] | None = None,
        kind: FileFormat = FileFormat.PARQUET,
    ) -> DataFile:
        self._files += 1
        return DataFile.from_args(
            content=content,
            file_path=f"{table.location()}/data/{self._files:05}.parquet",
            file_format=kind,
            partition=Record(*one.partition),
            record_count=one.rows,
            file_size_in_bytes=one.size,
            lower_bounds=bound,
            upper_bounds=bound,
            equality_ids=[1] if content is DataFileContent.EQUALITY_DELETES else None,
            spec_id=table.metadata.default_spec_id,
        )


class _DeleteManifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _DeleteFiles(_FastAppendFiles):
    """Adds delete files, which pyiceberg cannot, in the way in which it adds data files."""

    def new_manifest_writer(self, spec: PartitionSpec) -> _DeleteManifest:
        return _DeleteManifest(
            spec, self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression
        )


def shelve(directory: Path, store: MemoryStore, prefix: str) -> None:
    """Copy the files that an engine wrote to a directory into a store, with their times."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.suffix != ".crc":
            key = f"{prefix}{path.relative_to(directory).as_posix()}"
            store.seed(BUCKET, key, path.read_bytes(), last_modified=path.stat().st_mtime)


class DeltaLines:
    """A Delta log written action by action, for what delta-rs cannot write.

    Args:
        partition_columns: the table's partition columns.
        configuration: the table's properties.
    """

    def __init__(
        self,
        store: MemoryStore,
        prefix: str = "events/",
        partition_columns: Sequence[str] = (),
        **configuration: str,
    ) -> None:
        self._store = store
        self._prefix = prefix
        self._version = 0
        fields = [
            {"name": name, "type": "string", "nullable": True, "metadata": {}}
            for name in ("v", *partition_columns)
        ]
        features = configuration.pop("features", "").split()
        protocol = {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": features,
            "writerFeatures": features,
        }
        self.commit(
            {"protocol": protocol},
            {
                "metaData": {
                    "id": "0",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": json.dumps({"type": "struct", "fields": fields}),
                    "partitionColumns": list(partition_columns),
                    "configuration": configuration,
                    "createdTime": 0,
                }
            },
        )

    def commit(self, *actions: Mapping[str, Any], at: float = 1_700_000_000.0) -> None:
        """Write a version with these actions and this time in UNIX seconds."""
        body = b"".join(json.dumps(one).encode() + b"\n" for one in actions)
        key = f"{self._prefix}_delta_log/{self._version:020}.json"
        self._store.seed(BUCKET, key, body, last_modified=at)
        self._version += 1


def added(path: str, size: int, rows: int = 10, **more: Any) -> dict[str, Any]:
    """Return an action that adds a file; with ``deleted``, it has a deletion vector."""
    deleted = more.pop("deleted", 0)
    if deleted:
        more["deletionVector"] = {
            "storageType": "u",
            "pathOrInlineDv": f"v{deleted}",
            "offset": 1,
            "sizeInBytes": 40,
            "cardinality": deleted,
        }
    usual = {
        "path": path,
        "size": size,
        "partitionValues": {},
        "modificationTime": 1_700_000_000_000,
        "dataChange": True,
        "stats": json.dumps({"numRecords": rows}),
    }
    return {"add": usual | more}


class TableToMake(NamedTuple):
    """A table on which plans are compared with their results.

    Attributes:
        name: name of the table.
        format: ``iceberg`` or ``delta``.
        partitioned_by: the text of Spark's ``PARTITIONED BY``; empty for none.
        batches: rows of each file, about 230 bytes a row; each partition has as many files.
        deletes: condition on rows that are deleted afterwards; empty for none.
        properties: properties of the table.
    """

    name: str
    format: str
    partitioned_by: str
    batches: tuple[int, ...]
    deletes: str = ""
    properties: Mapping[str, str] = {}


#: Columns of all these tables; ``kind`` has null, and a value that a path must encode.
COLUMNS = "id BIGINT, kind STRING, at TIMESTAMP_NTZ, payload BINARY"
_FEW = (40, 900, 300, 2_000, 150, 60, 3_500, 700)
_MANY = (*_FEW, 9_000, 4_600, 5_000, 12_000, 20, 80, 6_500)
_ON_READ = {"write.delete.mode": "merge-on-read", "format-version": "2"}
TEN = (
    TableToMake("plain", "iceberg", "", _MANY),
    TableToMake("odd", "iceberg", "kind", _FEW),
    TableToMake("transformed", "iceberg", "days(at), bucket(2, id)", _FEW),
    TableToMake("deleted", "iceberg", "", _MANY, "id % 3 = 0", _ON_READ),
    TableToMake(
        "vectors", "iceberg", "kind", _FEW, "id % 5 < 2", {**_ON_READ, "format-version": "3"}
    ),
    TableToMake("large", "iceberg", "months(at)", (9_500, 40_000, 7_000, 3_000)),
    TableToMake("plain_delta", "delta", "", _MANY),
    TableToMake("odd_delta", "delta", "kind", _FEW),
    TableToMake(
        "vectors_delta",
        "delta",
        "",
        _MANY,
        "id % 3 = 0",
        {"delta.enableDeletionVectors": "true"},
    ),
    TableToMake("large_delta", "delta", "kind", (9_500, 40_000, 7_000, 3_000)),
)
