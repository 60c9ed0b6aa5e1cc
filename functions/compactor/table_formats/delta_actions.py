"""What stands in the log of a Delta table, and in its checkpoints (protocol, "Actions")."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow.parquet as pq

from compactor.decoding import decoder


class _Action(msgspec.Struct, rename="camel"):
    """Base of what a log holds; what is not named is passed over."""


class DeletionVector(_Action):
    """Which rows of a file are deleted."""

    storage_type: str
    path_or_inline_dv: str
    cardinality: int
    offset: int | None = None

    @property
    def id(self) -> str:
        """The identity of a deletion vector, as the protocol composes it."""
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{at}"


class Add(_Action):
    """A data file of the table; times in milliseconds."""

    path: str
    size: int
    modification_time: int = 0
    partition_values: dict[str, str | None] = {}
    # In checkpoints never true, and not read.
    data_change: bool = True
    stats: str | None = None
    deletion_vector: DeletionVector | None = None
    # In some checkpoints instead of their text.
    stats_parsed: dict[str, Any] | None = None


class Remove(_Action):
    """A data file that is no longer one."""

    path: str
    deletion_timestamp: int | None = None
    data_change: bool = True
    stats: str | None = None
    deletion_vector: DeletionVector | None = None
    partition_values: dict[str, str | None] | None = None


class Protocol(_Action):
    """What a reader must know."""

    min_reader_version: int = 1
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None


class Metadata(_Action):
    """What the table is."""

    id: str
    schema_string: str
    partition_columns: list[str] = []
    configuration: dict[str, str | None] = {}


class Sidecar(_Action):
    """A part of a checkpoint."""

    path: str


class CommitInfo(_Action):
    """Who made a version; the protocol has no rules for it, so anything may be there."""

    operation: Any = None
    timestamp: Any = None
    operation_parameters: Any = None

    def parameter(self, name: str) -> Any:
        """A parameter of the operation; None where there is none of that name."""
        given = self.operation_parameters
        return given.get(name) if isinstance(given, dict) else None


class Transaction(_Action):
    """The number that an application gave to its last commit."""

    app_id: str
    version: int


class Line(_Action):
    """One of these."""

    add: Add | None = None
    remove: Remove | None = None
    meta_data: Metadata | None = None
    protocol: Protocol | None = None
    sidecar: Sidecar | None = None
    commit_info: CommitInfo | None = None
    txn: Transaction | None = None


_decode = decoder(Line)
# Names of the columns of a checkpoint; those that it has not are passed over.
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
    """Lines of a version, or of a V2 checkpoint in JSON."""
    return (_decode(line) for line in body.split(b"\n") if line.strip())


def lines_of_parquet(body: bytes) -> Iterator[Line]:
    """Lines of a checkpoint, or of a part or sidecar of one."""
    file = pq.ParquetFile(io.BytesIO(body))
    for batch in file.iter_batches(columns=_COLUMNS):
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            yield msgspec.convert({name: _plain(one) for name, one in row.items()}, Line)


def _plain(action: Any) -> Any:
    """An action as JSON would have it: without what is null."""
    if not isinstance(action, dict):
        return action
    return {_CAMEL.get(name, name): one for name, one in action.items() if one is not None}
