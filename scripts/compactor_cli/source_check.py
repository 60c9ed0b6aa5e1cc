"""What became of the sources of commits: each is asked for, and compared with the manifest."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from enum import StrEnum

from compactor.cleaning.deletions import Deletions
from compactor.errors import (
    IntegrityError,
    InvalidInput,
    ObjectArchived,
    ObjectMissing,
    SourceChanged,
    UnreadableSource,
)
from compactor.log.entries import Commit
from compactor.log.log_reader import StoredLog
from compactor.log.manifest import ManifestRow
from compactor.model import PASSING_REASONS, Again, Compression, QuarantineReason, SourceObject
from compactor.outputs import plain_content as plain
from compactor.outputs import slices
from compactor.ports import ObjectStore, SourceBody
from compactor.settings.settings import Settings
from compactor.sizes import MIB

_CONCURRENT_HEADS = 16
_RANGE_BYTES = 8 * MIB


class Became(StrEnum):
    """What became of one source: but for ``GONE`` the names of counts of :class:`SourceCheck`."""

    EQUAL = "equal"
    CHANGED = "changed"
    GONE = "gone"
    ARCHIVED = "archived"
    DENIED = "denied"
    NOT_COMPARED = "not_compared"
    DIFFERS = "differs"


@dataclass(slots=True)
class SourceCheck:
    """What became of the sources of commits. Every source is in exactly one of the counts.

    Attributes:
        equal: still there, with the bytes that the manifest names.
        changed: replaced by another object of the same key.
        deleted_by_clean_up: gone; a record or receipt of clean-up names it.
        missing: gone, and no record says that clean-up deleted them: another program did, or a
            clean-up that was killed before it wrote its record.
        archived: still there, but not to be read before S3 has restored them.
        denied: still there, but this role may not read them, or not use their key.
        not_compared: still there and read, but nothing is at hand to compare them with: their
            manifest has no checksum, and the copy in the output cannot be read.
        differs: still there under the same ETag, with other bytes.
        not_read: one line for each of the archived, the denied and the not compared.
        findings: one line for each that differs, and for each record that is not what it was.
        missing_in: one line for each commit with missing sources.
    """

    equal: int = 0
    changed: int = 0
    deleted_by_clean_up: int = 0
    missing: int = 0
    archived: int = 0
    denied: int = 0
    not_compared: int = 0
    differs: int = 0
    not_read: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    missing_in: list[str] = field(default_factory=list)

    def add(self, other: SourceCheck) -> None:
        """Take in another check."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def count(self, became: Became, key: str, why: str) -> None:
        """Count a source that is there; ``why`` says more of it."""
        setattr(self, became, getattr(self, became) + 1)
        if became is Became.DIFFERS:
            self.findings.append(f"source {key}: {why}")
        elif why:
            self.not_read.append(f"source {key}: not read: {why}")


class Sources:
    """Asks for the sources of commits; several threads may share it.

    Args:
        settings: of the runs that compacted them.
        store: where they are, and the state.
    """

    def __init__(self, settings: Settings, store: ObjectStore) -> None:
        self._settings = settings
        self._store = store
        self._deletions = Deletions(settings, store)

    def check(self, commit: Commit, log: StoredLog) -> SourceCheck:
        """Ask for every source of a commit, each with the ETag it had then.

        Those with bytes are read; of those without any, HEAD proves as much.

        Args:
            commit: whose sources, and what came again with it.
            log: the log that it is an entry of, which has what clean-up is done with.

        Raises:
            InvalidInput: a bucket cannot be read.
        """
        result = SourceCheck()
        gone: list[str] = []
        for source, became, why in self._each(commit):
            if became is Became.GONE:
                gone.append(source.key)
            else:
                result.count(became, source.key, why)
        if gone:
            self._count_gone(result, gone, commit, log)
        return result

    def _each(self, commit: Commit) -> Iterator[tuple[SourceObject, Became, str]]:
        rows = [*commit.rows, *map(_row_of, commit.again)]
        filled = [row for row in rows if row.source.size]
        bodies = self._store.read_sources(row.source for row in filled)
        for row, body in zip(filled, bodies, strict=True):
            yield (row.source, *self._compared(row, body, commit))
        # The store gives these without a request: they were not asked for yet.
        empty = [row.source for row in rows if not row.source.size]
        if empty:
            with ThreadPoolExecutor(_CONCURRENT_HEADS) as pool:
                for source, found in zip(empty, pool.map(self._look_at, empty), strict=True):
                    yield (source, *found)

    def _look_at(self, source: SourceObject) -> tuple[Became, str]:
        try:
            head = self._store.head(source.bucket, source.key)
        except InvalidInput as error:
            if error.field != "permission":
                raise
            return Became.DENIED, str(error)
        if head is None:
            return Became.GONE, ""
        same = (head.etag, head.size) == (source.etag, source.size)
        return (Became.EQUAL if same else Became.CHANGED), ""

    def _compared(self, row: ManifestRow, body: SourceBody, commit: Commit) -> tuple[Became, str]:
        try:
            if body.error is not None:
                raise body.error
            if row.crc32 is None:
                return self._compare_copy(row, body, commit)
            fault = _fault(row, body, self._settings)
        except SourceChanged as error:
            return (Became.GONE if error.gone else Became.CHANGED), ""
        except UnreadableSource as error:
            archived = error.reason == QuarantineReason.ARCHIVED
            return (Became.ARCHIVED if archived else Became.DENIED), str(error)
        return (Became.DIFFERS if fault else Became.EQUAL), fault

    def _compare_copy(
        self, row: ManifestRow, body: SourceBody, commit: Commit
    ) -> tuple[Became, str]:
        """Compare what S3 copied, of which no manifest has a checksum, by its ETag or its copy."""
        source = row.source
        # An ETag is an identifier here, not a defence against an attacker.
        md5 = hashlib.md5(usedforsecurity=False)
        crc32 = 0
        for piece in _stored(body):
            md5.update(piece)
            crc32 = zlib.crc32(piece, crc32)
        if any(one.source is source for one in commit.again):
            # It was compared when it came again; since then its ETag has not changed.
            return Became.EQUAL, ""
        if not slices.is_unproven(row, commit):
            same = md5.hexdigest() == source.etag
            why = f"its bytes do not have the MD5 sum {source.etag}, which is its ETag"
            return (Became.EQUAL, "") if same else (Became.DIFFERS, why)
        try:
            copied = self._crc32_of_copy(row, commit)
        except (IntegrityError, ObjectArchived, ObjectMissing) as error:
            return Became.NOT_COMPARED, f"nothing to compare it with: {error}"
        if copied != crc32:
            return Became.DIFFERS, f"CRC32 {crc32}, but its copy in the output has {copied}"
        return Became.EQUAL, ""

    def _crc32_of_copy(self, row: ManifestRow, commit: Commit) -> int:
        """CRC32 of what the output holds of a source that S3 copied."""
        output = commit.output
        if output is None or not (output.copied or output.compression is Compression.NONE):
            raise IntegrityError(f"commit {commit.sequence} names no place of its copy")
        # Among others a copy may stand without its header, or with a newline after it.
        facts = row.facts
        crc32 = 0 if facts is None else zlib.crc32(facts.dropped_prefix)
        end = row.offset + row.length - (0 if facts is None else facts.appended)
        for start in range(row.offset, end, _RANGE_BYTES):
            length = min(_RANGE_BYTES, end - start)
            piece = self._store.get_range(output.bucket, output.key, start, length)
            crc32 = zlib.crc32(piece, crc32)
        return crc32 if facts is None else zlib.crc32(facts.dropped_suffix, crc32)

    def _count_gone(
        self, result: SourceCheck, gone: list[str], commit: Commit, log: StoredLog
    ) -> None:
        where = f"{log.path or '(root)'} commit {commit.sequence}"
        deleted = 0
        try:
            deleted = min(self._deletions.of(log, commit), len(gone))
        except IntegrityError as error:
            result.findings.append(f"{where}: {error}")
        missing = len(gone) - deleted
        result.deleted_by_clean_up += deleted
        result.missing += missing
        if missing:
            of = f"{missing:,} of {len(gone):,} gone sources were" if deleted else f"{missing:,}"
            result.missing_in.append(
                f"{where}: {of} not deleted by clean-up, and missing, such as {gone[0]}"
            )


def _row_of(again: Again) -> ManifestRow:
    """What came again is to have the bytes that the manifest of an earlier commit names."""
    return ManifestRow(again.source, 0, 0, again.plain_bytes, again.crc32, None)


def _stored(body: SourceBody) -> Iterator[bytes]:
    if body.content is not None:
        return iter((body.content,))
    if body.chunks is None:
        raise AssertionError(f"the store gave no content for {body.source.key}")
    return body.chunks()


def _fault(row: ManifestRow, body: SourceBody, settings: Settings) -> str:
    """How the bytes differ from the manifest row; empty when they do not.

    Raises:
        UnreadableSource: they cannot be read, for no fault of theirs.
    """
    try:
        content = plain.read(body, settings)
        for _ in content.chunks():
            continue
    except UnreadableSource as error:
        if error.reason in PASSING_REASONS:
            raise
        return f"its manifest has {row.plain_bytes} bytes, but now: {error}"
    if (content.size, content.crc32) == (row.plain_bytes, row.crc32):
        return ""
    return (
        f"{content.size} bytes with CRC32 {content.crc32}, but its manifest has"
        f" {row.plain_bytes} bytes with CRC32 {row.crc32}"
    )
