"""Reads the footers of outputs concurrently, through the run's own store."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from compactor.encoding.parquet_file import open_parquet
from compactor.errors import IntegrityError, InvalidInput, ObjectMissing, UnreadableSource
from compactor.ports import ObjectStore
from compactor.sinks.table_catalog import TableFile

_READERS = 16


@dataclass(slots=True)
class Footers:
    """The footers of outputs, each read once.

    Attributes:
        store: where the outputs are.
    """

    store: ObjectStore
    _known: dict[str, Any] = field(default_factory=dict)

    def of(self, files: Sequence[TableFile]) -> list[Any]:
        """Return a ``pyarrow.parquet.FileMetaData`` for each file.

        Raises:
            InvalidInput: an output is not Parquet.
            IntegrityError: an output is gone, or its row count differs from its commit's.
        """
        waiting = [one for one in files if one.uri not in self._known]
        if not waiting:
            return [self._known[one.uri] for one in files]
        with ThreadPoolExecutor(_READERS) as pool:
            for one, found in zip(waiting, pool.map(self._read, waiting), strict=True):
                self._known[one.uri] = found
        return [self._known[one.uri] for one in files]

    def unreadable(self, files: Sequence[TableFile]) -> dict[TableFile, str]:
        """Return the files whose footer cannot be used, each with the reason.

        Raises:
            IntegrityError: an output is gone.
        """
        found: dict[TableFile, str] = {}
        waiting = [one for one in files if one.uri not in self._known]
        with ThreadPoolExecutor(_READERS) as pool:
            for one, why in zip(waiting, pool.map(self._why_unreadable, waiting), strict=True):
                if why:
                    found[one] = why
        return found

    def _why_unreadable(self, one: TableFile) -> str:
        try:
            self._known[one.uri] = self._read(one)
        except (InvalidInput, _OtherRows) as error:
            return str(error)
        return ""

    def forget(self) -> None:
        """Drop the footers, to free memory."""
        self._known.clear()

    def _read(self, one: TableFile) -> Any:
        read_range = partial(self.store.get_range, one.bucket, one.key)
        try:
            metadata = open_parquet(read_range, one.size).metadata
        except ObjectMissing:
            raise IntegrityError(f"{one.uri} is gone, and is not in the table yet") from None
        except UnreadableSource as error:
            raise _no_parquet(one, error) from None
        if one.rows is not None and metadata.num_rows != one.rows:
            raise _OtherRows(f"{one.uri} has {metadata.num_rows} rows, its commit says {one.rows}")
        return metadata


class _OtherRows(IntegrityError):
    """An output's row count differs from its commit's."""


def _no_parquet(one: TableFile, error: Exception) -> InvalidInput:
    accepted = (
        f"a destination whose outputs are all Parquet; {one.uri} is not"
        f" ({' '.join(str(error).split())})"
    )
    return InvalidInput("s3_destination_uri", one.uri, accepted)


def schemas_of(footers: Sequence[Any]) -> list[tuple[int, pa.Schema]]:
    """Return the distinct schemas, each with the index of the first footer that has it."""
    found: dict[pa.Schema, int] = {}
    for number, footer in enumerate(footers):
        schema = footer.schema.to_arrow_schema().remove_metadata()
        found.setdefault(optional(schema), number)
    return [(number, schema) for schema, number in found.items()]


def optional(schema: pa.Schema) -> pa.Schema:
    """Return the schema without metadata, and with every field optional, also nested ones."""
    return pa.schema([_optional(one) for one in schema])


def _optional(one: pa.Field) -> pa.Field:
    return pa.field(one.name, _optional_inside(one.type), nullable=True)


def _optional_inside(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_optional(kind.field(n)) for n in range(kind.num_fields)])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_optional(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _optional(kind.item_field))
    return kind


def require_signed(kind: pa.DataType) -> None:
    """Reject unsigned integers: both libraries treat them as signed ones, which overflow.

    Raises:
        TypeError: the type is or contains an unsigned integer.
    """
    if pa.types.is_unsigned_integer(kind):
        raise TypeError(f"unsigned numbers ({kind})")
    for number in range(kind.num_fields):
        require_signed(kind.field(number).type)
