"""Encodes and decodes the entries and checkpoints of a commit log: gzipped JSON on S3."""

from __future__ import annotations

import gzip
from typing import Any

import msgspec
from isal import igzip

from compactor.decoding import decoded, decoder, require_version
from compactor.log import manifest
from compactor.log.digests import Digests, split_digests
from compactor.log.entries import KEPT_RUNS, Commit, Output
from compactor.log.manifest import Columns
from compactor.log.state import LogState, RunTotals
from compactor.model import Quarantined, QuarantineReason, SourceObject

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
    covered: tuple[tuple[int, int, int], ...]


# Fields that an entry and a commit share, in the order they are written.
_SAME_FIELDS = _Entry.__struct_fields__[:7]


class _Checkpoint(msgspec.Struct):
    through: int
    committed: bytes
    # By the settings that decided.
    quarantined: dict[str, bytes]
    runs: dict[str, RunTotals]
    passing: bytes
    log_id: str
    path: str
    outputs: bytes


_parse_entry, _parse_checkpoint = decoder(_Entry), decoder(_Checkpoint)


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
        "covered": commit.covered,
    }
    return _pack(document)


def decode_commit(body: bytes, where: str = "an entry of the commit log") -> Commit:
    """Return the decoded entry.

    Raises:
        IntegrityError: it is damaged, or a later version of this program wrote it.
    """
    return decoded(lambda packed: _commit(_parse_entry(_unpack(packed, where))), where, body)


def _commit(entry: _Entry) -> Commit:
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
        covered=entry.covered,
    )


def encode_checkpoint(state: LogState, path: str) -> bytes:
    """Return a checkpoint through ``state.last`` as gzipped JSON; identical for every writer.

    Args:
        state: the state of a log.
        path: path of its partition.
    """
    quarantined = {name: bytearray() for name in sorted({*state.quarantined.values()})}
    for identity, decided_by in sorted(state.quarantined.items()):
        quarantined[decided_by] += identity
    document = {
        "version": LOG_VERSION,
        "through": state.last,
        "committed": state.committed.to_bytes(),
        "quarantined": quarantined,
        "passing": b"".join(sorted(state.passing)),
        "runs": msgspec.to_builtins(dict(list(state.runs.items())[-KEPT_RUNS:])),
        "log_id": state.log_id,
        "path": path,
        "outputs": b"".join(sorted(state.outputs)),
    }
    return _pack(document)


def decode_checkpoint(
    body: bytes, path: str, where: str = "a checkpoint of the commit log"
) -> LogState:
    """Return the state as of the checkpoint.

    Args:
        body: the stored checkpoint.
        path: path of the partition that it was read for.
        where: its URI.

    Raises:
        IntegrityError: it is damaged, of another partition, or of a later version.
    """
    return decoded(
        lambda packed: _state(_parse_checkpoint(_unpack(packed, where)), path), where, body
    )


def _state(document: _Checkpoint, path: str) -> LogState:
    if document.path != path:
        raise ValueError(f"it says that it is of partition {document.path or '(root)'}")
    return LogState(
        last=document.through,
        checkpoint=document.through,
        committed=Digests.from_bytes(document.committed),
        quarantined={
            identity: decided_by
            for decided_by, identities in document.quarantined.items()
            for identity in split_digests(identities)
        },
        passing=set(split_digests(document.passing)),
        runs=document.runs,
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
