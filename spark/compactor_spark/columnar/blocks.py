"""Blocks of records as a frame, and the result for each source."""

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

#: Columns that sort records in source order; the last is the position in the source, from 0.
ORDER = ("__source", "__block", "__place")
_IN_BLOCK = "__in_block"
#: The bytes of a record.
RAW = "__raw"
#: Why a record is rejected; null if it is not.
REASON = "__reason"
# A task reads up to 128 sources concurrently (MAX_THREADS of tasks.py, in runs of eight
# neighbours). With few sources it mostly waits, and starting a task costs as much as reading tens.
_MOST_SLICES = 256
_FEWEST_SOURCES = 64
_SLICES_TO_A_CORE = 2
# Limit per task, as a retried task reads all its sources again.
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
    """The result for each source, by its number in the group.

    Attributes:
        records: number of records in the source.
        quarantined: sources that are quarantined, with the reason.
        changed: sources that differ from the listing.
        kinds: the kinds of records in all sources.
    """

    records: dict[int, int] = field(default_factory=dict)
    quarantined: dict[int, Quarantined] = field(default_factory=dict)
    changed: dict[int, SourceChanged] = field(default_factory=dict)
    kinds: list[Kind] = field(default_factory=list)


def read_blocks(
    session: SparkSession, sources: Sequence[SourceObject], context: ColumnarContext
) -> DataFrame:
    """Return the records of these sources as a frame of :data:`.records.BLOCK_SCHEMA`."""
    numbered = list(enumerate(sources))
    slices = slices_for(sources, session.sparkContext.defaultParallelism)
    text = context.settings.parquet_schema
    columns = None if text is None else tuple(given_schema(session, text).names)
    reader = RecordReader(context.settings, context.open_store, context.requests, columns)
    found = session.sparkContext.parallelize(numbered, slices).mapPartitions(reader)
    return session.createDataFrame(found, BLOCK_SCHEMA, verifySchema=False)


def slices_for(sources: Sequence[SourceObject], cores: int) -> int:
    """Return the number of tasks to read these sources with.

    Enough to keep all cores busy, while each task still has enough sources to read many
    concurrently; more if a task would have too many bytes or sources.
    """
    count = len(sources)
    busy = min(_SLICES_TO_A_CORE * cores, -(-count // _FEWEST_SOURCES))
    by_bytes = -(-sum(source.size for source in sources) // _SLICE_BYTES)
    wanted = max(busy, by_bytes, -(-count // _MOST_SOURCES))
    return max(1, min(_MOST_SLICES, count, wanted))


def accounts_of(blocks: DataFrame, sources: Sequence[SourceObject]) -> Accounts:
    """Count the records of each source; reads every source.

    Raises:
        TransientStoreError: the store did not answer.
    """
    # Summed and sorted here: a shuffle would take Spark longer than this loop takes the driver.
    counted = F.coalesce(F.size("records"), F.lit(0)).alias("counted")
    rows = blocks.select(*_COLUMNS, counted).collect()
    accounts = Accounts()
    for row in sorted(rows, key=lambda row: (row.source, row.block)):
        _add(accounts, row, sources[row.source])
    _forget_unread(accounts)
    accounts.kinds = list(dict.fromkeys(accounts.kinds))
    return accounts


def _add(accounts: Accounts, row: Row, source: SourceObject) -> None:
    """Add the result of one block."""
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
    """Remove the records counted in sources before they turned out to be unreadable."""
    gone = {*accounts.quarantined, *accounts.changed}
    for number in gone:
        accounts.records.pop(number, None)


def readable(blocks: DataFrame, accounts: Accounts) -> DataFrame:
    """Return the blocks of sources that were read completely."""
    left_out = sorted({*accounts.quarantined, *accounts.changed})
    return blocks.where(~F.col("source").isin(left_out)) if left_out else blocks


def records_of(blocks: DataFrame, kind: Kind) -> DataFrame:
    """Return the records of one kind, one per row: ``ORDER``, ``RAW`` (binary) and ``REASON``."""
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
    """Return the faultless records of one kind as strings, in one column ``value``."""
    records = records_of(blocks, kind).where(F.col(REASON).isNull())
    return records.select(F.col(RAW).cast("string").alias("value"))
