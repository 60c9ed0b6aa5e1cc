"""Sources that are still what was compacted, compared with the manifest."""

from __future__ import annotations

from dataclasses import dataclass, field

from compactor.errors import SourceChanged, UnreadableSource
from compactor.log.entries import Commit
from compactor.log.manifest import ManifestRow
from compactor.model import Again, QuarantineReason
from compactor.outputs import plain
from compactor.ports import ObjectStore, SourceBody
from compactor.settings.settings import Settings


@dataclass(slots=True)
class SourceCheck:
    """What became of the sources of commits.

    Attributes:
        equal: still there, with the bytes that the manifest tells.
        changed: gone, or replaced by another object of the same key.
        archived: still there, but not to be read before S3 has restored them.
        denied: still there, but this role may not read them, or not use their key.
        not_read: one line for each of the archived and the denied.
        findings: one line for each source that is there and differs.
    """

    equal: int = 0
    changed: int = 0
    archived: int = 0
    denied: int = 0
    not_read: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def add(self, other: SourceCheck) -> None:
        """Take in another check."""
        self.equal += other.equal
        self.changed += other.changed
        self.archived += other.archived
        self.denied += other.denied
        self.not_read += other.not_read
        self.findings += other.findings


def check_sources(commit: Commit, settings: Settings, store: ObjectStore) -> SourceCheck:
    """Read the sources of a commit again, each with the ETag it had then."""
    result = SourceCheck()
    rows = [*commit.rows, *map(_row_of, commit.again)]
    bodies = store.read_sources(row.source for row in rows)
    for row, body in zip(rows, bodies, strict=True):
        if isinstance(body.error, SourceChanged):
            result.changed += 1
        elif isinstance(body.error, UnreadableSource):
            archived = body.error.reason == QuarantineReason.ARCHIVED
            result.archived += archived
            result.denied += not archived
            result.not_read.append(f"source {row.source.key}: not read: {body.error}")
        elif body.error is not None:
            raise body.error
        elif fault := _fault(row, body, settings):
            result.findings.append(f"source {row.source.key}: {fault}")
        else:
            result.equal += 1
    return result


def _row_of(again: Again) -> ManifestRow:
    """What came again is to have the bytes that the manifest of an earlier commit tells."""
    return ManifestRow(again.source, 0, 0, again.plain_bytes, again.crc32, None)


def _fault(row: ManifestRow, body: SourceBody, settings: Settings) -> str:
    """How the bytes differ from the manifest row; empty when they do not."""
    if row.crc32 is None:
        # Of a server-side copy the manifest knows size and ETag, and both were asked for.
        return ""
    try:
        content = plain.read(body, settings)
        for _ in content.chunks():
            continue
    except UnreadableSource as error:
        return f"its manifest has {row.plain_bytes} bytes, but now: {error}"
    if (content.size, content.crc32) == (row.plain_bytes, row.crc32):
        return ""
    return (
        f"{content.size} bytes with CRC32 {content.crc32}, but its manifest has"
        f" {row.plain_bytes} bytes with CRC32 {row.crc32}"
    )
