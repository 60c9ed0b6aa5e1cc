"""Opens Parquet objects with pyarrow, of which it reads the last bytes first.

What is no whole Parquet object is refused by a reason of ours, before pyarrow reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason

#: Returns the bytes of an object at an offset, of a length.
ReadRange: TypeAlias = Callable[[int, int], bytes]

_MAGIC, _ENCRYPTED_MAGIC = b"PAR1", b"PARE"
# Length of the footer and magic: the last bytes of every Parquet object.
_TRAILER_BYTES = 8
_FEWEST_BYTES = len(_MAGIC) + _TRAILER_BYTES
# The footer is read whole. Tables with thousands of columns have footers of some megabytes.
_LONGEST_FOOTER = 64 << 20
# Contains the footer of most objects, and takes one request. Arrow reads as many.
_TAIL_BYTES = 64 << 10
# Keeps a column chunk from being read when it is opened.
_BUFFER_BYTES = 4 << 10
# What Arrow raises for footers and pages that are damaged.
DAMAGES = (pa.ArrowException, OSError, ValueError, LookupError, ArithmeticError)


def open_parquet(read_range: ReadRange, size: int, **options: Any) -> pq.ParquetFile:
    """Open a Parquet object by ranges: one read, or two if the footer is long.

    Raises:
        UnreadableSource: TRUNCATED, UNKNOWN_FORMAT if the footer is encrypted, TOO_LARGE;
            CORRUPT, the footer cannot be read; or UNSUPPORTED_TYPE, it has no columns.
    """
    if size < _FEWEST_BYTES:
        detail = f"{size} bytes are too few for a Parquet object"
        raise UnreadableSource(QuarantineReason.TRUNCATED, detail)
    start = max(0, size - _TAIL_BYTES)
    tail = read_range(start, size - start)
    _require_footer(tail[-_TRAILER_BYTES:], size)
    ranges = _Ranges(read_range, size, start, tail)
    try:
        file = pq.ParquetFile(
            pa.PythonFile(ranges, mode="r"), buffer_size=_BUFFER_BYTES, pre_buffer=False, **options
        )
    except DAMAGES as error:
        detail = f"its Parquet footer cannot be read: {first_line(error)}"
        raise UnreadableSource(QuarantineReason.CORRUPT, detail) from error
    if not len(file.schema):
        # Arrow 25 ends the process when it reads rows of no columns.
        raise UnreadableSource(QuarantineReason.UNSUPPORTED_TYPE, "it has no columns")
    return file


def first_line(error: Exception) -> str:
    """Return the first line of an error of Arrow's."""
    return str(error).partition("\n")[0]


def _require_footer(trailer: bytes, size: int) -> None:
    magic = trailer[-len(_MAGIC) :]
    if magic == _ENCRYPTED_MAGIC:
        raise UnreadableSource(QuarantineReason.UNKNOWN_FORMAT, "its Parquet footer is encrypted")
    if magic != _MAGIC:
        detail = f"it does not end as a Parquet object does, but with {magic!r}"
        raise UnreadableSource(QuarantineReason.TRUNCATED, detail)
    length = int.from_bytes(trailer[:4], "little")
    if not 0 < length <= size - _FEWEST_BYTES:
        detail = f"its footer is said to have {length} bytes, the object has {size}"
        raise UnreadableSource(QuarantineReason.CORRUPT, detail)
    if length > _LONGEST_FOOTER:
        detail = f"its footer has {length} bytes, more than {_LONGEST_FOOTER}"
        raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)


def column_chunks(file: pq.ParquetFile, row_group: int) -> Iterator[Any]:
    """Yield the metadata of a row group's column chunks, a ``ColumnChunkMetaData`` for each leaf.

    pyarrow ends the process when it is asked for the metadata of an encrypted chunk, while its
    reader raises an error for one: so it opens them first. It reads no page of them.

    Raises:
        UnreadableSource: UNKNOWN_FORMAT, a chunk is encrypted; or CORRUPT.
    """
    group = file.metadata.row_group(row_group)
    try:
        for _ in file.reader.iter_batches(0, [row_group], use_threads=False):
            pass
        if group.num_columns != len(file.schema):
            raise ValueError(f"{group.num_columns} column chunks of {len(file.schema)} columns")
    except DAMAGES as error:
        if "Cannot decrypt" in str(error):
            detail = "it has encrypted columns"
            raise UnreadableSource(QuarantineReason.UNKNOWN_FORMAT, detail) from error
        detail = f"its Parquet footer cannot be read: {first_line(error)}"
        raise UnreadableSource(QuarantineReason.CORRUPT, detail) from error
    for number in range(group.num_columns):
        yield group.column(number)


class _Ranges:
    """A file whose parts are read when they are needed."""

    closed = False

    def __init__(self, read_range: ReadRange, size: int, tail_start: int, tail: bytes) -> None:
        self._read_range = read_range
        self._size = size
        self._tail_start = tail_start
        self._tail = tail
        self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, count: int = -1) -> bytes:
        available = self._size - self._at
        count = available if count < 0 else min(count, available)
        if not count:
            return b""
        within = self._at - self._tail_start
        if within >= 0:
            content = self._tail[within : within + count]
        else:
            content = self._read_range(self._at, count)
        self._at += len(content)
        return content

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True
