"""How many rows there are, and two hashes over them that do not depend on their order."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from compactor.errors import InvalidInput
from compactor_spark.columnar.hash import MODULUS, hash_sums

_HASHED = "columns of which Spark makes a hash; or verify_bytes 0, and nothing compares the rows"


class RowSums(NamedTuple):
    """Sums that are equal for equal rows; for other rows they are equal with chance 2**-128.

    Attributes:
        rows: how many.
        first, second: sums of the rows' hashes, modulo 2**64, each from a seed of its own.
    """

    rows: int
    first: int
    second: int


class Compared(NamedTuple):
    """What is to have the same rows.

    Attributes:
        before, after: of its rows.
        seconds: that it took to read each of both.
    """

    before: RowSums
    after: RowSums
    seconds: tuple[float, float]


def compared(before: Callable[[], RowSums], after: Callable[[], RowSums]) -> Compared:
    """Read both, one after the other."""
    began = time.monotonic()
    one = before()
    between = time.monotonic()
    other = after()
    return Compared(one, other, (between - began, time.monotonic() - between))


def sums_of(frame: DataFrame) -> RowSums:
    """Read all rows, and add them up."""
    (found,) = frame.agg(*hash_sums(frame.schema)).collect()
    first, second = (int(found[name] or 0) % MODULUS for name in ("first", "second"))
    return RowSums(int(found["rows"]), first, second)


def require_sums(frame: DataFrame) -> None:
    """See that :func:`sums_of` can be had; reads nothing.

    Raises:
        InvalidInput: names the types of the columns.
    """
    try:
        frame.agg(*hash_sums(frame.schema)).schema  # noqa: B018 - Spark analyses it now
    except PySparkException:
        raise InvalidInput("columns", frame.schema.simpleString(), _HASHED) from None
