"""Row counts, and two order-independent hashes over rows."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from compactor.errors import InvalidInput
from compactor_spark.maintain.row_hash import MODULUS, hash_sums
from compactor_tables.table_engine import RowSums

_HASHED = "columns of which Spark makes a hash; or verify_bytes 0, and nothing compares the rows"


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
