"""Parses records into columns of a schema, and finds the reason for each that does not fit.

Spark parses in PERMISSIVE mode, which keeps records that it cannot parse in a separate column.
Spark is laxer than this module in two ways. It ignores fields that the schema does not name; here
such a record does not fit, as the output would lose them. It rounds whole numbers in floating-point
columns; here a record whose number would change does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from compactor_spark.columnar.blocks import ORDER, RAW, REASON, Kind, records_of
from compactor_spark.columnar.infer import csv_options, ddl
from compactor_spark.columnar.records import JSON
from compactor_spark.columnar.schema import beyond, conformed, near, textual

#: A record as a struct of the columns.
DATA = "__data"
#: The number of a record's kind.
KIND = "__kind"
#: Reason for a record that Spark could not parse; rejects.py replaces it by a more specific one.
MISFIT = "does not fit the schema"
_CORRUPT = "__corrupt"
# A float holds every whole number of up to 7 digits, a double of up to 15.
_MANY_DIGITS = "[0-9]{8}"
JSON_OPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _CORRUPT,
        # By default Spark would drop the time of day from values of a DATE column.
        "dateFormat": "yyyy-MM-dd",
    }
)


def parse(
    blocks: DataFrame,
    kinds: Iterable[Kind],
    schema: StructType,
    seen: StructType,
) -> DataFrame:
    """Return all records with ``ORDER``, ``RAW``, ``REASON``, the struct ``DATA``, and ``KIND``.

    Args:
        blocks: a frame of :data:`compactor_spark.columnar.records.BLOCK_SCHEMA`.
        kinds: the kinds of records in it.
        schema: columns of the output.
        seen: all fields of the JSON records, including those not in the schema.
    """
    frames = [
        (
            _json(records_of(blocks, kind), schema, seen)
            if kind.kind == JSON
            else _csv(records_of(blocks, kind), kind, schema)
        ).withColumn(KIND, F.lit(number))
        for number, kind in enumerate(kinds)
    ]
    columns = [*ORDER, RAW, REASON, DATA, KIND]
    return reduce(DataFrame.union, [frame.select(*columns) for frame in frames])


def _json(records: DataFrame, schema: StructType, seen: StructType) -> DataFrame:
    wide = _widened_by(schema, seen)
    asked = StructType([*wide.fields, StructField(_CORRUPT, StringType())])
    # Records known not to be JSON objects are not passed to the parser.
    text = F.when(F.col(REASON).isNull(), F.col(RAW).cast("string"))
    parsed = records.withColumn("parsed", F.from_json(text, asked, dict(JSON_OPTIONS)))
    value = F.col("parsed")
    reason = F.when(value.getField(_CORRUPT).isNotNull(), F.lit(MISFIT))
    for path, found in beyond(value, wide, schema):
        reason = reason.when(found, F.lit(f"field {path} is not in the schema"))
    parsed, reason = _without_rounding(
        parsed, reason, schema, lambda text, kind: F.from_json(text, kind, dict(JSON_OPTIONS))
    )
    return parsed.withColumn(REASON, F.coalesce(F.col(REASON), reason)).withColumn(
        DATA, conformed(value, asked, schema)
    )


def _widened_by(schema: StructType, seen: StructType) -> StructType:
    """Return the schema with the seen fields that it lacks added as strings, at any depth."""
    named = {field.name: field for field in schema.fields}
    fields = []
    for field in seen.fields:
        if field.name in named:
            known = named[field.name]
            kind = _widened(known.dataType, field.dataType)
            named[field.name] = StructField(field.name, kind, True)
        else:
            fields.append(StructField(field.name, StringType(), True))
    return StructType([*named.values(), *fields])


def _widened(kind: DataType, seen: DataType) -> DataType:
    if isinstance(kind, StructType) and isinstance(seen, StructType):
        return _widened_by(kind, seen)
    if isinstance(kind, ArrayType) and isinstance(seen, ArrayType):
        return ArrayType(_widened(kind.elementType, seen.elementType))
    if isinstance(kind, MapType) and isinstance(seen, StructType):
        # The object's members are the map's entries: any of them may have any of the fields.
        value = reduce(_widened, (f.dataType for f in seen.fields), kind.valueType)
        return MapType(kind.keyType, value)
    return kind


def _csv(records: DataFrame, kind: Kind, schema: StructType) -> DataFrame:
    named = {field.name: field.dataType for field in schema.fields}
    faults = _header_faults(kind.header, named)
    read = [
        StructField(name, StringType() if name in faults else named[name]) for name in kind.header
    ]
    asked = StructType([*read, StructField(_CORRUPT, StringType())])
    options = csv_options(kind.kind, _CORRUPT)
    text = F.when(F.col(REASON).isNull(), F.col(RAW).cast("string"))
    parsed = records.withColumn("parsed", F.from_csv(text, ddl(asked), options))
    value = F.col("parsed")
    reason = F.when(value.getField(_CORRUPT).isNotNull(), F.lit(MISFIT))
    if faults:
        reason = F.lit(min(faults.values()))
    else:
        parsed, reason = _without_rounding(
            parsed, reason, StructType(read), lambda one, kind: F.from_csv(one, ddl(kind), options)
        )
    return parsed.withColumn(REASON, F.coalesce(F.col(REASON), reason)).withColumn(
        DATA, conformed(value, _without(asked, faults), schema)
    )


def _without_rounding(
    parsed: DataFrame,
    reason: Column,
    schema: StructType,
    read: Callable[[Column, StructType], Column],
) -> tuple[DataFrame, Column]:
    """Add a reason: a whole number that its float or double column cannot hold exactly.

    Records with that many digits are few. They are parsed again, with such numbers as text.
    """
    written = textual(schema)
    if written == schema:
        return parsed, reason
    text = F.col(RAW).cast("string")
    long = F.col(REASON).isNull() & text.rlike(_MANY_DIGITS)
    parsed = parsed.withColumn("written", F.when(long, read(text, written)))
    for path, rounded in beyond(F.col("written"), written, schema):
        message = f"column {path} is a floating-point number, which does not hold its whole number"
        reason = reason.when(rounded, F.lit(message))
    return parsed, reason


def _header_faults(header: Sequence[str], named: Mapping[str, DataType]) -> dict[str, str]:
    """Return the columns of a header whose values cannot be used, each with the reason."""
    faults = {}
    for name in header:
        kind = named.get(name)
        if kind is None:
            faults[name] = f"column {near(name, named)} of its header is not in the schema"
        elif isinstance(kind, StructType | ArrayType | MapType):
            faults[name] = f"column {name} is {kind.simpleString()}, which no CSV field holds"
    return faults


def _without(schema: StructType, names: Iterable[str]) -> StructType:
    left_out = frozenset(names)
    return StructType([field for field in schema.fields if field.name not in left_out])
