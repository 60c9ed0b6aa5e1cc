"""Where in which output the content of each source is, one row for each. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from compactor.log.entries import Commit
from compactor.log.manifest import ManifestRow
from compactor.model import SourceObject
from compactor.outputs.restore import keeps_bytes


class Mapped(NamedTuple):
    """One source, and where its content is; the columns of an export.

    The content of a source is ``dropped_prefix``, then the slice without its last ``appended``
    bytes, then ``dropped_suffix``: where ``exact``. Elsewhere records within the slice were put on
    lines of their own, and only ``compactor restore`` undoes it.

    Attributes:
        partition: its path.
        size: as the source was stored, bytes.
        committed_at: UTC; the manifest does not keep when the source was last modified.
        output: URI; None for a source without content.
        compression: of the output; offsets count its decompressed bytes, those of an output that S3
            copied whole its stored ones.
        offset, length: of the slice, bytes; None where the output holds rows.
        records: in the slice; None where S3 copied them, and they were not counted.
        plain_bytes, crc32: of the source once decompressed; None where S3 copied it.
        commit: sequence in the log of the partition.
        delivered_again: the content was there already, from an earlier source of that key.
    """

    partition: str
    source_bucket: str
    source_key: str
    etag: str
    size: int
    committed_at: datetime
    output: str | None
    format: str | None
    compression: str | None
    offset: int | None
    length: int | None
    records: int | None
    plain_bytes: int | None
    crc32: int | None
    exact: bool
    dropped_prefix: bytes
    dropped_suffix: bytes
    appended: int
    run_id: str
    commit: int
    delivered_again: bool


def mapped(
    path: str, holder: Commit, row: ManifestRow, again: tuple[SourceObject, Commit] | None = None
) -> Mapped:
    """One row.

    Args:
        path: of the partition.
        holder: the commit whose output has the content.
        row: where it is there.
        again: a source that has the same content, and the commit that says so; None for the
            source of the row itself.
    """
    source, commit = again or (row.source, holder)
    output, facts = holder.output, row.facts
    has_slice = output is not None and keeps_bytes(holder)
    edited = facts is not None and (facts.newlines_stand_for is not None or bool(facts.edits))
    return Mapped(
        partition=path,
        source_bucket=source.bucket,
        source_key=source.key,
        etag=source.etag,
        size=source.size,
        committed_at=datetime.fromtimestamp(commit.created_at, UTC),
        output=None if output is None else f"s3://{output.bucket}/{output.key}",
        format=None if output is None or output.format is None else output.format.value,
        compression=None if output is None else output.compression.value,
        offset=row.offset if has_slice else None,
        length=row.length if has_slice else None,
        records=None if facts is None else facts.records,
        plain_bytes=row.plain_bytes,
        crc32=row.crc32,
        exact=keeps_bytes(holder) and not edited,
        dropped_prefix=b"" if facts is None else facts.dropped_prefix,
        dropped_suffix=b"" if facts is None else facts.dropped_suffix,
        appended=0 if facts is None else facts.appended,
        run_id=commit.run_id,
        commit=commit.sequence,
        delivered_again=again is not None,
    )
