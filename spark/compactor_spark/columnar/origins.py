"""Columns that name each output row's source and position, if a table's rows have a key.

Of two records of a key the later one wins. These two columns break ties in the ``order_by``
columns. They depend only on the source: a retry, another group or another version of this program
gives a record the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it
from pyspark.sql.types import LongType, StringType, StructField, StructType

from compactor.errors import InvalidInput
from compactor.sinks.upserts import POSITION, SOURCE_KEY
from compactor_spark.columnar.output import Rows

_FIELDS = (StructField(SOURCE_KEY, StringType()), StructField(POSITION, LongType()))
_KNOWN_AS = "__known_as"


def with_origins(session: SparkSession, rows: Rows, keys: Mapping[object, str]) -> Rows:
    """Return the same rows, each with its source's key and its position in the source, from 0.

    Args:
        session: of the rows.
        rows: the first column of ``order`` names the source, the last is the position.
        keys: of the sources, by the values of that first column.

    Raises:
        InvalidInput: the rows already have a column of one of these names.
    """
    own = {one.name for one in _FIELDS}
    taken = [name for name in rows.schema.names if name.lower() in own]
    if taken:
        accepted = "another name with upsert_key, for which outputs get such columns themselves"
        raise InvalidInput("column", taken[0], accepted)
    source, *_, place = rows.order
    kind = rows.frame.schema[source].dataType.simpleString()
    known = [(name, key) for name, key in keys.items()]
    named = session.createDataFrame(known, f"{_KNOWN_AS} {kind}, {SOURCE_KEY} STRING")
    same = F.col(source) == F.col(_KNOWN_AS)
    unknown = F.raise_error(F.lit("Spark read a source under a name that it was not given"))
    frame = rows.frame.join(F.broadcast(named), same, "left").drop(_KNOWN_AS)
    frame = frame.withColumn(SOURCE_KEY, F.coalesce(F.col(SOURCE_KEY), unknown.cast("string")))
    frame = frame.withColumn(POSITION, F.col(place).cast("bigint"))
    return replace(rows, frame=frame, schema=with_origin_columns(rows.schema))


def with_origin_columns(schema: StructType) -> StructType:
    """Return the columns of a schema, and after them those that name each row's origin."""
    return StructType([*schema.fields, *_FIELDS])


def as_spark_names(session: SparkSession, keys: Mapping[str, str]) -> dict[object, str]:
    """Return the same keys by file name, both as given and as encoded in a URI."""
    jvm: Any = session._jvm
    found: dict[object, str] = {}
    for name, key in keys.items():
        found[name] = key
        if "/" in name:
            found[str(jvm.org.apache.hadoop.fs.Path(name).toUri().toASCIIString())] = key
    return found
