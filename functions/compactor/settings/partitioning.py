"""The partitioning of a table in a run's input: columns, and transforms of columns.

The transforms are those of the Iceberg specification ("Partition Transforms"), written as in Spark
and Athena after ``PARTITIONED BY``; Spark's plurals (``days(ts)``) mean the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

PARTITIONING_ACCEPTED = (
    "a list, each once, of columns and of year(ts), month(ts), day(ts), hour(ts),"
    ' truncate(8, name), bucket(16, id), such as ["day(ts)", "country"]'
)
IDENTITY = "identity"
_TIMES = ("year", "month", "day", "hour")
_SIZED = ("bucket", "truncate")
_CALL = re.compile(r"\s*([a-z]+)\s*\(\s*(?:([0-9]{1,10})\s*,)?\s*(.*?)\s*\)\s*", re.IGNORECASE)
# Widths and numbers of buckets are signed 32-bit integers in every engine.
_LARGEST = (1 << 31) - 1


class PartitionBy(msgspec.Struct, frozen=True):
    """One field of a table's partitioning.

    Attributes:
        transform: ``identity``, ``year``, ``month``, ``day``, ``hour``, ``bucket`` or ``truncate``.
        column: name of the column.
        size: number of buckets, or width that truncate leaves; otherwise 0.
    """

    transform: str
    column: str
    size: int = 0

    @property
    def text(self) -> str:
        """The field as in a run's input."""
        if self.transform == IDENTITY:
            return self.column
        size = f"{self.size}, " if self.size else ""
        return f"{self.transform}({size}{self.column})"

    @property
    def name(self) -> str:
        """Name of the partition field, as Iceberg's Java library and Spark choose it."""
        endings = {IDENTITY: "", "truncate": "_trunc"}
        return self.column + endings.get(self.transform, f"_{self.transform}")


def parse_partition_by(text: str) -> PartitionBy:
    """Parse one field.

    Raises:
        ValueError: it has brackets, but is not a transform.
    """
    if not re.search(r"[()]", text):
        return PartitionBy(IDENTITY, text)
    call = _CALL.fullmatch(text)
    if call is None or not call[3] or re.search(r"[(),]", call[3]):
        raise ValueError
    transform, size, column = call[1].lower(), int(call[2] or 0), call[3]
    if transform.removesuffix("s") in _TIMES and not call[2]:
        return PartitionBy(transform.removesuffix("s"), column)
    if transform in _SIZED and 0 < size <= _LARGEST:
        return PartitionBy(transform, column, size)
    raise ValueError


def parse_partitioning(value: object) -> tuple[str, ...]:
    """Parse the fields of a table's partitioning and return them in normal form.

    Raises:
        ValueError: it is invalid. Fields that Iceberg calls redundant (``day(ts)`` beside
            ``hour(ts)``), or that would have the same name, are invalid, too.
    """
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ValueError
    if not all(isinstance(one, str) and one for one in value):
        raise ValueError
    fields = [parse_partition_by(one) for one in value]
    kinds = {(one.column, "time" if one.transform in _TIMES else one.transform) for one in fields}
    if len(kinds) < len(fields) or len({one.name for one in fields}) < len(fields):
        raise ValueError
    return tuple(one.text for one in fields)
