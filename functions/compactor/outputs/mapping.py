"""Maps each source to the place of its content in an output, one row per source. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

from compactor.log.entries import Commit
from compactor.log.manifest import ManifestRow
from compactor.model import SourceObject
from compactor.outputs.restore import keeps_bytes


class Mapped(NamedTuple):
    """One source and the place of its content; the columns of an export.

    If ``exact``, the content of a source is ``dropped_prefix``, then the slice without its last
    ``appended`` bytes, then ``dropped_suffix``. Otherwise records within the slice were changed,
    for example put on separate lines, and only ``compactor restore`` undoes that.

    Attributes:
        partition: the partition's path.
        size: stored size of the source, in bytes.
        committed_at: time of the commit, UTC; the manifest does not keep the source's time of last
            modification.
        output: the output's URI; None for a source without content.
        compression: the output's compression. Offsets count its decompressed bytes, or the stored
            bytes of an output that S3 copied whole.
        offset, length: place of the slice, in bytes; None if the output is columnar.
        records: records in the slice; None if S3 copied them, as they were not counted.
        plain_bytes, crc32: size and CRC32 of the decompressed source; None if S3 copied it.
        commit: sequence number in the partition's log.
        delivered_again: True if an earlier source of the same key had the same content already.
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
    """Return the row of a source.

    Args:
        path: the partition's path.
        holder: the commit whose output has the content.
        row: the manifest row of the content.
        again: a source with the same content, and the commit that records it; None for the
            source of the manifest row itself.
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
