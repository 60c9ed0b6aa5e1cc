"""Where each row of an output comes from, as columns of it, where a table's rows have a key.

Of two records of a key the later one counts; what the columns of ``order_by`` leave open, these two
decide. They depend on nothing but the source: another try, another group and another version of
this program give a record the same.
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
    """The same rows, each with its source's key and its place in there, from 0.

    Args:
        session: what the rows are of.
        rows: their first column of ``order`` names the source, the last is the place.
        keys: of the sources, by what that first column has.

    Raises:
        InvalidInput: the rows have a column of such a name already.
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
    """The columns of outputs whose rows say where they come from."""
    return StructType([*schema.fields, *_FIELDS])


def as_spark_names(session: SparkSession, keys: Mapping[str, str]) -> dict[object, str]:
    """The same keys by the names of files both as they are, and as in a URI."""
    jvm: Any = session._jvm
    found: dict[object, str] = {}
    for name, key in keys.items():
        found[name] = key
        if "/" in name:
            found[str(jvm.org.apache.hadoop.fs.Path(name).toUri().toASCIIString())] = key
    return found
