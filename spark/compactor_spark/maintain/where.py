"""Converts a partition of an order to a filter for Iceberg, or a predicate for Delta."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Any

from py4j.java_gateway import JVMView  # type: ignore[import-untyped] # py4j has no annotations
from pyspark.sql.types import BinaryType, StringType, StructType

from compactor.errors import InvalidInput
from compactor.sinks.upserts import quoted
from compactor_tables.orders import Condition

_TRANSFORM = re.compile(r"(identity|year|month|day|hour|void|bucket|truncate)(?:\[(\d+)\])?")
_PERIOD = {
    "year": re.compile(r"(-?\d+)"),
    "month": re.compile(r"(-?\d+)-(\d\d)"),
    "hour": re.compile(r"(-?\d+-\d\d-\d\d)-(\d\d)"),
}
_ACCEPTED = "a partition value as Iceberg's transforms show it"
_EPOCH_YEAR, _MONTHS, _HOURS = 1970, 12, 24
_WHOLE, _FLOATING = {"INTEGER", "LONG"}, {"FLOAT", "DOUBLE"}
_NUMBERS = _WHOLE | {"DECIMAL"}
_BYTES = {"BINARY", "FIXED"}


def iceberg_filter(jvm: JVMView, schema: Any, where: Sequence[Condition]) -> Any:
    """Return an Iceberg expression that is true for exactly the rows of a partition.

    Args:
        jvm: of the session.
        schema: Iceberg's own.
        where: conditions on all partition columns.

    Raises:
        InvalidInput: Iceberg does not support a condition.
    """
    expressions: Any = jvm.org.apache.iceberg.expressions.Expressions
    found = expressions.alwaysTrue()
    join = getattr(expressions, "and")
    for one in where:
        kind, width = _transform(one)
        if kind == "void":
            continue
        term = _term(expressions, one.column, kind, width)
        if one.value is None:
            found = join(found, expressions.isNull(term))
            continue
        value = _value(jvm, schema, one, kind)
        is_nan = isinstance(value, float) and value != value  # noqa: PLR0124 - what makes it NaN
        found = join(found, expressions.isNaN(term) if is_nan else expressions.equal(term, value))
    return found


def unfit_for_older(schema: Any, where: Sequence[Condition]) -> str:
    """Return why a partition of an older spec is not rewritten; empty if its values are ranges.

    Args:
        schema: Iceberg's own.
        where: conditions on all partition columns.
    """
    for one in where:
        kind, _ = _transform(one)
        field = schema.findField(one.column)
        if field is None:
            return f"the table has no column {one.column}, by which older files are partitioned"
        is_number = field.type().typeId().toString() in _NUMBERS
        if kind in {"bucket", "void"} or (kind == "truncate" and not is_number):
            return f"older files are partitioned by {one.transform} of {one.column}, no range of it"
    return "" if where else "older files have no partitions"


def _transform(one: Condition) -> tuple[str, int]:
    found = _TRANSFORM.fullmatch(one.transform)
    if found is None or (found[1] in {"bucket", "truncate"}) != bool(found[2]):
        raise InvalidInput("transform", one.transform, "identity, bucket[16], day and the like")
    return found[1], int(found[2] or 0)


def _term(expressions: Any, column: str, kind: str, width: int) -> Any:
    if kind == "identity":
        return expressions.ref(column)
    make = getattr(expressions, kind)
    return make(column, width) if width else make(column)


def _value(jvm: JVMView, schema: Any, one: Condition, kind: str) -> Any:
    """Return a literal; Iceberg itself converts text to dates, times, decimals and UUIDs."""
    text = one.value or ""
    try:
        if kind == "bucket":
            return int(text)
        if kind in _PERIOD:
            return _period(jvm, kind, text)
        if kind == "day":
            return text
        return _of_type(jvm, schema.findType(one.column).typeId().toString(), text)
    except ValueError:
        raise InvalidInput(one.column, text, _ACCEPTED) from None


def _period(jvm: JVMView, kind: str, text: str) -> int:
    """Return a period as years, months or hours since 1970."""
    found = _PERIOD[kind].fullmatch(text)
    if found is None:
        raise ValueError
    if kind == "hour":
        java: Any = jvm.java.time.LocalDate
        return int(java.parse(found[1]).toEpochDay()) * _HOURS + int(found[2])
    years = int(found[1]) - _EPOCH_YEAR
    return years if kind == "year" else years * _MONTHS + int(found[2]) - 1


def _of_type(jvm: JVMView, kind: str, text: str) -> Any:
    if kind in _WHOLE:
        return int(text)
    if kind in _FLOATING:
        return float(text)
    if kind in _BYTES:
        java: Any = jvm.java.nio.ByteBuffer
        return java.wrap(base64.b64decode(text, validate=True))
    if kind == "BOOLEAN":
        if text not in {"true", "false"}:
            raise ValueError
        return text == "true"
    return text


def delta_predicate(schema: StructType, where: Sequence[Condition]) -> str:
    """Return a predicate over the partition columns of a Delta table; empty for a whole table.

    Raises:
        InvalidInput: Delta does not support a condition.
    """
    return " AND ".join(_delta(schema, one) for one in where)


def _delta(schema: StructType, one: Condition) -> str:
    name = quoted(one.column)
    if one.transform != "identity" or one.column not in schema.names:
        raise InvalidInput("transform", f"{one.transform} of {one.column}", "identity of a column")
    if one.value is None:
        return f"{name} IS NULL"
    kind = schema[one.column].dataType
    if isinstance(kind, BinaryType):
        raise InvalidInput("column", one.column, "a column of another type than binary")
    literal = text_literal(one.value)
    if isinstance(kind, StringType):
        return f"{name} = {literal}"
    return f"{name} = CAST({literal} AS {kind.simpleString()})"


def text_literal(value: str) -> str:
    """Return text as a string literal of Spark SQL."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
