"""The footer of a Parquet object: its number of rows, and its columns.

Only what must be known before Spark reads an object is parsed. The layout is that of
``parquet.thrift`` in the Thrift compact protocol (Apache Parquet format 2.x): the file ends with
the footer, its length in 4 bytes (little-endian) and ``PAR1``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from compactor.encoding.thrift_compact import STRUCT, CompactReader
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


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """The parsed footer of one object.

    Attributes:
        rows: rows in all row groups.
        row_groups: number of row groups.
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
        UnreadableSource: CORRUPT, the bytes are not a footer.
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


class _Footer(CompactReader):
    """Reads FileMetaData."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._rows = self._groups = -1
        self._codec = "none"
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
        if self._rows < 0 or self._groups < 0 or not self._schema:
            raise ValueError("no rows, row groups or schema")
        digest = hashlib.blake2b(self._schema + self._spark_schema, digest_size=16)
        rows, groups = self._rows, self._groups
        return ParquetFooter(rows, groups, digest.hexdigest(), self._codec, self._schema)

    def _read_schema(self, kind: int) -> None:
        start = self.at
        self.skip(kind)
        self._schema = self.data[start : self.at]

    def _read_rows(self, kind: int) -> None:
        self._rows = self.number(kind)

    def _read_groups(self, kind: int) -> None:
        """Read the codec of the first row group: fields 1 (columns), 3 (meta_data), 4 (codec)."""
        self._groups = self.structs(kind, {1: self._read_columns})

    def _read_columns(self, kind: int) -> None:
        self.structs(kind, {3: self._read_column})

    def _read_column(self, kind: int) -> None:
        self.require(kind, STRUCT)
        self.struct({4: self._read_codec})

    def _read_codec(self, kind: int) -> None:
        code = self.number(kind)
        if not 0 <= code < len(_CODECS):
            raise ValueError("an unknown codec")
        self._codec = _CODECS[code]

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
