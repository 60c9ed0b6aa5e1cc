"""The actions in the log of a Delta table and in its checkpoints (protocol, "Actions")."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow.parquet as pq

from compactor.decoding import decoder


class _Action(msgspec.Struct, rename="camel"):
    """Base of all actions. Fields that are not declared are ignored."""


class DeletionVector(_Action):
    """The deleted rows of a file."""

    storage_type: str
    path_or_inline_dv: str
    cardinality: int
    offset: int | None = None

    @property
    def id(self) -> str:
        """The identity of a deletion vector, composed as in the protocol."""
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{at}"


class Add(_Action):
    """A data file of the table. Times are in milliseconds."""

    path: str
    size: int
    modification_time: int = 0
    partition_values: dict[str, str | None] = {}
    # Never true in checkpoints, and not read from them.
    data_change: bool = True
    stats: str | None = None
    deletion_vector: DeletionVector | None = None
    # Some checkpoints have this instead of `stats`.
    stats_parsed: dict[str, Any] | None = None


class Remove(_Action):
    """A data file that was removed from the table."""

    path: str
    deletion_timestamp: int | None = None
    data_change: bool = True
    size: int | None = None
    stats: str | None = None
    deletion_vector: DeletionVector | None = None
    partition_values: dict[str, str | None] | None = None


class Protocol(_Action):
    """The features that a reader or writer must support."""

    min_reader_version: int = 1
    min_writer_version: int = 1
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


class Metadata(_Action):
    """The table's schema, partitioning and configuration."""

    id: str
    schema_string: str
    partition_columns: list[str] = []
    configuration: dict[str, str | None] = {}


class Sidecar(_Action):
    """A part of a checkpoint."""

    path: str


class CommitInfo(_Action):
    """How a version was made. The protocol does not define the content, so it may be anything."""

    operation: Any = None
    timestamp: Any = None
    operation_parameters: Any = None
    operation_metrics: Any = None
    user_metadata: Any = None
    txn_id: Any = None

    def parameter(self, name: str) -> Any:
        """Return a parameter of the operation; None if it has none of this name."""
        given = self.operation_parameters
        return given.get(name) if isinstance(given, dict) else None


class Transaction(_Action):
    """The number that an application gave its last commit."""

    app_id: str
    version: int


class Line(_Action):
    """A line of the log: one of the actions."""

    add: Add | None = None
    remove: Remove | None = None
    meta_data: Metadata | None = None
    protocol: Protocol | None = None
    sidecar: Sidecar | None = None
    commit_info: CommitInfo | None = None
    txn: Transaction | None = None


_decode = decoder(Line)
# Columns of a checkpoint; missing ones are ignored.
_COLUMNS = (
    "add.path",
    "add.size",
    "add.modificationTime",
    "add.partitionValues",
    "add.stats",
    "add.stats_parsed.numRecords",
    "add.deletionVector",
    "remove.path",
    "remove.deletionTimestamp",
    "remove.deletionVector",
    "remove.partitionValues",
    "metaData",
    "protocol",
    "sidecar",
)
_CAMEL = {"stats_parsed": "statsParsed"}


def lines_of_json(body: bytes) -> Iterator[Line]:
    """Yield the lines of a version, or of a V2 checkpoint in JSON."""
    return (_decode(line) for line in body.split(b"\n") if line.strip())


def lines_of_parquet(body: bytes) -> Iterator[Line]:
    """Yield the lines of a checkpoint, or of a part or sidecar of one."""
    file = pq.ParquetFile(io.BytesIO(body))
    for batch in file.iter_batches(columns=_COLUMNS):
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            yield msgspec.convert({name: _plain(one) for name, one in row.items()}, Line)


def _plain(action: Any) -> Any:
    """Return an action as in JSON: without nulls."""
    if not isinstance(action, dict):
        return action
    return {_CAMEL.get(name, name): one for name, one in action.items() if one is not None}
