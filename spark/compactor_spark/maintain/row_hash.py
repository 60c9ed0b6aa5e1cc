"""Two order-independent hashes over rows.

Each row is hashed with ``xxhash64``, and the hashes are added up modulo 2**64. Spark's hash skips
nulls and does not accept maps, so every value is first converted to a form in which a null, an
empty array and a missing value differ, and a map is the sorted array of its entries.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

MODULUS = 1 << 64
# Hashed before each row for the second hash.
_SALT = "s3-compactor"


def hash_sums(schema: StructType) -> tuple[Column, Column, Column]:
    """Return the aggregates ``rows``, ``first`` and ``second``, the latter independent hashes."""
    values = _values(schema)
    return (
        F.count(F.lit(1)).alias("rows"),
        (_added(*values) if values else F.lit(0)).alias("first"),
        _added(F.lit(_SALT), *values).alias("second"),
    )


def _values(schema: StructType) -> list[Column]:
    return [_marked(F.col(_quoted(field.name)), field.dataType) for field in schema.fields]


def _quoted(name: str) -> str:
    """Return a column's name quoted as an expression, so that dots in it are part of the name."""
    return "`" + name.replace("`", "``") + "`"


def _added(*values: Column) -> Column:
    # Summed as decimals, as a sum of bigints would overflow; 38 digits suffice for 10**18 rows.
    return F.sum(F.xxhash64(*values).cast("decimal(38,0)"))


def _marked(value: Column, kind: DataType) -> Column:
    """Return a struct of a value and whether it is null."""
    return F.struct(value.isNull().alias("none"), _plain(value, kind).alias("value"))


def _plain(value: Column, kind: DataType) -> Column:
    if isinstance(kind, StructType):
        fields = [
            _marked(value.getField(field.name), field.dataType).alias(f"_{n}")
            for n, field in enumerate(kind.fields)
        ]
        return F.struct(*fields) if fields else F.lit(0)
    if isinstance(kind, ArrayType):
        element = kind.elementType
        return F.struct(
            F.size(value).alias("size"),
            F.transform(value, lambda one: _marked(one, element)).alias("elements"),
        )
    if isinstance(kind, MapType):
        return _sorted_entries(value, kind)
    if kind.typeName() == "variant":
        return F.to_json(value)
    return value


def _sorted_entries(value: Column, kind: MapType) -> Column:
    entries = F.transform(
        F.map_entries(value),
        lambda entry: F.struct(
            _marked(entry.getField("key"), kind.keyType).alias("key"),
            _marked(entry.getField("value"), kind.valueType).alias("value"),
        ),
    )
    return F.struct(F.size(value).alias("size"), F.array_sort(entries).alias("entries"))
