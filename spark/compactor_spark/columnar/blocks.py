"""Blocks of records as a frame, and what each source contributed to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it

from compactor import errors
from compactor.errors import IntegrityError, SourceChanged, TransientStoreError, UnreadableSource
from compactor.model import Quarantined, QuarantineReason, SourceObject
from compactor.sizes import MIB
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.pin import given_schema
from compactor_spark.columnar.records import BLOCK_SCHEMA, JSON, RecordReader

#: What sorts records as their sources have them; the last is the place in the whole source, from 0.
ORDER = ("__source", "__block", "__place")
_IN_BLOCK = "__in_block"
#: A record's bytes.
RAW = "__raw"
#: Why a record is no row; null for one that is.
REASON = "__reason"
# A task reads up to 128 sources at a time (MAX_THREADS of tasks.py, in runs of eight neighbours):
# with few of them it waits for one answer after the other, and a task costs as much as tens.
_MOST_SLICES = 256
_FEWEST_SOURCES = 64
_SLICES_TO_A_CORE = 2
# What a task that is tried again reads again, at most.
_MOST_SOURCES = 4_096
_SLICE_BYTES = 16 * MIB
_COLUMNS = ("source", "block", "kind", "header", "error", "reason", "detail")
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
    """The records of these sources, as :data:`.records.BLOCK_SCHEMA` has them."""
    numbered = list(enumerate(sources))
    slices = slices_for(sources, session.sparkContext.defaultParallelism)
    text = context.settings.parquet_schema
    columns = None if text is None else tuple(given_schema(session, text).names)
    reader = RecordReader(context.settings, context.open_store, context.requests, columns)
    found = session.sparkContext.parallelize(numbered, slices).mapPartitions(reader)
    return session.createDataFrame(found, BLOCK_SCHEMA, verifySchema=False)


def slices_for(sources: Sequence[SourceObject], cores: int) -> int:
    """How many tasks read these sources.

    As many as keep all cores busy, where each still has enough sources to read many at a time; more
    where a task would have too many bytes, or sources.
    """
    count = len(sources)
    busy = min(_SLICES_TO_A_CORE * cores, -(-count // _FEWEST_SOURCES))
    by_bytes = -(-sum(source.size for source in sources) // _SLICE_BYTES)
    wanted = max(busy, by_bytes, -(-count // _MOST_SOURCES))
    return max(1, min(_MOST_SLICES, count, wanted))


def accounts_of(blocks: DataFrame, sources: Sequence[SourceObject]) -> Accounts:
    """Count what each source has; reads every source.

    Raises:
        TransientStoreError: the store did not answer.
    """
    # Neither grouped nor sorted there: a shuffle takes Spark longer than its driver this loop.
    counted = F.coalesce(F.size("records"), F.lit(0)).alias("counted")
    rows = blocks.select(*_COLUMNS, counted).collect()
    accounts = Accounts()
    for row in sorted(rows, key=lambda row: (row.source, row.block)):
        _add(accounts, row, sources[row.source])
    _forget_unread(accounts)
    accounts.kinds = list(dict.fromkeys(accounts.kinds))
    return accounts


def _add(accounts: Accounts, row: Row, source: SourceObject) -> None:
    """Take one block into account."""
    if row.error == UnreadableSource.__name__:
        reason = QuarantineReason(row.reason)
        accounts.quarantined[row.source] = Quarantined(source, reason, row.detail)
    elif row.error == SourceChanged.__name__:
        accounts.changed[row.source] = SourceChanged(source.key, source.etag, row.reason)
    elif row.error:
        raised = getattr(errors, row.error, None)
        raise (raised if raised in _PASSED_ON else TransientStoreError)(row.detail)
    else:
        known = accounts.records.get(row.source, 0)
        accounts.records[row.source] = known + int(row.counted)
        if row.kind:
            kind = Kind(row.kind, tuple(row.header or ()))
            accounts.kinds.append(kind)


def _forget_unread(accounts: Accounts) -> None:
    """Take out what came of sources before their damage."""
    gone = {*accounts.quarantined, *accounts.changed}
    for number in gone:
        accounts.records.pop(number, None)


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
    places = F.posexplode("records").alias(_IN_BLOCK, RAW)
    exploded = chosen.select(
        F.col("source").alias(ORDER[0]), F.col("block").alias(ORDER[1]), "first", "faults", places
    )
    return exploded.select(
        *ORDER[:2],
        (F.col("first") + F.col(_IN_BLOCK)).alias(ORDER[2]),
        RAW,
        F.try_element_at("faults", F.col(_IN_BLOCK)).alias(REASON),
    )


def texts_of(blocks: DataFrame, kind: Kind) -> DataFrame:
    """The faultless records of one kind as strings, in one column ``value``."""
    records = records_of(blocks, kind).where(F.col(REASON).isNull())
    return records.select(F.col(RAW).cast("string").alias("value"))
