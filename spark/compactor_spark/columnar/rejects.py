"""Stores records that cannot become rows, whole and with a reason, where no query engine reads."""

from __future__ import annotations

import csv
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    StructType,
)

from compactor import layout
from compactor.errors import InvalidInput
from compactor.log.columnar import Rejects
from compactor.model import ObjectGroup, SourceObject
from compactor_spark.columnar.blocks import ORDER, RAW, REASON, Kind
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.parse import KIND, MISFIT
from compactor_spark.columnar.records import JSON, delimiter_of

# Rejects are held on the driver and stored by one PUT. More than this means a wrong schema rather
# than a few odd records.
MAX_BYTES = 64 * 1024 * 1024
_SHOWN_CHARACTERS = 40
_TAKEN: Mapping[type[DataType], tuple[type, ...]] = MappingProxyType(
    {
        StringType: (str, int, float, bool, list, dict),
        BooleanType: (bool,),
        DoubleType: (int, float),
        FloatType: (int, float),
        ArrayType: (list,),
        StructType: (dict,),
    }
)


@dataclass(frozen=True, slots=True)
class Records:
    """The records of one group.

    Attributes:
        blocks: contain the records.
        kinds: the kinds of records.
        counted: the number of records.
        sources: the sources that the blocks refer to by number.
        most_rejected: maximum bytes of rejects to store.
    """

    blocks: DataFrame
    kinds: Sequence[Kind]
    counted: int
    sources: Sequence[SourceObject]
    most_rejected: int = MAX_BYTES


def store_rejects(
    parsed: DataFrame,
    records: Records,
    schema: StructType,
    group: ObjectGroup,
    context: ColumnarContext,
) -> Rejects | None:
    """Store the records that have a reason, one JSON object a line; return None if there are none.

    Each line has all that is needed to replay the record: ``source`` (URI), ``position`` in the
    source, ``record``, ``kind`` and ``header``; and ``reason``. Bytes that are not UTF-8 appear in
    ``record`` as the lone surrogates U+DC80 to U+DCFF, as by Python's surrogateescape.

    Raises:
        InvalidInput: there are so many rejects that the schema must be wrong.
    """
    chosen = parsed.where(f"{REASON} is not null").select(*ORDER, RAW, REASON, KIND)
    lines: list[bytes] = []
    size = 0
    for row in chosen.orderBy(*ORDER).toLocalIterator():
        line = _line(row, records, schema)
        lines.append(line)
        size += len(line)
        if size > records.most_rejected:
            raise _too_many(f"{len(lines):,} records and more", lines[0], context)
    if not lines:
        return None
    body = b"".join(lines)
    # Named by content: two runs that reject the same records write the same object.
    digest = hashlib.blake2b(body, digest_size=8).hexdigest()
    name = f"{group.id}-{digest}.json"
    bucket, key = layout.rejects_key(context.settings, context.partition, name)
    context.store.put(bucket, key, body, content_type="application/x-ndjson")
    return Rejects(bucket, key, len(body), zlib.crc32(body), len(lines))


def refuse_all(rejects: Rejects, context: ColumnarContext) -> InvalidInput:
    """Return the error for a schema that no record of a group fits."""
    line = context.store.get(rejects.bucket, rejects.key).partition(b"\n")[0]
    return _too_many(f"all {rejects.records:,} records", line, context)


def _too_many(how_many: str, line: bytes, context: ColumnarContext) -> InvalidInput:
    first = json.loads(line)
    accepted = (
        f"a schema for the records of {first['source']}: {how_many} of one group are rejected,"
        f" the first because {first['reason']}"
    )
    return InvalidInput("parquet_schema", context.settings.parquet_schema, accepted)


def _line(row: Row, records: Records, schema: StructType) -> bytes:
    source, kind = records.sources[row[ORDER[0]]], records.kinds[row[KIND]]
    record = bytes(row[RAW]).decode("utf-8", "surrogateescape")
    reason = row[REASON]
    if reason == MISFIT:
        reason = _why(record, kind, schema)
    document = {
        "source": f"s3://{source.bucket}/{source.key}",
        "position": row[ORDER[2]],
        "record": record,
        "kind": kind.kind,
        "header": kind.header,
        "reason": reason,
    }
    return json.dumps(document).encode() + b"\n"


def _why(record: str, kind: Kind, schema: StructType) -> str:
    """Return a reason that names the first column whose value does not fit, if it can be found."""
    if kind.kind != JSON:
        return _why_not_csv(record, kind)
    values = json.loads(record)
    for field in schema.fields:
        value = values.get(field.name)
        if value is not None and not _takes(field.dataType, value):
            shown = json.dumps(value)[:_SHOWN_CHARACTERS]
            return (
                f"column {field.name} is {field.dataType.simpleString()}, and does not take {shown}"
            )
    return MISFIT


def _takes(kind: DataType, value: Any) -> bool:
    if isinstance(kind, IntegralType):
        bits = {"tinyint": 8, "smallint": 16, "int": 32}.get(kind.simpleString(), 64)
        limit = 1 << (bits - 1)
        return type(value) is int and -limit <= value < limit
    taken = _TAKEN.get(type(kind))
    return taken is None or (
        isinstance(value, taken) and (type(value) is not bool or bool in taken)
    )


def _why_not_csv(record: str, kind: Kind) -> str:
    expected = len(kind.header)
    found = len(next(csv.reader([record], delimiter=delimiter_of(kind.kind).decode()), ()))
    return f"fields: {found}, names in its header: {expected}" if found != expected else MISFIT
