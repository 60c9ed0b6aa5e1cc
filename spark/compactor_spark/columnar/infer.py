"""Infers the columns of records without a schema.

JSON has types. CSV has no types: a column becomes a number only if every value in it is written
exactly as that number would be, so that 007 remains text. Nothing becomes a date.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from compactor_spark.columnar.blocks import Kind, texts_of
from compactor_spark.columnar.records import JSON, TSV, delimiter_of
from compactor_spark.columnar.schema import SchemaClash, beyond, near, nullable, widened
from compactor_spark.columnar.session import quoted

_CORRUPT = "__corrupt"
# Any 18 digits fit a bigint, and any 15 a double.
_SHAPES: tuple[tuple[str, DataType], ...] = (
    (r"^(0|-?[1-9][0-9]{0,17})$", LongType()),
    (r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$", DoubleType()),
    (r"^(true|false)$", BooleanType()),
)


def csv_options(kind: str, corrupt: str) -> dict[str, str]:
    """Return Spark's options for one CSV or TSV record; TSV has no quotes, as in the core."""
    return {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": corrupt,
        "sep": delimiter_of(kind).decode(),
        "quote": "\0" if kind == TSV else '"',
        "escape": "\0" if kind == TSV else '"',
        "dateFormat": "yyyy-MM-dd",
        "maxCharsPerColumn": "-1",
        "maxColumns": "100000",
    }


def ddl(schema: StructType) -> str:
    """Return flat columns as the DDL string that ``from_csv`` takes."""
    return ", ".join(f"{quoted(f.name)} {f.dataType.simpleString()}" for f in schema.fields)


def json_fields(session: SparkSession, blocks: DataFrame, kinds: Sequence[Kind]) -> StructType:
    """Return every field of the JSON records, at any depth; empty if there are no such records."""
    if Kind(JSON) not in kinds:
        return StructType()
    return nullable(infer_json(session, texts_of(blocks, Kind(JSON))))


def with_columns_of(
    session: SparkSession,
    blocks: DataFrame,
    kinds: Sequence[Kind],
    seen: StructType,
    *,
    known: StructType,
) -> StructType:
    """Return the known columns, followed by other columns of the records.

    Args:
        session: Spark's.
        blocks: with the records.
        kinds: the kinds of records in them.
        seen: every field of the JSON records.
        known: empty if no columns are known. Otherwise a field without any value adds no column,
            as its type is unknown, nor does a name that differs from a known one only in case.
    """
    if not known.fields:
        return columns_of(blocks, kinds, seen)
    named = {name.lower() for name in known.names}
    names = {*seen.names, *(name for kind in kinds for name in kind.header)}
    if all(name.lower() in named for name in names):
        return known
    if seen.fields:
        texts = texts_of(blocks, Kind(JSON))
        seen = nullable(infer_json(session, texts, dropFieldIfAllNull="true"))
    found = columns_of(blocks, kinds, seen).fields
    return StructType([*known, *(field for field in found if field.name.lower() not in named)])


def columns_of(blocks: DataFrame, kinds: Sequence[Kind], seen: StructType) -> StructType:
    """Return columns for all records: the fields seen in JSON, and those of CSV and TSV headers.

    If no type holds the values of two kinds without loss, their column is text. Names that differ
    only in case get one column: records with the other names are rejects.
    """
    if Kind(JSON) in kinds:
        seen = apart(texts_of(blocks, Kind(JSON)), seen)
    fields = {field.name: field for field in seen.fields}
    for kind in kinds:
        if kind.kind == JSON:
            continue
        for other in infer_csv(texts_of(blocks, kind), kind.kind, kind.header).fields:
            known = fields.get(other.name)
            if near(other.name, fields) != other.name:
                continue
            found = other.dataType if known is None else _common(known.dataType, other)
            fields[other.name] = StructField(other.name, found, True)
    return StructType(list(fields.values()))


def _common(known: DataType, other: StructField) -> DataType:
    try:
        return widened(known, other.dataType, other.name)
    except SchemaClash:
        return StringType()


def infer_json(session: SparkSession, texts: DataFrame, **options: str) -> StructType:
    """Return every field of these JSON objects, at any depth, with the type that holds its values.

    Args:
        session: Spark's.
        texts: one column of strings.
        options: of Spark's reader.
    """
    # PySpark's own method takes an RDD, which would pass every record through Python.
    jvm: Any = session.sparkContext._jvm
    encoder = jvm.org.apache.spark.sql.Encoders.STRING()
    dataset = getattr(texts._jdf, "as")(encoder)
    usual = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    reader = session.read.options(**usual, **options)
    found = DataFrame(reader._jreader.json(dataset), session).schema
    return StructType([field for field in found.fields if field.name != _CORRUPT])


def apart(texts: DataFrame, seen: StructType) -> StructType:
    """Keep, of names that differ only in case, the one that most objects have; on a tie the first.

    Args:
        texts: one column of strings, ``value``: JSON objects.
        seen: every field of the objects, at any depth.
    """
    alone: StructType = _chosen(seen, "", None)
    if alone == seen:
        return seen
    row = F.from_json("value", seen, {"mode": "PERMISSIVE"}).alias("row")
    places = beyond(F.col("row"), seen, alone)
    counts = [F.count(F.when(found, 1)).alias(f"_{n}") for n, (_, found) in enumerate(places)]
    counted = texts.select(row).agg(*counts).collect()[0]
    usual = {path: number for (path, _), number in zip(places, counted, strict=True)}
    chosen: StructType = _chosen(seen, "", usual)
    return chosen


def _chosen(kind: Any, path: str, counted: Mapping[str, int] | None) -> Any:
    """Return a type in which no names differ only in case.

    Args:
        kind: the type of a value.
        path: of the value.
        counted: number of objects with a value at a path, to keep the most frequent name; None to
            leave all such names out.
    """
    if isinstance(kind, ArrayType):
        return ArrayType(_chosen(kind.elementType, path, counted))
    if not isinstance(kind, StructType):
        return kind
    alike: dict[str, list[StructField]] = {}
    for field in kind.fields:
        alike.setdefault(field.name.lower(), []).append(field)
    fields = []
    for several in alike.values():
        if len(several) > 1 and counted is None:
            continue
        one = max(several, key=lambda field: (counted or {}).get(f"{path}{field.name}", 0))
        below = _chosen(one.dataType, f"{path}{one.name}.", counted)
        fields.append(StructField(one.name, below, True))
    return StructType(fields)


def infer_csv(texts: DataFrame, kind: str, header: Sequence[str]) -> StructType:
    """Infer the columns of records under one header.

    Args:
        texts: one column of strings, ``value``.
        kind: ``csv`` or ``tsv``.
        header: names of the columns.
    """
    asked = StructType([StructField(name, StringType()) for name in (*header, _CORRUPT)])
    parsed = F.from_csv("value", ddl(asked), csv_options(kind, _CORRUPT)).alias("row")
    rows = texts.select(parsed).select("row.*").where(F.col(_CORRUPT).isNull())
    shapes = [_shape(F.col(quoted(name))).alias(f"_{n}") for n, name in enumerate(header)]
    found = rows.agg(*shapes).collect()[0]
    return StructType(
        [
            StructField(name, StringType() if number is None else _SHAPES[number][1])
            for name, number in zip(header, found, strict=True)
        ]
    )


def _shape(value: Column) -> Column:
    """Return the number of the first shape that all values match; null if none, or no values."""
    every = [F.bool_and(value.rlike(pattern)) for pattern, _ in _SHAPES]
    chosen = F.when(every[0], F.lit(0))
    for number, fits in enumerate(every[1:], start=1):
        chosen = chosen.when(fits, F.lit(number))
    return chosen
