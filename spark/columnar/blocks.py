"""Blocks of records as a frame, and what each source contributed to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it

from compactor import errors
from compactor.errors import IntegrityError, SourceChanged, TransientStoreError, UnreadableSource
from compactor.model import Quarantined, QuarantineReason, SourceObject
from spark.columnar.context import ColumnarContext
from spark.columnar.records import BLOCK_SCHEMA, JSON, RecordReader

#: What sorts records as their sources have them.
ORDER = ("__source", "__block", "__place")
#: A record's bytes.
RAW = "__raw"
#: Why a record is no row; null for one that is.
REASON = "__reason"
# Sources to a task: the cost of a task is a few of them.
_MOST_SLICES = 256
_FEWEST_SOURCES = 8
_PASSED_ON = (TransientStoreError, IntegrityError)


@dataclass(frozen=True, slots=True)
class Kind:
    """Records of one shape: JSON objects, or CSV and TSV records under one header."""

    kind: str
    header: tuple[str, ...] = ()


@dataclass(slots=True)
class Accounts:
    """What became of each source, by its number.

    Attributes:
        records: how many records it has.
        quarantined: why it was left alone.
        changed: the sources that are not what was listed.
        kinds: what kinds of records there are.
    """

    records: dict[int, int] = field(default_factory=dict)
    quarantined: dict[int, Quarantined] = field(default_factory=dict)
    changed: dict[int, SourceChanged] = field(default_factory=dict)
    kinds: list[Kind] = field(default_factory=list)


def read_blocks(
    session: SparkSession, sources: Sequence[SourceObject], context: ColumnarContext
) -> DataFrame:
    """The records of these sources, as :data:`spark.columnar.records.BLOCK_SCHEMA` has them."""
    numbered = list(enumerate(sources))
    slices = min(_MOST_SLICES, -(-len(numbered) // _FEWEST_SOURCES))
    reader = RecordReader(context.settings, context.open_store, context.requests)
    found = session.sparkContext.parallelize(numbered, slices).mapPartitions(reader)
    return session.createDataFrame(found, BLOCK_SCHEMA, verifySchema=False)


def accounts_of(blocks: DataFrame, sources: Sequence[SourceObject]) -> Accounts:
    """Count what each source has; reads every source.

    Raises:
        TransientStoreError: the store did not answer.
    """
    counted = F.coalesce(F.size("records"), F.lit(0))
    columns = ("source", "kind", "header", "error", "reason", "detail")
    found = blocks.groupBy(*columns).agg(F.sum(counted).alias("counted")).orderBy(*columns)
    accounts = Accounts()
    for row in found.collect():
        source = sources[row.source]
        if row.error == UnreadableSource.__name__:
            reason = QuarantineReason(row.reason)
            accounts.quarantined[row.source] = Quarantined(source, reason, row.detail)
        elif row.error == SourceChanged.__name__:
            accounts.changed[row.source] = SourceChanged(source.key, source.etag, row.reason)
        elif row.error:
            kind = getattr(errors, row.error, None)
            raise (kind if kind in _PASSED_ON else TransientStoreError)(row.detail)
        else:
            accounts.records[row.source] = int(row.counted)
            if row.kind:
                accounts.kinds.append(Kind(row.kind, tuple(row.header or ())))
    for number in (*accounts.quarantined, *accounts.changed):
        # Some of its blocks came before the damage.
        accounts.records.pop(number, None)
    accounts.kinds = list(dict.fromkeys(accounts.kinds))
    return accounts


def readable(blocks: DataFrame, accounts: Accounts) -> DataFrame:
    """The blocks of the sources that were read to their ends."""
    left_out = sorted({*accounts.quarantined, *accounts.changed})
    return blocks.where(~F.col("source").isin(left_out)) if left_out else blocks


def records_of(blocks: DataFrame, kind: Kind) -> DataFrame:
    """The records of one kind, one a row: ``ORDER``, ``RAW`` (binary) and known faults."""
    chosen = blocks.where(F.col("kind") == kind.kind)
    if kind.kind != JSON:
        header = F.array(*[F.lit(name) for name in kind.header])
        chosen = chosen.where(F.col("header") == header)
    places = F.posexplode("records").alias(ORDER[2], RAW)
    exploded = chosen.select(
        F.col("source").alias(ORDER[0]), F.col("block").alias(ORDER[1]), "faults", places
    )
    return exploded.withColumn(REASON, F.try_element_at("faults", F.col(ORDER[2]))).drop("faults")


def texts_of(blocks: DataFrame, kind: Kind) -> DataFrame:
    """The faultless records of one kind as strings, in one column ``value``."""
    records = records_of(blocks, kind).where(F.col(REASON).isNull())
    return records.select(F.col(RAW).cast("string").alias("value"))
