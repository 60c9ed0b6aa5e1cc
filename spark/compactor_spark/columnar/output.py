"""Writes rows to one Parquet output with Spark, reads it back, and stores it as multipart parts."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.types import StructType

from compactor.encoding.encoders import encoder
from compactor.errors import IntegrityError
from compactor.formats import content_type
from compactor.log.columnar import Columnar, Rejects
from compactor.log.entries import Output
from compactor.model import Compression, Format, ObjectGroup
from compactor.outputs.output_writer import OutputWriter
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.hash import RowSums, row_sums
from compactor_spark.columnar.schema import nullable
from compactor_spark.columnar.staging import Workspace

#: Size of a row group of an output, in memory.
ROW_GROUP_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows for one output.

    Attributes:
        frame: the output's columns, and those of ``order``.
        schema: the output's columns only.
        order: columns that sort the rows in source order; not part of the output.
        counted: rows counted in the sources, before Spark read them.
        left_out: stores the records that the frame leaves out, if any. Called only if fewer rows
            were written than counted, as it reads all records again.
    """

    frame: DataFrame
    schema: StructType
    order: Sequence[str]
    counted: int
    left_out: Callable[[], Rejects | None] = lambda: None


def stage_rows(session: SparkSession, rows: Rows, workspace: Workspace, codec: str) -> Columnar:
    """Write the rows to a location that query engines do not read, and read them back.

    Many tasks read the rows, and one task writes them: an output is one object with full-size
    row groups, and its rows are in the order of their sources.

    Raises:
        IntegrityError: the rows read back are not those written.
    """
    before = _write(rows, workspace.output_path, codec)
    rejects = rows.left_out() if before.rows < rows.counted else None
    written = session.read.parquet(workspace.output_path)
    found, wanted = nullable(written.schema), nullable(rows.schema)
    if _types(found) != _types(wanted):
        raise IntegrityError(
            f"the output has the columns {found.simpleString()}, not {wanted.simpleString()}"
        )
    after = RowSums.of(written.agg(*row_sums(rows.schema)).collect()[0])
    columnar = Columnar(
        rows_in=rows.counted,
        rows_out=after.rows,
        hash_in=before.hash,
        hash_out=after.hash,
        codec=codec,
        schema=rows.schema.json(),
        rejects=rejects,
    )
    if columnar.fault:
        raise IntegrityError(columnar.fault)
    return columnar


def _write(rows: Rows, path: str, codec: str) -> RowSums:
    # The sums are computed as rows are written; a retried task is counted once.
    observation = Observation(f"rows-{uuid.uuid4().hex}")
    ordered = rows.frame.repartition(1).sortWithinPartitions(*rows.order).drop(*rows.order)
    watched = ordered.observe(observation, *row_sums(rows.schema))
    writer = watched.write.option("compression", codec)
    writer.option("parquet.block.size", str(ROW_GROUP_BYTES)).parquet(path)
    return RowSums.of(observation.get)


def _types(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def store_output(
    group: ObjectGroup, columnar: Columnar, pieces: Iterator[bytes], context: ColumnarContext
) -> Output:
    """Store staged bytes as parts of an upload at the final key; no reader sees them yet.

    Two Spark jobs may write different bytes for the same rows. So the committed checksum is
    computed from these bytes while they are uploaded.
    """
    destination = context.destination
    key = destination.key(group, ".parquet")
    plain = encoder(Compression.NONE)
    media_type = content_type(Format.PARQUET, Compression.NONE)
    writer = OutputWriter(
        context.store,
        destination.bucket,
        key,
        plain,
        content_type=media_type,
        metadata=partial(destination.metadata, group),
    )
    try:
        for piece in pieces:
            writer.write(piece)
        upload_id, parts = writer.finish()
    except BaseException:
        writer.abort()
        raise
    return Output(
        bucket=destination.bucket,
        key=key,
        upload_id=upload_id,
        parts=parts,
        size=writer.size,
        crc32=writer.crc32,
        plain_bytes=None,
        records=columnar.rows_out,
        format=Format.PARQUET,
        compression=Compression.NONE,
        columnar=columnar,
    )
