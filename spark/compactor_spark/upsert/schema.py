"""Safe supersets of different schemas of Spark, and the conversion of values to them.

Which superset is safe is decided by :mod:`compactor.rows.schema`, as for the outputs themselves.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from compactor.rows import schema as rows
from compactor.rows.schema import SUPERSET_ACCEPTED, SchemaClash

__all__ = ["SUPERSET_ACCEPTED", "SchemaClash", "conformed", "merged", "nullable", "widened"]


def merged(one: StructType, two: StructType) -> StructType:
    """Return the safe superset of two schemas, in the order of the first, all columns nullable.

    Raises:
        SchemaClash: there is no safe superset.
    """
    found = rows.merged(*(rows.from_spark_json(each.json()) for each in (one, two)))
    return StructType.fromJson(dict(rows.spark_document(found)))


def widened(one: DataType, two: DataType, column: str) -> DataType:
    """Return the type that holds the values of both types without loss.

    Raises:
        SchemaClash: there is no such type.
    """
    if one == two:
        return one
    try:
        both = merged(*(StructType([StructField(column, kind)]) for kind in (one, two)))
    except ValueError:
        # A type of Spark's that no output has.
        raise SchemaClash(column, one.simpleString(), two.simpleString()) from None
    return both.fields[0].dataType


def nullable(schema: StructType) -> StructType:
    """Return the same columns, nullable at every depth."""
    return StructType(
        [StructField(f.name, _nullable(f.dataType), True, f.metadata) for f in schema.fields]
    )


def _nullable(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return nullable(kind)
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_nullable(kind.keyType), _nullable(kind.valueType))
    return kind


def conformed(value: Column, found: DataType, wanted: DataType) -> Column:
    """Convert a value to the superset of its type; fields that ``wanted`` lacks are left out."""
    if found == wanted:
        return value
    if isinstance(found, StructType) and isinstance(wanted, StructType):
        fields = {field.name: field.dataType for field in found.fields}
        chosen = [
            (
                conformed(value.getField(field.name), fields[field.name], field.dataType)
                if field.name in fields
                else F.lit(None).cast(field.dataType)
            ).alias(field.name)
            for field in wanted.fields
        ]
        return F.when(value.isNotNull(), F.struct(*chosen))
    if isinstance(found, ArrayType) and isinstance(wanted, ArrayType):
        one, other = found.elementType, wanted.elementType
        return F.transform(value, lambda element: conformed(element, one, other))
    if isinstance(found, MapType) and isinstance(wanted, MapType):
        return _conformed_map(value, found, wanted)
    return value.cast(wanted)


def _conformed_map(value: Column, found: MapType, wanted: MapType) -> Column:
    keyed = F.transform_keys(value, lambda key, _: conformed(key, found.keyType, wanted.keyType))
    return F.transform_values(
        keyed, lambda _, one: conformed(one, found.valueType, wanted.valueType)
    )
