"""Committed and published Parquet outputs like those of the Spark job, created without Spark."""

from __future__ import annotations

import io
import zlib

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.log.entries import Columnar, Commit, Output
from compactor.log.log import CommitLog
from compactor.log.manifest import ManifestRow, SliceFacts
from compactor.model import Compression, Format, Partition, SourceObject
from compactor.outputs.publish import publish
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

_FACTS = {
    "dropped_prefix": b"",
    "dropped_suffix": b"",
    "appended": 0,
    "newlines_stand_for": None,
    "edits": (),
}


def parquet(table: pa.Table, **given: object) -> bytes:
    """Return a table as a Parquet object."""
    body = io.BytesIO()
    pq.write_table(table, body, **given)
    return body.getvalue()


def commit_rows(
    store: ObjectStore,
    settings: Settings,
    partition: Partition,
    table: pa.Table,
    source: SourceObject | None = None,
    **given: object,
) -> Commit:
    """Commit and publish one output with these rows; return its commit."""
    rows = table.num_rows
    log = CommitLog(store, settings, partition)
    state = log.load()
    name = f"compacted-{state.last + 1:032x}.parquet"
    bucket, prefix = settings.outputs_of(partition)
    body = parquet(table, **given)
    upload_id = store.create_upload(bucket, prefix + name)
    part = store.upload_part(bucket, prefix + name, upload_id, 1, body)
    output = Output(
        bucket=bucket,
        key=prefix + name,
        upload_id=upload_id,
        parts=(part,),
        size=len(body),
        crc32=zlib.crc32(body),
        plain_bytes=len(body),
        records=rows,
        format=Format.PARQUET,
        compression=Compression.NONE,
        columnar=Columnar(rows, rows, "0" * 16, "0" * 16, "snappy", "{}"),
    )
    source = source or SourceObject(
        partition.bucket, f"{partition.prefix}{state.last + 1}.json", f"etag-{state.last}", 10, 0.0
    )
    facts = SliceFacts(records=rows, **_FACTS)  # type: ignore[arg-type] # of all kinds
    draft = Commit(
        sequence=0,
        commit_id=f"commit-{partition.path}-{state.last + 1}",
        run_id="run-1",
        created_at=0.0,
        source_bucket=partition.bucket,
        group_id=f"{state.last + 1:032x}",
        output=output,
        rows=(ManifestRow(source, 0, 0, 10, 0, facts),),
    )
    commit = log.append(state, draft)
    publish(commit, store)
    return commit
