"""The mapping as Parquet, written as it comes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.codecs.parquet_writer import Kind
from compactor.outputs.mapping import COLUMNS, Mapped

# Rows of one row group: some ten megabytes, whatever the destination holds.
_ROWS_AT_ONCE = 50_000
_TYPES = {
    Kind.TEXT: pa.string(),
    Kind.BYTES: pa.binary(),
    Kind.WHOLE: pa.int64(),
    Kind.MOMENT: pa.timestamp("us", tz="UTC"),
    Kind.FLAG: pa.bool_(),
}
_SCHEMA = pa.schema(
    [pa.field(one.name, _TYPES[one.kind], nullable=one.nullable) for one in COLUMNS]
)


class _Drain(io.RawIOBase):
    """A file that gives away what was written to it, and knows only where it is."""

    def __init__(self) -> None:
        super().__init__()
        self._held: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Bytes written so far, those given away included."""
        return self._position

    def write(self, data: object) -> int:
        """Hold a copy: the buffer is the writer's."""
        piece = bytes(memoryview(data))  # type: ignore[arg-type] # pyarrow gives buffers only
        self._held.append(piece)
        self._position += len(piece)
        return len(piece)

    def take(self) -> list[bytes]:
        """What was written since the last time."""
        taken, self._held = self._held, []
        return taken


def as_parquet(rows: Iterable[Mapped]) -> Iterator[bytes]:
    """A Parquet file in pieces; one row group is held at a time."""
    drain, left = _Drain(), iter(rows)
    with pq.ParquetWriter(drain, _SCHEMA, compression="zstd") as writer:
        while group := list(islice(left, _ROWS_AT_ONCE)):
            columns = zip(*group, strict=True)
            arrays = [
                pa.array(column, field.type) for column, field in zip(columns, _SCHEMA, strict=True)
            ]
            writer.write_batch(pa.record_batch(arrays, schema=_SCHEMA))
            yield from drain.take()
    yield from drain.take()
