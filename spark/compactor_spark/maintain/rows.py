"""Row counts, and two order-independent hashes over rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from compactor.errors import InvalidInput
from compactor_spark.maintain.row_hash import MODULUS, hash_sums

_HASHED = "columns of which Spark makes a hash; or verify_bytes 0, and nothing compares the rows"


class RowSums(NamedTuple):
    """Sums that are equal for equal rows; for different rows with a probability of 2**-128.

    Attributes:
        rows: number of rows.
        first, second: sums of the rows' hashes, modulo 2**64, each with a different seed.
    """

    rows: int
    first: int
    second: int


class Compared(NamedTuple):
    """The sums before and after a rewrite, which should be equal.

    Attributes:
        before, after: sums of the rows.
        seconds: durations of reading the rows before and after.
    """

    before: RowSums
    after: RowSums
    seconds: tuple[float, float]


def compared(before: Callable[[], RowSums], after: Callable[[], RowSums]) -> Compared:
    """Read both sequentially, and return their sums and durations."""
    began = time.monotonic()
    one = before()
    between = time.monotonic()
    other = after()
    return Compared(one, other, (between - began, time.monotonic() - between))


def sums_of(frame: DataFrame) -> RowSums:
    """Read all rows, and return their sums."""
    (found,) = frame.agg(*hash_sums(frame.schema)).collect()
    first, second = (int(found[name] or 0) % MODULUS for name in ("first", "second"))
    return RowSums(int(found["rows"]), first, second)


def require_sums(frame: DataFrame) -> None:
    """Check that :func:`sums_of` works for these columns; reads no rows.

    Raises:
        InvalidInput: Spark cannot hash a column; names the types of all columns.
    """
    try:
        frame.agg(*hash_sums(frame.schema)).schema  # noqa: B018 - Spark analyses it now
    except PySparkException:
        raise InvalidInput("columns", frame.schema.simpleString(), _HASHED) from None
