"""The mapping as Parquet, written as it comes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from itertools import islice

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.outputs.mapping import Mapped

# Rows of one row group: some ten megabytes, whatever the destination holds.
_ROWS_AT_ONCE = 50_000
# The fields of Mapped, in their order.
_SCHEMA = pa.schema(
    [
        pa.field("partition", pa.string(), nullable=False),
        pa.field("source_bucket", pa.string(), nullable=False),
        pa.field("source_key", pa.string(), nullable=False),
        pa.field("etag", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("committed_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("output", pa.string()),
        pa.field("format", pa.string()),
        pa.field("compression", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("length", pa.int64()),
        pa.field("records", pa.int64()),
        pa.field("plain_bytes", pa.int64()),
        pa.field("crc32", pa.int64()),
        pa.field("exact", pa.bool_(), nullable=False),
        pa.field("dropped_prefix", pa.binary(), nullable=False),
        pa.field("dropped_suffix", pa.binary(), nullable=False),
        pa.field("appended", pa.int64(), nullable=False),
        pa.field("run_id", pa.string(), nullable=False),
        pa.field("commit", pa.int64(), nullable=False),
        pa.field("delivered_again", pa.bool_(), nullable=False),
    ]
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
