"""Convert: turns JSON, CSV and TSV records into the rows of one Parquet output."""

from __future__ import annotations

from pyspark import StorageLevel
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - how everybody imports it
from pyspark.sql.types import StructType

from compactor.log.columnar import Rejects
from compactor.log.manifest import ManifestRow
from compactor.log.slice_facts import SliceFacts
from compactor.model import ObjectGroup
from compactor.outputs.pending import PendingOutput
from compactor_spark.columnar.blocks import (
    ORDER,
    REASON,
    accounts_of,
    read_blocks,
    readable,
)
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.infer import json_fields, with_columns_of
from compactor_spark.columnar.origins import with_origins
from compactor_spark.columnar.output import Rows, stage_rows, store_output
from compactor_spark.columnar.parse import DATA, parse
from compactor_spark.columnar.pin import pinned_schema
from compactor_spark.columnar.rejects import Records, refuse_all, store_rejects
from compactor_spark.columnar.staging import Workspace


def convert(
    session: SparkSession, group: ObjectGroup, context: ColumnarContext, workspace: Workspace
) -> PendingOutput:
    """Read a group's sources, convert their records to rows, and store these for publication.

    Every record becomes a row or is stored among the rejects. Sources that are damaged, or of
    a format without named fields, are quarantined.

    Raises:
        InvalidInput: the schema is invalid, or no record fits it.
        SourceChanged: a source differs from the listing.
        IntegrityError: rows and rejects do not add up to the records of the sources.
    """
    blocks = read_blocks(session, group.sources, context).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        accounts = accounts_of(blocks, group.sources)
        for changed in accounts.changed.values():
            raise changed
        output = None
        if any(accounts.records.values()):
            whole = readable(blocks, accounts)
            counted = sum(accounts.records.values())
            records = Records(whole, accounts.kinds, counted, group.sources)
            rows = rows_of(session, records, group, context)
            columnar = stage_rows(session, rows, workspace, context.codec())
            output = store_output(group, columnar, workspace.output(), context)
    finally:
        blocks.unpersist()
    manifest = tuple(
        ManifestRow(group.sources[number], 0, 0, None, None, SliceFacts(records))
        for number, records in sorted(accounts.records.items())
    )
    quarantined = tuple(accounts.quarantined.values())
    return PendingOutput(group=group, output=output, rows=manifest, quarantined=quarantined)


def rows_of(
    session: SparkSession, records: Records, group: ObjectGroup, context: ColumnarContext
) -> Rows:
    """Return the rows of records that fit the columns of this run; the others become rejects.

    Raises:
        InvalidInput: the schema is invalid.
    """
    blocks, kinds = records.blocks, records.kinds
    seen = json_fields(session, blocks, kinds)

    def infer(known: StructType) -> StructType:
        return with_columns_of(session, blocks, kinds, seen, known=known)

    schema = pinned_schema(session, context.settings, context.store, infer)
    parsed = parse(blocks, kinds, schema, seen)

    def left_out() -> Rejects | None:
        rejects = store_rejects(parsed, records, schema, group, context)
        if rejects is not None and rejects.records == records.counted:
            raise refuse_all(rejects, context)
        return rejects

    fitting = parsed.where(F.col(REASON).isNull()).select(*ORDER, f"{DATA}.*")
    rows = Rows(fitting, schema, ORDER, records.counted, left_out)
    if not context.settings.upsert_key:
        return rows
    return with_origins(session, rows, {n: one.key for n, one in enumerate(records.sources)})
