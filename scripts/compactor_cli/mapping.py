"""The whole mapping of a destination: where in which output the content of each source is."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from compactor.errors import InvalidInput
from compactor.log.entries import Commit
from compactor.log.manifest import ManifestRow
from compactor.log.stored import StoredLog, each_log
from compactor.model import SourceObject
from compactor.outputs.restore import keeps_bytes
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri


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
        records: in the slice; None where S3 copied them, and nobody counted.
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


def mapping(state: S3Uri, store: ObjectStore) -> Iterator[Mapped]:
    """Every source that a valid commit names; one commit is held at a time.

    Raises:
        InvalidInput: there is no state.
        IntegrityError: an entry of a log is damaged.
    """
    found = False
    for log in each_log(state, store):
        found = found or bool(log.entries)
        yield from _of_log(log, store)
    if not found:
        accepted = "where a run has left its state; a run with an s3_state_uri of its own needs"
        raise InvalidInput("s3_state_uri", state.uri, f"{accepted} the same --state-uri here")


def _of_log(log: StoredLog, store: ObjectStore) -> Iterator[Mapped]:
    # What came again, until the commit is reached that has its content.
    again: dict[tuple[int, str, str], list[tuple[SourceObject, Commit]]] = {}
    for commit in log.newest_first(store):
        for one in commit.again:
            place = (one.of, one.source.bucket, one.source.key)
            again.setdefault(place, []).append((one.source, _without_rows(commit)))
        for row in commit.rows:
            yield _mapped(log, commit, row, (row.source, commit), delivered_again=False)
            place = (commit.sequence, row.source.bucket, row.source.key)
            for told in again.pop(place, ()):
                yield _mapped(log, commit, row, told, delivered_again=True)


def _without_rows(commit: Commit) -> Commit:
    """Its rows may be many, and are not asked for."""
    return Commit(
        commit.sequence,
        commit.commit_id,
        commit.run_id,
        commit.created_at,
        commit.source_bucket,
        commit.group_id,
    )


def _mapped(
    log: StoredLog,
    holder: Commit,
    row: ManifestRow,
    told: tuple[SourceObject, Commit],
    *,
    delivered_again: bool,
) -> Mapped:
    """A row, as the commit says that tells of its source."""
    (source, commit), output, facts = told, holder.output, row.facts
    has_slice = output is not None and keeps_bytes(holder)
    edited = facts is not None and (facts.newlines_stand_for is not None or bool(facts.edits))
    return Mapped(
        partition=log.path,
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
        delivered_again=delivered_again,
    )


def as_json_lines(rows: Iterable[Mapped]) -> Iterator[bytes]:
    """One JSON object a line; bytes as base64, the time in ISO 8601."""
    for row in rows:
        told = row._asdict()
        told["committed_at"] = row.committed_at.isoformat().replace("+00:00", "Z")
        for name in ("dropped_prefix", "dropped_suffix"):
            told[name] = base64.b64encode(told[name]).decode()
        yield json.dumps(told).encode() + b"\n"
