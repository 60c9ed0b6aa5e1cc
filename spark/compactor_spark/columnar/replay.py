"""Replay: turns rejects of earlier entries into rows, if they fit the current columns."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import SparkSession

from compactor.errors import IntegrityError
from compactor.log.columnar import Rejects
from compactor.log.manifest import ManifestRow
from compactor.log.rejects import Waiting, schema_digest
from compactor.log.slice_facts import SliceFacts
from compactor.model import ObjectGroup, SourceObject
from compactor.outputs.pending import PendingOutput
from compactor.ports import ObjectStore
from compactor_spark.columnar.blocks import Kind
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.convert import rows_of
from compactor_spark.columnar.origins import with_origin_columns
from compactor_spark.columnar.output import stage_rows, store_output
from compactor_spark.columnar.pin import known_schema
from compactor_spark.columnar.records import BLOCK_SCHEMA, Block, fault_of
from compactor_spark.columnar.rejects import Records
from compactor_spark.columnar.staging import Workspace


def replay(
    session: SparkSession,
    group: ObjectGroup,
    waiting: Sequence[Waiting],
    context: ColumnarContext,
    workspace: Workspace,
) -> PendingOutput:
    """Convert the records that fit by now to rows; the others become rejects of this group.

    Args:
        session: Spark's.
        group: its sources are the rejects.
        waiting: the same rejects, with their log entries.
        context: of the partition.
        workspace: of the group.

    Returns:
        The output; without one if still no record fits, in which case the rejects keep waiting.

    Raises:
        InvalidInput: the schema is invalid.
        IntegrityError: an object differs from its entry, or rows and rejects do not add up to its
            records.
    """
    nothing = PendingOutput(group=group, output=None, rows=(), later=group.sources)
    if _is_rejected_by_the_same(session, waiting, context):
        return nothing
    lines = [one for each in waiting for one in _lines(each.rejects, context.store)]
    uris = list(dict.fromkeys(one["source"] for one in lines))
    numbers = {uri: number for number, uri in enumerate(uris)}
    slices = session.sparkContext.parallelize(list(_blocks(lines, numbers)))
    blocks = session.createDataFrame(slices, BLOCK_SCHEMA, verifySchema=False)
    blocks = blocks.persist(StorageLevel.MEMORY_AND_DISK)
    kinds = [*dict.fromkeys(_kind_of(one) for one in lines)]
    sources = [_source_of(uri) for uri in uris]
    try:
        # With other reasons the rejects may become longer.
        records = Records(blocks, kinds, len(lines), sources, most_rejected=2 * group.size)
        rows = rows_of(session, records, group, context)
        if rows.frame.isEmpty():
            return nothing
        columnar = stage_rows(session, rows, workspace, context.codec())
        output = store_output(group, columnar, workspace.output(), context)
    finally:
        blocks.unpersist()
    manifest = tuple(
        ManifestRow(one.source, 0, 0, None, None, SliceFacts(one.rejects.records))
        for one in waiting
    )
    return PendingOutput(group=group, output=output, rows=manifest, replays=True)


def _is_rejected_by_the_same(
    session: SparkSession, waiting: Sequence[Waiting], context: ColumnarContext
) -> bool:
    """Return True if the columns are unchanged since all rejects were written, and cannot grow."""
    settings = context.settings
    known = known_schema(session, settings, context.store)
    if known is None or settings.schema_evolution == "add_columns":
        return False
    schema = with_origin_columns(known) if settings.upsert_key else known
    digest = schema_digest(schema.json())
    return all(one.schema == digest for one in waiting)


def _lines(rejects: Rejects, store: ObjectStore) -> list[dict[str, Any]]:
    body = store.get(rejects.bucket, rejects.key)
    found = [json.loads(line) for line in body.splitlines()]
    if (len(body), zlib.crc32(body), len(found)) != (rejects.size, rejects.crc32, rejects.records):
        raise IntegrityError(f"s3://{rejects.bucket}/{rejects.key} is not what its commit says")
    return found


def _blocks(lines: Sequence[dict[str, Any]], numbers: dict[str, int]) -> Iterator[Block]:
    """Yield a block for each record, with the record's position in its source."""
    for number, one in enumerate(lines):
        kind, record = _kind_of(one), one["record"].encode("utf-8", "surrogateescape")
        fault = fault_of(kind.kind, record)
        yield Block(
            source=numbers[one["source"]],
            block=number,
            kind=kind.kind,
            header=list(kind.header) or None,
            records=[record],
            faults={0: fault} if fault else {},
            first=one["position"],
        )


def _kind_of(one: dict[str, Any]) -> Kind:
    return Kind(one["kind"], tuple(one["header"]))


def _source_of(uri: str) -> SourceObject:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return SourceObject(bucket, key, "", 0, 0.0)
