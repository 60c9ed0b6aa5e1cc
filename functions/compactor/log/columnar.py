"""What a commit keeps of an output that holds the rows of its sources instead of their bytes."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


class DeadLetters(msgspec.Struct, frozen=True):
    """Location of the records that do not fit the schema, one JSON object per line.

    Besides the sources, this is the only copy of these records, and query engines do not read it.
    ``size`` and ``crc32`` are those of the object as stored.
    """

    bucket: str
    key: str
    size: int
    crc32: int
    records: int


@dataclass(frozen=True, slots=True)
class Columnar:
    """Row counts and hashes of one Parquet output.

    Attributes:
        rows_in: rows, or records, counted in the sources.
        rows_out: rows counted in the output, read back as it was stored.
        hash_in: 16 hex digits, the digest over the rows, in order, before they were written.
        hash_out: the same over the rows read back.
        codec: compression inside the output, such as ``snappy``.
        schema: columns of the output, in Spark's JSON form of a schema.
        dead_letters: the records that did not fit; None if all did.
    """

    rows_in: int
    rows_out: int
    hash_in: str
    hash_out: str
    codec: str
    schema: str
    dead_letters: DeadLetters | None = None

    @property
    def dead(self) -> int:
        """Number of records that are dead-letter records instead of rows."""
        return self.dead_letters.records if self.dead_letters is not None else 0

    @property
    def fault(self) -> str:
        """Why the output cannot replace its sources, in one line; empty if it can."""
        if self.rows_in != self.rows_out + self.dead:
            return f"{self.rows_in} rows in, {self.rows_out} out and {self.dead} that fit no row"
        if self.hash_in != self.hash_out:
            return f"the hash of the rows was {self.hash_in}, and {self.hash_out} when read back"
        return ""
