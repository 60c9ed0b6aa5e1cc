"""The footer of a Parquet object: how many rows it says it has, of which columns.

Only what must be known before Spark reads an object is taken from it. The layout is that of
``parquet.thrift`` in the Thrift compact protocol (Apache Parquet format 2.x): the file ends in
the footer, its length in 4 bytes (little end first) and ``PAR1``.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason

MAGIC = b"PAR1"
#: Length of the footer and magic, the last bytes of every Parquet object.
TRAILER_BYTES = 8
#: Magic at both ends, and the length between them.
FEWEST_BYTES = len(MAGIC) + TRAILER_BYTES
_ENCRYPTED_MAGIC = b"PARE"
_CODECS = ("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")
# Spark writes its own types here where Parquet's cannot tell them (intervals, char and varchar).
_SPARK_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
_DEEPEST = 64
# Holds the footer of most objects, and is read in one go.
_FIRST_LOOK_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """What the footer of one object says.

    Attributes:
        rows: rows in all row groups.
        row_groups: how many there are.
        schema_digest: equal for two objects whose columns Spark would read alike.
        codec: of the first column chunk, such as ``snappy``; ``none`` without any.
    """

    rows: int
    row_groups: int
    schema_digest: str
    codec: str


def footer_bytes(trailer: bytes, size: int) -> int:
    """Length of the footer, without the trailer.

    Args:
        trailer: the last 8 bytes of the object.
        size: bytes of the whole object.

    Raises:
        UnreadableSource: these are not the last bytes of a Parquet object.
    """
    magic = trailer[-len(MAGIC) :]
    if magic == _ENCRYPTED_MAGIC:
        raise UnreadableSource(QuarantineReason.UNKNOWN_FORMAT, "its Parquet footer is encrypted")
    if len(trailer) != TRAILER_BYTES or magic != MAGIC:
        detail = f"it does not end as a Parquet object does, but with {magic!r}"
        raise UnreadableSource(QuarantineReason.TRUNCATED, detail)
    length = int.from_bytes(trailer[:4], "little")
    if not 0 < length <= size - FEWEST_BYTES:
        detail = f"its footer is said to have {length} bytes, the object has {size}"
        raise UnreadableSource(QuarantineReason.CORRUPT, detail)
    return length


def parse_footer(footer: bytes) -> ParquetFooter:
    """Read a footer, given without its trailer.

    Raises:
        UnreadableSource: CORRUPT, these bytes are no footer.
    """
    try:
        return _Compact(footer).file_metadata()
    except (IndexError, ValueError, KeyError, TypeError, struct.error) as error:
        detail = f"its Parquet footer cannot be read: {type(error).__name__}"
        raise UnreadableSource(QuarantineReason.CORRUPT, detail) from error


def read_footer(read_range: Callable[[int, int], bytes], size: int) -> ParquetFooter:
    """The footer of an object of which ranges can be read: one read, two of a long footer.

    Args:
        read_range: gives the bytes from an offset on, of a length.
        size: bytes of the whole object.

    Raises:
        UnreadableSource: it is not a whole Parquet object.
    """
    if size < FEWEST_BYTES:
        detail = f"{size} bytes are too few for a Parquet object"
        raise UnreadableSource(QuarantineReason.TRUNCATED, detail)
    looked_at = min(size, _FIRST_LOOK_BYTES)
    tail = read_range(size - looked_at, looked_at)
    needed = footer_bytes(tail[-TRAILER_BYTES:], size) + TRAILER_BYTES
    if needed > looked_at:
        tail = read_range(size - needed, needed)
    return parse_footer(tail[len(tail) - needed : -TRAILER_BYTES])


class _Compact:
    """A reader of the Thrift compact protocol; structs become dictionaries by field id."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._depth = 0
        self._readers: dict[int, Callable[[], Any]] = {
            3: self._byte,
            4: self._zigzag,
            5: self._zigzag,
            6: self._zigzag,
            7: self._double,
            8: self._binary,
            9: self._list,
            10: self._list,
            11: self._map,
            12: self._struct,
        }

    def file_metadata(self) -> ParquetFooter:
        """The fields of FileMetaData: 2 schema, 3 rows, 4 row groups, 5 keys and values."""
        spans: dict[int, bytes] = {}
        fields = self._struct(spans)
        digest = hashlib.blake2b(spans[2], digest_size=16)
        for pair in fields.get(5, ()):
            if pair[1] == _SPARK_SCHEMA_KEY:
                digest.update(pair.get(2, b""))
        groups = fields[4]
        chunks = groups[0][1] if groups else ()
        codec = _CODECS[chunks[0][3][4]] if chunks else "none"
        return ParquetFooter(fields[3], len(groups), digest.hexdigest(), codec)

    def _struct(self, spans: dict[int, bytes] | None = None) -> dict[int, Any]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        while (head := self._byte()) != 0:
            delta, kind = head >> 4, head & 15
            number = number + delta if delta else self._zigzag()
            start = self._at
            fields[number] = kind == 1 if kind in (1, 2) else self._readers[kind]()
            if spans is not None:
                spans[number] = self._data[start : self._at]
        self._depth -= 1
        return fields

    def _list(self) -> list[Any]:
        head = self._byte()
        size, kind = head >> 4, head & 15
        if size == 15:
            size = self._varint()
        if size > len(self._data) - self._at:
            raise ValueError("a list longer than the footer")
        read = self._readers[3 if kind in (1, 2) else kind]
        return [read() for _ in range(size)]

    def _map(self) -> dict[Any, Any]:
        size = self._varint()
        if size:
            # FileMetaData has no map.
            raise ValueError("a map, where none belongs")
        return {}

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _double(self) -> float:
        self._at += 8
        (value,) = struct.unpack("<d", self._data[self._at - 8 : self._at])
        return float(value)

    def _binary(self) -> bytes:
        length = self._varint()
        start, self._at = self._at, self._at + length
        if self._at > len(self._data):
            raise IndexError("a value behind the end")
        return self._data[start : self._at]
