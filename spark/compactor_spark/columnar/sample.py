"""Infers the columns of a run's outputs before its first group is compacted.

Groups run concurrently. If each pinned the columns of its own records, the pin would depend on
which group came first, and would lack columns of other partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from compactor.model import ObjectGroup, SourceObject
from compactor_spark.columnar.blocks import accounts_of, read_blocks, readable
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.infer import json_fields, with_columns_of
from compactor_spark.columnar.pin import pinned_schema

#: Most sources in a sample: some of each group, spread over its keys.
SAMPLE_SOURCES = 2_000
SAMPLE_BYTES = 512 * 1024 * 1024


def pin_by_sample(
    session: SparkSession, groups: Sequence[ObjectGroup], context: ColumnarContext
) -> None:
    """Pin the columns inferred from a sample of all groups, unless given, or pinned for good.

    Raises:
        InvalidInput: no columns can be inferred, or the given schema is invalid.
    """
    sources = list(sample(groups))

    def infer(known: StructType) -> StructType:
        blocks = read_blocks(session, sources, context).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            accounts = accounts_of(blocks, sources)
            whole = readable(blocks, accounts)
            seen = json_fields(session, whole, accounts.kinds)
            return with_columns_of(session, whole, accounts.kinds, seen, known=known)
        finally:
            blocks.unpersist()

    pinned_schema(session, context.settings, context.store, infer)


def sample(groups: Sequence[ObjectGroup]) -> Iterator[SourceObject]:
    """Yield evenly spread sources of each group, within the limits; at least one in total."""
    share = max(1, SAMPLE_SOURCES // max(1, len(groups)))
    size = taken = 0
    for group in groups:
        step = -(-len(group.sources) // share)
        for source in group.sources[::step]:
            if taken and (size + source.size > SAMPLE_BYTES or taken >= SAMPLE_SOURCES):
                return
            size += source.size
            taken += 1
            yield source
