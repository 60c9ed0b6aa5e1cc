"""Safe supersets of different schemas, and the conversion of values to them.

A safe superset loses nothing: columns are added (null where a source lacks them), integers are
widened, ``float`` becomes ``double``, decimals get more digits. Anything else, such as a date that
would become a timestamp in some time zone, is rejected.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StructField,
    StructType,
)

#: Accepted types of columns with the same name, for error messages.
SUPERSET_ACCEPTED = (
    "one type, or types of which one holds the other without loss (tinyint, smallint, int,"
    " bigint; float, double; decimals of up to 38 digits)"
)
_ORDERS: tuple[tuple[type[DataType], ...], ...] = (
    (ByteType, ShortType, IntegerType, LongType),
    (FloatType, DoubleType),
)
_MOST_DIGITS = 38


class SchemaClash(Exception):
    """Two types of one column that no type holds without loss.

    Attributes:
        column: its path, with dots before fields of structs.
        one, two: the types, as Spark writes them.
    """

    def __init__(self, column: str, one: str, two: str) -> None:
        super().__init__(f"column {column}: {one} and {two}")
        self.column = column
        self.one = one
        self.two = two


def merged(one: StructType, two: StructType, path: str = "") -> StructType:
    """Return the safe superset of two schemas, in the order of the first, all columns nullable.

    Raises:
        SchemaClash: there is no safe superset.
    """
    fields = {field.name: field for field in one.fields}
    by_lower = {name.lower(): field for name, field in fields.items()}
    if len(by_lower) != len(fields):
        raise _clash_within(one, path)
    for field in two.fields:
        column = f"{path}{field.name}"
        known = fields.get(field.name)
        if known is not None:
            kind = widened(known.dataType, field.dataType, column)
            fields[field.name] = StructField(field.name, kind, True, known.metadata)
            continue
        near = by_lower.get(field.name.lower())
        if near is not None:
            raise SchemaClash(
                column,
                f"{near.dataType.simpleString()} named {near.name}",
                f"{field.dataType.simpleString()} named {field.name}",
            )
        by_lower[field.name.lower()] = fields[field.name] = field
    return nullable(StructType(list(fields.values())))


def _clash_within(schema: StructType, path: str) -> SchemaClash:
    seen: dict[str, StructField] = {}
    for field in schema.fields:
        near = seen.setdefault(field.name.lower(), field)
        if near is not field:
            kinds = (f"{f.dataType.simpleString()} named {f.name}" for f in (near, field))
            return SchemaClash(f"{path}{field.name}", *kinds)
    raise AssertionError(f"the names of {schema.simpleString()} differ")


def widened(one: DataType, two: DataType, column: str) -> DataType:
    """Return the type that holds the values of both types without loss.

    Raises:
        SchemaClash: there is no such type.
    """
    if one == two:
        return one
    if isinstance(one, StructType) and isinstance(two, StructType):
        return merged(one, two, f"{column}.")
    if isinstance(one, ArrayType) and isinstance(two, ArrayType):
        return ArrayType(widened(one.elementType, two.elementType, f"{column}.element"))
    if isinstance(one, MapType) and isinstance(two, MapType):
        key = widened(one.keyType, two.keyType, f"{column}.key")
        return MapType(key, widened(one.valueType, two.valueType, f"{column}.value"))
    if isinstance(one, NullType) or isinstance(two, NullType):
        # A column of only nulls, as written by writers without a schema.
        return two if isinstance(one, NullType) else one
    wider = _wider_number(one, two)
    if wider is None:
        raise SchemaClash(column, one.simpleString(), two.simpleString())
    return wider


def _wider_number(one: DataType, two: DataType) -> DataType | None:
    for order in _ORDERS:
        if type(one) in order and type(two) in order:
            return max(one, two, key=lambda kind: order.index(type(kind)))
    if isinstance(one, DecimalType) and isinstance(two, DecimalType):
        scale = max(one.scale, two.scale)
        digits = max(one.precision - one.scale, two.precision - two.scale) + scale
        return DecimalType(digits, scale) if digits <= _MOST_DIGITS else None
    return None


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
