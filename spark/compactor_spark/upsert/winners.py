"""Finds the winner of each key in outputs, and its effect on the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it
from pyspark.sql.types import StructType

from compactor.errors import IntegrityError, InvalidInput
from compactor.sinks.upserts import (
    DELETED,
    ENTRY,
    OWN,
    POSITION,
    SOURCE_KEY,
    UpsertCounts,
    UpsertKey,
    quoted,
)
from compactor_spark.upsert.schema import (
    SUPERSET_ACCEPTED,
    SchemaClash,
    conformed,
    merged,
    nullable,
)

# The number of a record's output, in log order. It breaks ties between records with the same source
# and position, as when an object was rewritten: the one that was compacted later wins.
_ARRIVED = f"{OWN}arrived"
_OF_KEY = f"{OWN}records"
_OUTCOME = f"{OWN}outcome"
_ROW, _NAME = f"{OWN}row", f"{OWN}name"
_STALE, _DELETE, _UPDATE, _INSERT = "stale", "deleted", "updated", "inserted"
_KNOWN = f"{OWN}known_"


@dataclass(frozen=True, slots=True)
class Outputs:
    """Outputs to be read, in log order.

    Attributes:
        uris: of the outputs for Spark; their file names differ.
        alike: schemas, each with the URIs that can be read with it.
        rows: total rows; None if not counted.
    """

    uris: Sequence[str]
    alike: Sequence[tuple[StructType, Sequence[str]]]
    rows: int | None

    @property
    def schema(self) -> StructType:
        """The columns of all outputs.

        Raises:
            InvalidInput: one column has several types that no type holds without loss.
        """
        try:
            return reduce(merged, [schema for schema, _ in self.alike], StructType())
        except SchemaClash as clash:
            found = f"{clash.one} and {clash.two}"
            raise InvalidInput(f"column {clash.column}", found, SUPERSET_ACCEPTED) from clash


def find_outputs(session: SparkSession, uris: Sequence[str], rows: int | None) -> Outputs:
    """Return outputs with the schemas in their footers."""
    try:
        # One job reads all footers.
        together = session.read.option("mergeSchema", "true").parquet(*uris).schema
    except PySparkException:
        # A column has several types that Spark does not merge.
        schemas = [nullable(session.read.parquet(uri).schema) for uri in uris]
        return Outputs(uris, [(one, [uri]) for one, uri in zip(schemas, uris, strict=True)], rows)
    return Outputs(uris, [(nullable(together), uris)], rows)


def read_records(session: SparkSession, outputs: Outputs, wanted: StructType) -> DataFrame:
    """Return the records of all outputs with these columns and the number of their output."""
    frames = [
        _conformed(session.read.schema(schema).parquet(*uris), schema, wanted)
        for schema, uris in outputs.alike
    ]
    named = session.createDataFrame(_arrivals(session, outputs), f"{_NAME} STRING, {_ARRIVED} INT")
    records = reduce(DataFrame.union, frames).join(F.broadcast(named), _NAME, "left").drop(_NAME)
    unknown = F.raise_error(F.lit("Spark read an output under a name that it was not given"))
    return records.withColumn(_ARRIVED, F.coalesce(F.col(_ARRIVED), unknown.cast("int")))


def _arrivals(session: SparkSession, outputs: Outputs) -> list[tuple[str, int]]:
    """Return the numbers of outputs in log order, by file name as given and as in a URI."""
    jvm: Any = session._jvm
    found: dict[str, int] = {}
    for number, uri in enumerate(outputs.uris):
        encoded = str(jvm.org.apache.hadoop.fs.Path(uri).toUri().getRawPath())
        for name in (uri.rsplit("/", 1)[-1], encoded.rsplit("/", 1)[-1]):
            if found.setdefault(name, number) != number:
                raise IntegrityError(f"two outputs are called {name}")
    return list(found.items())


def _conformed(frame: DataFrame, found: StructType, wanted: StructType) -> DataFrame:
    kinds = {one.name: one.dataType for one in found.fields}
    columns = [
        (
            conformed(F.col(quoted(one.name)), kinds[one.name], one.dataType)
            if one.name in kinds
            else F.lit(None).cast(one.dataType)
        ).alias(one.name)
        for one in wanted.fields
    ]
    return frame.select(*columns, F.col("_metadata.file_name").alias(_NAME))


def winners(records: DataFrame, key: UpsertKey, number: int) -> DataFrame:
    """Return one row for each key: the record with the highest rank, and its rank columns."""
    whole = F.struct(*[F.col(quoted(name)) for name in records.columns])
    by = (*key.order_by, SOURCE_KEY, POSITION, _ARRIVED)
    rank = F.struct(*[F.col(quoted(name)) for name in by])
    best = records.groupBy(*[F.col(quoted(name)) for name in key.columns]).agg(
        F.max_by(whole, rank).alias(_ROW), F.count(F.lit(1)).alias(_OF_KEY)
    )
    ordered = [
        F.col(f"{_ROW}.{quoted(name)}").alias(alias)
        for name, alias in zip(key.order_by, key.order, strict=True)
    ]
    found = best.select(f"{_ROW}.*", *ordered, _OF_KEY, F.lit(number).cast("bigint").alias(ENTRY))
    return found.drop(_ARRIVED).withColumn(DELETED, _deletes(found, key))


def _deletes(rows: DataFrame, key: UpsertKey) -> Column:
    found = F.lit(False)
    for name, values in key.delete_when.items():
        if name in rows.columns:
            text = F.col(quoted(name)).cast("string")
            found = found | F.coalesce(text.isin(*values), F.lit(False))
    return found


def decide(found: DataFrame, known: DataFrame, key: UpsertKey) -> DataFrame:
    """Return the same rows, each with its effect on the table.

    Args:
        found: the winners.
        known: the table of keys.
        key: of the table.
    """
    names = (*key.columns, *key.rank, DELETED)
    other = known.select(*[F.col(quoted(name)).alias(f"{_KNOWN}{name}") for name in names])
    same = [
        F.col(quoted(name)).eqNullSafe(F.col(quoted(f"{_KNOWN}{name}"))) for name in key.columns
    ]
    joined = found.join(other, reduce(Column.__and__, same), "left")
    new = F.col(f"{_KNOWN}{SOURCE_KEY}").isNull()
    # Structs compare by the first field that differs; null is the smallest.
    mine = F.struct(*[F.col(name) for name in key.rank])
    its = F.struct(*[F.col(f"{_KNOWN}{name}").alias(name) for name in key.rank])
    outcome = (
        F.when(~new & (mine < its), F.lit(_STALE))
        .when(F.col(DELETED), F.lit(_DELETE))
        .when(new | F.col(f"{_KNOWN}{DELETED}"), F.lit(_INSERT))
        .otherwise(F.lit(_UPDATE))
    )
    kept = [F.col(quoted(name)) for name in found.columns]
    return joined.select(*kept, outcome.alias(_OUTCOME))


def changes(decided: DataFrame) -> DataFrame:
    """Return the rows to merge: all but stale ones."""
    return decided.where(F.col(_OUTCOME) != _STALE)


def count(decided: DataFrame) -> UpsertCounts:
    """Count the records by what becomes of them."""
    grouped = decided.groupBy(_OUTCOME).agg(
        F.count(F.lit(1)).alias("keys"), F.sum(_OF_KEY).alias("records")
    )
    counts = UpsertCounts()
    for row in grouped.collect():
        setattr(counts, row[_OUTCOME], int(row["keys"]))
        counts.records += int(row["records"])
        counts.superseded += int(row["records"] - row["keys"])
    return counts
