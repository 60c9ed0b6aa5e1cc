"""The footer of a Parquet object: its number of rows, and its columns.

Only what must be known before an object is read is parsed. The layout is that of
``parquet.thrift`` in the Thrift compact protocol (Apache Parquet format 2.x): the file ends with
the footer, its length in 4 bytes (little-endian) and ``PAR1``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from compactor.encoding.thrift_compact import LIST, STRUCT, CompactReader
from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason

MAGIC = b"PAR1"
#: Length and magic: the last bytes of every Parquet object.
TRAILER_BYTES = 8
#: Magic at both ends, and the length.
FEWEST_BYTES = len(MAGIC) + TRAILER_BYTES
_ENCRYPTED_MAGIC = b"PARE"
_CODECS = ("none", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")
# Spark stores its own types here if Parquet cannot express them (intervals, char and varchar).
_SPARK_SCHEMA_KEY = b"org.apache.spark.sql.parquet.row.metadata"
# The footer is read whole. Tables with thousands of columns have footers of some megabytes.
_LONGEST_FOOTER = 64 << 20
# Contains the footer of most objects, and takes one request.
_FIRST_LOOK_BYTES = 64 << 10


class ColumnChunk(NamedTuple):
    """The sizes of one column in one row group.

    Attributes:
        path: names from the root, joined by dots.
        physical: number of its physical type.
        values: number of values, including nulls.
        encoded_bytes: size of its pages before compression.
        has_dictionary: whether it has a dictionary page.
    """

    path: str
    physical: int
    values: int
    encoded_bytes: int
    has_dictionary: bool


class RowGroup(NamedTuple):
    """The rows and the column chunks of one row group."""

    rows: int
    chunks: tuple[ColumnChunk, ...]


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """The parsed footer of one object.

    Attributes:
        rows: rows in all row groups.
        row_groups: number of row groups.
        groups: the row groups.
        schema_digest: equal for two objects whose columns Spark reads alike.
        codec: of the first column chunk, such as ``snappy``; ``none`` if there is no chunk.
        schema: the encoded schema elements, for
            :func:`compactor.encoding.parquet_schema.hive_columns`.
    """

    rows: int
    row_groups: int
    schema_digest: str
    codec: str
    schema: bytes = field(default=b"", repr=False, compare=False)
    groups: tuple[RowGroup, ...] = field(default=(), repr=False, compare=False)


def footer_bytes(trailer: bytes, size: int) -> int:
    """Return the length of the footer, without the trailer.

    Args:
        trailer: the last 8 bytes of the object.
        size: size of the whole object in bytes.

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
    """Parse a footer, given without its trailer.

    Raises:
        UnreadableSource: CORRUPT, the bytes are not a footer; UNKNOWN_FORMAT, there are
            encrypted columns.
    """
    try:
        return _Footer(footer).file_metadata()
    except (IndexError, ValueError) as error:
        detail = f"its Parquet footer cannot be read: {type(error).__name__}"
        raise UnreadableSource(QuarantineReason.CORRUPT, detail) from error


def read_footer(read_range: Callable[[int, int], bytes], size: int) -> ParquetFooter:
    """Read the footer of an object by ranges: one read, or two if the footer is long.

    Args:
        read_range: returns the bytes at an offset, of a length.
        size: size of the whole object in bytes.

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


def _codec(code: int) -> str:
    if not 0 <= code < len(_CODECS):
        raise ValueError("an unknown codec")
    return _CODECS[code]


class _Footer(CompactReader):
    """Reads FileMetaData."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._rows = -1
        self._has_groups = False
        self._groups: list[RowGroup] = []
        self._chunks: list[ColumnChunk] = []
        self._numbers: dict[int, int] = {}
        self._path: list[bytes] = []
        self._codec: str | None = None
        self._schema = self._spark_schema = b""
        self._pair = [b"", b""]

    def file_metadata(self) -> ParquetFooter:
        """Read the fields of FileMetaData: 2 schema, 3 rows, 4 row groups, 5 keys and values."""
        self.struct(
            {
                2: self._read_schema,
                3: self._read_rows,
                4: self._read_groups,
                5: self._read_pairs,
            }
        )
        if self._rows < 0 or not self._has_groups or not self._schema:
            raise ValueError("no rows, row groups or schema")
        digest = hashlib.blake2b(self._schema + self._spark_schema, digest_size=16)
        groups = tuple(self._groups)
        return ParquetFooter(
            self._rows,
            len(groups),
            digest.hexdigest(),
            self._codec or "none",
            self._schema,
            groups,
        )

    def _read_schema(self, kind: int) -> None:
        start = self.at
        self.skip(kind)
        self._schema = self.data[start : self.at]

    def _read_rows(self, kind: int) -> None:
        self._rows = self.number(kind)

    def _read_groups(self, kind: int) -> None:
        """Read row groups: fields 1 (columns), 3 (num_rows)."""
        self._has_groups = True
        for _ in range(self.size_of_structs(kind)):
            self._numbers = {}
            self._chunks = []
            self.struct({1: self._read_columns, 3: self._reads(3)})
            self._groups.append(RowGroup(self._numbers.get(3, 0), tuple(self._chunks)))

    def _read_columns(self, kind: int) -> None:
        # Any chunk may be encrypted below a plain footer. Arrow ends the process when it is asked
        # about such a chunk, or about one without metadata.
        for number in range(self.size_of_structs(kind)):
            self.struct({3: self._read_column, 8: self._read_encryption})
            if len(self._chunks) != number + 1:
                raise ValueError("a column chunk without metadata")

    def _read_column(self, kind: int) -> None:
        """Read fields 1 (type), 3 (path), 4 (codec), 5 (values), 6 (size), 11 (dictionary)."""
        self.require(kind, STRUCT)
        rows, self._numbers = self._numbers, {}
        self.struct({n: self._reads(n) for n in (1, 4, 5, 6, 11)} | {3: self._read_path})
        found, self._numbers = self._numbers, rows
        if self._codec is None:
            self._codec = _codec(found.get(4, -1))
        path = b".".join(self._path).decode()
        physical, values, size = (found.get(number, 0) for number in (1, 5, 6))
        self._chunks.append(ColumnChunk(path, physical, values, size, 11 in found))

    def _reads(self, number: int) -> Callable[[int], None]:
        def read(kind: int) -> None:
            self._numbers[number] = self.number(kind)

        return read

    def _read_path(self, kind: int) -> None:
        self.require(kind, LIST)
        size, inner = self.list_header()
        self._path = [self.binary(inner) for _ in range(size)]

    def _read_encryption(self, kind: int) -> None:
        detail = "it has encrypted columns"
        raise UnreadableSource(QuarantineReason.UNKNOWN_FORMAT, detail)

    def _read_pairs(self, kind: int) -> None:
        for _ in range(self.size_of_structs(kind)):
            self._pair = [b"", b""]
            self.struct({1: self._read_key, 2: self._read_value})
            key, value = self._pair
            if key == _SPARK_SCHEMA_KEY:
                self._spark_schema = value

    def _read_key(self, kind: int) -> None:
        self._pair[0] = self.binary(kind)

    def _read_value(self, kind: int) -> None:
        self._pair[1] = self.binary(kind)
