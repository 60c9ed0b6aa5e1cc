"""Encodes and decodes the entries and checkpoints of a commit log: gzipped JSON on S3."""

from __future__ import annotations

import gzip
from typing import Any

import msgspec
from isal import igzip

from compactor.decoding import decoder, require_version
from compactor.log import manifest
from compactor.log.content_index import Contents
from compactor.log.digests import Digests, split_digests
from compactor.log.entries import KEPT_RUNS, Commit, Output
from compactor.log.manifest import Columns
from compactor.log.state import LogState, RunTotals
from compactor.model import Again, Quarantined, QuarantineReason, Skipped, SourceObject

LOG_VERSION = 1


class _Entry(msgspec.Struct):
    """The document that :func:`encode_commit` packs; decoding checks each value's type."""

    sequence: int
    commit_id: str
    run_id: str
    created_at: float
    source_bucket: str
    group_id: str
    replaces: int | None
    output: Output | None
    manifest: Columns
    quarantined: list[tuple[str, str, int, QuarantineReason, str]]
    log_id: str
    decided_by: str
    again: list[tuple[str, str, int, int, int | None, int | None]]
    overwritten: Skipped


# Fields that an entry and a commit share, in the order they are written.
_SAME_FIELDS = _Entry.__struct_fields__[:7]


class _Checkpoint(msgspec.Struct):
    through: int
    committed: bytes
    quarantined: bytes
    runs: dict[str, RunTotals]
    passing: bytes
    log_id: str
    path: str
    outputs: bytes
    # Commit id of the last entry.
    commit_id: str
    undecided: dict[str, bytes]
    contents: bytes
    buckets: list[str]


_decode_entry, _decode_checkpoint = decoder(_Entry), decoder(_Checkpoint)


def encode_commit(commit: Commit) -> bytes:
    """Return one entry as gzipped JSON."""
    output = commit.output
    document = {
        "version": LOG_VERSION,
        **{name: getattr(commit, name) for name in _SAME_FIELDS},
        "output": None if output is None else msgspec.to_builtins(output),
        "manifest": manifest.to_json(commit.rows),
        "quarantined": [
            [q.source.key, q.source.etag, q.source.size, q.reason, q.detail]
            for q in commit.quarantined
        ],
        "log_id": commit.log_id,
        "decided_by": commit.decided_by,
        "again": [
            [a.source.key, a.source.etag, a.source.size, a.of, a.plain_bytes, a.crc32]
            for a in commit.again
        ],
        "overwritten": msgspec.to_builtins(commit.overwritten),
    }
    return _pack(document)


def decode_commit(body: bytes, where: str = "an entry of the commit log") -> Commit:
    """Return the decoded entry; for damaged bytes, raises whatever the decoders raise.

    Raises:
        IntegrityError: a later version of this program wrote it, in a version not known here.
    """
    entry = _decode_entry(_unpack(body, where))
    bucket = entry.source_bucket
    same: dict[str, Any] = {name: getattr(entry, name) for name in _SAME_FIELDS}
    return Commit(
        **same,
        output=entry.output,
        rows=manifest.from_json(entry.manifest, bucket),
        quarantined=tuple(
            Quarantined(SourceObject(bucket, key, etag, size, 0.0), reason, detail)
            for key, etag, size, reason, detail in entry.quarantined
        ),
        log_id=entry.log_id,
        decided_by=entry.decided_by,
        again=tuple(
            Again(SourceObject(bucket, key, etag, size, 0.0), of, plain_bytes, crc32)
            for key, etag, size, of, plain_bytes, crc32 in entry.again
        ),
        overwritten=entry.overwritten,
    )


def encode_checkpoint(state: LogState) -> bytes:
    """Return a checkpoint through ``state.last`` as gzipped JSON; identical for every writer."""
    document = {
        "version": LOG_VERSION,
        "through": state.last,
        "commit_id": state.commit_ids[state.last],
        "committed": state.committed.to_bytes(),
        "quarantined": b"".join(sorted(state.quarantined)),
        "contents": state.contents.to_bytes(),
        "buckets": sorted(state.buckets),
        "passing": b"".join(sorted(state.passing)),
        "undecided": {
            name: b"".join(sorted(found))
            for name, found in sorted(state.undecided.items())
            if found
        },
        "runs": msgspec.to_builtins(dict(list(state.runs.items())[-KEPT_RUNS:])),
        "log_id": state.log_id,
        "path": state.path,
        "outputs": b"".join(sorted(state.outputs)),
    }
    return _pack(document)


def decode_checkpoint(body: bytes, where: str = "a checkpoint of the commit log") -> LogState:
    """Return the state as of the checkpoint; raises as :func:`decode_commit` does."""
    document = _decode_checkpoint(_unpack(body, where))
    return LogState(
        last=document.through,
        checkpoint=document.through,
        commit_ids={document.through: document.commit_id},
        committed=Digests.from_bytes(document.committed),
        quarantined=set(split_digests(document.quarantined)),
        passing=set(split_digests(document.passing)),
        undecided={name: set(split_digests(found)) for name, found in document.undecided.items()},
        contents=Contents.from_bytes(document.contents),
        buckets=set(document.buckets),
        runs=document.runs,
        path=document.path,
        log_id=document.log_id,
        outputs=set(split_digests(document.outputs)),
    )


def _pack(document: dict[str, Any]) -> bytes:
    # 8 times as fast as zlib at a similar size.
    return igzip.compress(msgspec.json.encode(document), compresslevel=2, mtime=0)


def _unpack(body: bytes, where: str) -> bytes:
    plain = gzip.decompress(body)
    require_version(where, plain, LOG_VERSION)
    return plain
