"""A digest over rows in their order, of which every reader of the same rows gets the same one.

Each leaf column is hashed apart: which values are null, how long they are, and the values. So the
digest does not depend on how rows are cut into chunks, nor on what memory holds below a null.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

_DIGEST_BYTES = 8


class RowDigest:
    """The number of rows and a digest over them, table by table."""

    def __init__(self) -> None:
        self.rows = 0
        self._streams: list[hashlib.blake2b] = []

    def add(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Add rows; all of them have the same columns."""
        # A column costs much more than its values where chunks are small.
        batches = rows.combine_chunks().to_batches() if isinstance(rows, pa.Table) else [rows]
        for batch in batches:
            self.rows += batch.num_rows
            parts = [part for column in batch.columns for part in _parts(column)]
            if not self._streams:
                self._streams = [hashlib.blake2b(digest_size=32) for _ in parts]
            for stream, part in zip(self._streams, parts, strict=True):
                stream.update(part)

    @property
    def hash(self) -> str:
        """16 hex digits."""
        whole = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        for stream in self._streams:
            whole.update(stream.digest())
        return whole.hexdigest()


def _parts(array: pa.Array) -> Iterator[memoryview | pa.Buffer | bytes]:
    """Yield what is hashed of an array: always as many parts for one type."""
    kind = array.type
    yield _fixed(array.is_valid().cast(pa.uint8()))
    if pa.types.is_null(kind):
        return
    if pa.types.is_struct(kind):
        for member in array.flatten():
            yield from _parts(member)
    elif pa.types.is_map(kind):
        yield from _entries(array)
    elif pa.types.is_list(kind):
        yield _fixed(pc.fill_null(pc.list_value_length(array), 0))
        yield from _parts(array.flatten())
    elif pa.types.is_string(kind) or pa.types.is_binary(kind):
        present = array.drop_null()
        yield _fixed(pc.binary_length(present))
        yield _bytes(present)
    elif pa.types.is_boolean(kind):
        yield _fixed(array.drop_null().cast(pa.uint8()))
    else:
        yield _fixed(array.drop_null())


def _entries(array: pa.MapArray) -> Iterator[memoryview | pa.Buffer | bytes]:
    """Yield the parts of a map's entries, those of null maps left out."""
    entries = array.drop_null().cast(
        pa.list_(
            pa.struct(
                [pa.field("key", array.type.key_type), pa.field("value", array.type.item_type)]
            )
        )
    )
    yield from _parts(entries)


def _fixed(array: pa.Array) -> memoryview | bytes:
    """Return the bytes of values of one width, none of which is null."""
    width = array.type.bit_width // 8
    data = array.buffers()[1]
    if data is None:
        return b""
    start = array.offset * width
    return memoryview(data)[start : start + len(array) * width]


def _bytes(array: pa.Array) -> memoryview | bytes:
    """Return the bytes of all texts, none of which is null, one after the other."""
    _, offsets, data = array.buffers()
    if data is None or not len(array):
        return b""
    ends = memoryview(offsets).cast("i")
    return memoryview(data)[ends[array.offset] : ends[array.offset + len(array)]]
