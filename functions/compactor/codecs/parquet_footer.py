"""The footer of a Parquet object: how many rows it says it has, of which columns.

Only what must be known before Spark reads an object is taken from it. The layout is that of
``parquet.thrift`` in the Thrift compact protocol (Apache Parquet format 2.x): the file ends in
the footer, its length in 4 bytes (little end first) and ``PAR1``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
# It is read whole; those of tables with thousands of columns have some megabytes.
_LONGEST_FOOTER = 64 << 20
# Kinds of values in the compact protocol. As a field a boolean is its kind, and nothing follows.
_BOOLEANS = (1, 2)
_NUMBERS = (4, 5, 6)
_BINARY, _LIST, _MAP, _STRUCT = 8, 9, 11, 12
_LISTS = (_LIST, 10)
_FIXED = {1: 0, 2: 0, 3: 1, 7: 8}
# Holds the footer of most objects, and is read in one go.
_FIRST_LOOK_BYTES = 64 << 10


_Fields = Mapping[int, Callable[[int], None]]


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
    if length > _LONGEST_FOOTER:
        detail = f"its footer has {length} bytes, more than {_LONGEST_FOOTER}"
        raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
    return length


def parse_footer(footer: bytes) -> ParquetFooter:
    """Read a footer, given without its trailer.

    Raises:
        UnreadableSource: CORRUPT, these bytes are no footer.
    """
    try:
        return _Compact(footer).file_metadata()
    except (IndexError, ValueError) as error:
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
    """A reader of the Thrift compact protocol: what is not asked for is passed over, not kept.

    A method for a field gets its kind, and reads it.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._depth = 0
        self._rows = self._groups = -1
        self._codec = "none"
        self._schema = self._spark_schema = b""
        self._pair = [b"", b""]

    def file_metadata(self) -> ParquetFooter:
        """The fields of FileMetaData: 2 schema, 3 rows, 4 row groups, 5 keys and values."""
        self._struct(
            {
                2: self._read_schema,
                3: self._read_rows,
                4: self._read_groups,
                5: self._read_pairs,
            }
        )
        if self._rows < 0 or self._groups < 0 or not self._schema:
            raise ValueError("no rows, row groups or schema")
        digest = hashlib.blake2b(self._schema + self._spark_schema, digest_size=16)
        return ParquetFooter(self._rows, self._groups, digest.hexdigest(), self._codec)

    def _read_schema(self, kind: int) -> None:
        start = self._at
        self._skip(kind)
        self._schema = self._data[start : self._at]

    def _read_rows(self, kind: int) -> None:
        self._rows = self._number(kind)

    def _read_groups(self, kind: int) -> None:
        """Of the first RowGroup: 1 columns, of the first of which 3 meta_data, of which 4 codec."""
        self._groups = self._structs(kind, {1: self._read_columns})

    def _read_columns(self, kind: int) -> None:
        self._structs(kind, {3: self._read_column})

    def _read_column(self, kind: int) -> None:
        self._require(kind, _STRUCT)
        self._struct({4: self._read_codec})

    def _read_codec(self, kind: int) -> None:
        code = self._number(kind)
        if not 0 <= code < len(_CODECS):
            raise ValueError("an unknown codec")
        self._codec = _CODECS[code]

    def _read_pairs(self, kind: int) -> None:
        for _ in range(self._size_of_structs(kind)):
            self._pair = [b"", b""]
            self._struct({1: self._read_key, 2: self._read_value})
            key, value = self._pair
            if key == _SPARK_SCHEMA_KEY:
                self._spark_schema = value

    def _read_key(self, kind: int) -> None:
        self._require(kind, _BINARY)
        self._pair[0] = self._bytes(self._varint())

    def _read_value(self, kind: int) -> None:
        self._require(kind, _BINARY)
        self._pair[1] = self._bytes(self._varint())

    def _structs(self, kind: int, of_first: _Fields) -> int:
        """Read a list of structs, certain fields of the first alone; returns its length."""
        size = self._size_of_structs(kind)
        for number in range(size):
            self._struct({} if number else of_first)
        return size

    def _size_of_structs(self, kind: int) -> int:
        self._require(kind, _LIST)
        size, inner = self._list_header()
        # An empty list may name any kind.
        if size:
            self._require(inner, _STRUCT)
        return size

    def _struct(self, fields: _Fields) -> None:
        self._deeper()
        number = 0
        while (head := self._byte()) != 0:
            delta, kind = head >> 4, head & 15
            number = number + delta if delta else self._zigzag()
            fields.get(number, self._skip)(kind)
        self._depth -= 1

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError("nested too deep")

    def _skip(self, kind: int) -> None:
        if kind in _NUMBERS:
            self._varint()
        elif kind == _BINARY:
            self._pass(self._varint())
        elif kind in _LISTS:
            self._skip_list()
        elif kind == _STRUCT:
            self._struct({})
        elif kind == _MAP:
            # FileMetaData has no map; an empty one is a single byte.
            if self._varint():
                raise ValueError("a map, where none belongs")
        elif kind in _FIXED:
            self._pass(_FIXED[kind])
        else:
            raise ValueError("a value of an unknown kind")

    def _skip_list(self) -> None:
        self._deeper()
        size, kind = self._list_header()
        if kind in _BOOLEANS:
            self._pass(size)
        else:
            for _ in range(size):
                self._skip(kind)
        self._depth -= 1

    def _list_header(self) -> tuple[int, int]:
        """Length and kind of what follows; each of it takes a byte or more."""
        head = self._byte()
        size = head >> 4
        if size == 15:
            size = self._varint()
        if size > len(self._data) - self._at:
            raise ValueError("a list longer than the footer")
        return size, head & 15

    def _require(self, kind: int, expected: int) -> None:
        if kind != expected:
            raise ValueError("a value of another kind")

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a number of more than 64 bits")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _number(self, kind: int) -> int:
        if kind not in _NUMBERS:
            raise ValueError("a value of another kind")
        return self._zigzag()

    def _bytes(self, length: int) -> bytes:
        start = self._at
        self._pass(length)
        return self._data[start : self._at]

    def _pass(self, count: int) -> None:
        self._at += count
        if self._at > len(self._data):
            raise IndexError("a value behind the end")
