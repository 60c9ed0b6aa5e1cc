"""The mapping of a destination: the place of every source in the outputs."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from compactor.log.entries import Commit
from compactor.log.log_reader import StoredLog, each_log
from compactor.log.manifest import ManifestRow
from compactor.model import SourceObject
from compactor.outputs.restore import keeps_bytes
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri
from compactor_cli.commit_logs import no_state


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
            bytes of an output that S3 copied.
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


def mapping(state: S3Uri, store: ObjectStore) -> Iterator[Mapped]:
    """Yield every source in a valid commit, with one commit in memory at a time.

    Raises:
        InvalidInput: there is no state.
        IntegrityError: a log entry is damaged.
    """
    found = False
    for log in each_log(state, store):
        found = found or bool(log.entries)
        yield from _of_log(log, store)
    if not found:
        raise no_state(state)


def _of_log(log: StoredLog, store: ObjectStore) -> Iterator[Mapped]:
    # Sources delivered again, until the earlier commit with their content is reached.
    again: dict[tuple[int, str, str], list[tuple[SourceObject, Commit]]] = {}
    for commit in log.newest_first(store):
        for one in commit.again:
            place = (one.of, one.source.bucket, one.source.key)
            again.setdefault(place, []).append((one.source, _without_rows(commit)))
        for row in commit.rows:
            yield _mapped(log.path, commit, row)
            place = (commit.sequence, row.source.bucket, row.source.key)
            for later in again.pop(place, ()):
                yield _mapped(log.path, commit, row, later)


def _without_rows(commit: Commit) -> Commit:
    """Return a commit without its rows, which may be many and are not needed."""
    return Commit(
        commit.sequence,
        commit.commit_id,
        commit.run_id,
        commit.created_at,
        commit.source_bucket,
        commit.group_id,
    )


def _mapped(
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


def as_json_lines(rows: Iterable[Mapped]) -> Iterator[bytes]:
    """Yield one JSON object per line; bytes as base64, times in ISO 8601."""
    for row in rows:
        document = row._asdict()
        document["committed_at"] = row.committed_at.isoformat().replace("+00:00", "Z")
        for name in ("dropped_prefix", "dropped_suffix"):
            document[name] = base64.b64encode(document[name]).decode()
        yield json.dumps(document).encode() + b"\n"
