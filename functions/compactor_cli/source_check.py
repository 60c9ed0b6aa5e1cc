"""Checks the sources of commits: reads each and compares it with the manifest."""

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
from compactor.model import PASSING_REASONS, QuarantineReason, SourceObject
from compactor.outputs import plain_content as plain
from compactor.outputs import slices
from compactor.ports import ObjectStore, SourceBody
from compactor.settings.settings import Settings

_CONCURRENT_HEADS = 16


class Became(StrEnum):
    """The state of one source; except ``GONE``, names of counts in :class:`SourceCheck`."""

    EQUAL = "equal"
    CHANGED = "changed"
    GONE = "gone"
    ARCHIVED = "archived"
    DENIED = "denied"
    NOT_COMPARED = "not_compared"
    DIFFERS = "differs"


@dataclass(slots=True)
class SourceCheck:
    """The state of the sources of commits. Every source is in exactly one of the counts.

    Attributes:
        equal: unchanged, with the bytes in the manifest.
        changed: replaced by another object of the same key.
        deleted_by_clean_up: deleted, according to a record or receipt of clean-up.
        missing: deleted without a record of clean-up: by another writer, or by a clean-up that was
            killed before it wrote its record.
        archived: exists, but must be restored by S3 before it can be read.
        denied: exists, but reading it or using its key is not allowed.
        not_compared: exists and was read, but there is nothing to compare with: the manifest has
            no checksum, and the output has only its rows, or a copy that cannot be read.
        differs: has the same ETag, but other bytes.
        not_read: one line per source that is archived, denied or not compared.
        findings: one line per source that differs, and per damaged record of clean-up.
        missing_in: one line per commit with missing sources.
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
        """Add the counts of another check."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def count(self, became: Became, key: str, why: str) -> None:
        """Count a source that exists; ``why`` has details."""
        setattr(self, became, getattr(self, became) + 1)
        if became is Became.DIFFERS:
            self.findings.append(f"source {key}: {why}")
        elif why:
            self.not_read.append(f"source {key}: not read: {why}")


class Sources:
    """Checks the sources of commits; thread-safe.

    Args:
        settings: of the runs that compacted them.
        store: where they and the state are.
    """

    def __init__(self, settings: Settings, store: ObjectStore) -> None:
        self._settings = settings
        self._store = store
        self._deletions = Deletions(settings, store)

    def check(self, commit: Commit, log: StoredLog) -> SourceCheck:
        """Check every source of a commit against its ETag at that time.

        Sources with bytes are read; for empty ones, HEAD suffices.

        Args:
            commit: whose sources.
            log: its log, which says what clean-up has deleted.

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
        filled = [row for row in commit.rows if row.source.size]
        bodies = self._store.read_sources(row.source for row in filled)
        for row, body in zip(filled, bodies, strict=True):
            yield (row.source, *self._compared(row, body, commit))
        # The store returns empty sources without a request, so they are not checked yet.
        empty = [row.source for row in commit.rows if not row.source.size]
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
        """Compare a source whose manifest has no checksum with its ETag, or with its copy."""
        # An ETag is an identifier here, not a defence against an attacker.
        md5 = hashlib.md5(usedforsecurity=False)
        crc32 = 0
        for piece in _stored(body):
            md5.update(piece)
            crc32 = zlib.crc32(piece, crc32)
        if not slices.is_unproven(row, commit):
            return _compare_sum(row, md5.hexdigest())
        try:
            copied = self._crc32_of_copy(commit)
        except (IntegrityError, ObjectArchived, ObjectMissing) as error:
            return Became.NOT_COMPARED, f"nothing to compare it with: {error}"
        if copied != crc32:
            return Became.DIFFERS, f"CRC32 {crc32}, but its copy in the output has {copied}"
        return Became.EQUAL, ""

    def _crc32_of_copy(self, commit: Commit) -> int:
        """Return the CRC32 of an output that S3 copied from the commit's one source."""
        output = commit.output
        if output is None or not output.copied:
            raise IntegrityError(f"commit {commit.sequence} does not say where its copy is")
        crc32 = 0
        for piece in self._store.open(output.bucket, output.key):
            crc32 = zlib.crc32(piece, crc32)
        return crc32

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
            result.missing_in.append(
                f"{where}: {missing:,} missing and not deleted by clean-up, such as {gone[0]}"
            )


def _compare_sum(row: ManifestRow, md5: str) -> tuple[Became, str]:
    etag = row.source.etag
    if md5 == etag:
        return Became.EQUAL, ""
    if slices.is_as_stored(row):
        return Became.DIFFERS, f"its bytes do not have the MD5 sum {etag}, which is its ETag"
    return Became.NOT_COMPARED, "the output has its rows, and its ETag is not its MD5 sum"


def _stored(body: SourceBody) -> Iterator[bytes]:
    if body.content is not None:
        return iter((body.content,))
    if body.chunks is None:
        raise AssertionError(f"the store returned no content for {body.source.key}")
    return body.chunks()


def _fault(row: ManifestRow, body: SourceBody, settings: Settings) -> str:
    """Return how the bytes differ from the manifest row; empty if they do not.

    Raises:
        UnreadableSource: they cannot be read now, but may be readable later.
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
