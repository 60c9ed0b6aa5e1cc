"""Live inventory tables like those of S3 Metadata, created by pyiceberg in a local catalog.

The schema is that of the Amazon S3 User Guide, "S3 Metadata live inventory tables schema".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import (
    BooleanType,
    LongType,
    MapType,
    NestedField,
    StringType,
    TimestampType,
)

from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.settings.tables import CATALOG_NAME
from compactor.table_formats.file_io import properties_of

#: The bucket of the tables' files, like the one that S3 Tables uses for a table.
BUCKET = "tables"
_MAP = MapType(18, StringType(), 19, StringType(), value_required=False)
_TAGS = MapType(20, StringType(), 21, StringType(), value_required=False)
SCHEMA = Schema(
    NestedField(1, "bucket", StringType(), required=True),
    NestedField(2, "key", StringType(), required=True),
    NestedField(3, "sequence_number", StringType(), required=True),
    NestedField(4, "version_id", StringType()),
    NestedField(5, "is_delete_marker", BooleanType()),
    NestedField(6, "size", LongType()),
    NestedField(7, "last_modified_date", TimestampType()),
    NestedField(8, "e_tag", StringType()),
    NestedField(9, "storage_class", StringType()),
    NestedField(10, "is_multipart", BooleanType()),
    NestedField(11, "encryption_status", StringType()),
    NestedField(12, "is_bucket_key_enabled", BooleanType()),
    NestedField(13, "kms_key_arn", StringType()),
    NestedField(14, "checksum_algorithm", StringType()),
    NestedField(15, "object_tags", _TAGS),
    NestedField(16, "user_metadata", _MAP),
)


def sequence(number: int) -> str:
    """Return a sequence number as long as S3's, which sorts by ``number``."""
    return f"80e737d8b4d82f776affffffffffffffff00{number:016x}" + "0" * 46


def live_row(one: SourceObject, number: int = 0, **changed: Any) -> dict[str, Any]:
    """Return the row of an object in an unversioned bucket."""
    return {
        "bucket": one.bucket,
        "key": one.key,
        "sequence_number": sequence(number),
        "version_id": None,
        "is_delete_marker": False,
        "size": one.size,
        "last_modified_date": datetime.fromtimestamp(one.last_modified, UTC).replace(tzinfo=None),
        "e_tag": one.etag,
        "storage_class": one.storage_class,
        "is_multipart": "-" in one.etag,
        "encryption_status": "SSE-S3",
        "is_bucket_key_enabled": False,
        "kms_key_arn": None,
        "checksum_algorithm": "CRC64-NVME",
        "object_tags": {},
        "user_metadata": {"written-by": "a test"},
        **changed,
    }


def marker(one: SourceObject, number: int, **changed: Any) -> dict[str, Any]:
    """Return the row of a delete marker of an object."""
    given = {"is_delete_marker": True, "size": 0, "e_tag": None, "version_id": f"v{number}"}
    return live_row(one, number, **{**given, "object_tags": None, "user_metadata": None, **changed})


@dataclass
class LiveTable:
    """A live inventory table; every ``add`` writes data files and snapshots."""

    store: ObjectStore
    directory: Path
    namespace: str = "b_source"
    name: str = "inventory"

    @property
    def address(self) -> str:
        """The address that follows ``inventory:`` in ``listing``."""
        return f"sql:{self._uri}#{self.namespace}.{self.name}"

    @property
    def _uri(self) -> str:
        return f"sqlite:///{self.directory}/catalog.db"

    @property
    def catalog(self) -> Catalog:
        return load_catalog(CATALOG_NAME, type="sql", uri=self._uri, **properties_of(self.store))

    def make(self, schema: Schema = SCHEMA, location: str = "") -> None:
        """Create the table, without a snapshot."""
        catalog = self.catalog
        catalog.create_namespace_if_not_exists(self.namespace)
        usual = f"s3://{BUCKET}/0f01234c--table-s3/{self.name}"
        catalog.create_table((self.namespace, self.name), schema, location=location or usual)

    def load(self) -> Table:
        """Return the current table."""
        return self.catalog.load_table((self.namespace, self.name))

    def add(self, *files: Iterable[Mapping[str, Any]]) -> int:
        """Append each group of rows as a data file; return the id of the last snapshot."""
        table = self.load()
        schema = table.schema().as_arrow()
        with table.transaction() as transaction:
            for rows in files:
                transaction.append(pa.Table.from_pylist(list(rows), schema=schema))
        current = self.load().metadata.current_snapshot()
        assert current is not None
        return current.snapshot_id
