"""The entries of a partition's commit log, and the outputs that they name."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from dataclasses import dataclass, replace

import msgspec

from compactor.errors import IntegrityError, damaged, require_equal
from compactor.log.manifest import ManifestRow
from compactor.model import (
    Compression,
    Format,
    Quarantined,
    Skipped,
    SourceObject,
    StoredPart,
    TableDialect,
)


class DeadLetters(msgspec.Struct, frozen=True):
    """Location of the records that do not fit the schema, one JSON object per line.

    Besides the sources, this is the only copy of these records, and query engines do not read it.
    ``size`` and ``crc32`` are those of the object as stored.
    """

    bucket: str
    key: str
    size: int
    crc32: int
    records: int


@dataclass(frozen=True, slots=True)
class Columnar:
    """Row counts and hashes of one Parquet output.

    Attributes:
        rows_in: rows, or records, counted in the sources.
        rows_out: rows counted in the output, read back as it was stored.
        hash_in: 16 hex digits, the digest over the rows, in order, before they were written.
        hash_out: the same over the rows read back.
        codec: compression inside the output, such as ``snappy``.
        schema: columns of the output, in Spark's JSON form of a schema.
        dead_letters: the records that did not fit; None if all did.
    """

    rows_in: int
    rows_out: int
    hash_in: str
    hash_out: str
    codec: str
    schema: str
    dead_letters: DeadLetters | None = None

    @property
    def dead(self) -> int:
        """Number of records that are dead-letter records instead of rows."""
        return self.dead_letters.records if self.dead_letters is not None else 0

    @property
    def fault(self) -> str:
        """Why the output cannot replace its sources, in one line; empty if it can."""
        if self.rows_in != self.rows_out + self.dead:
            return f"{self.rows_in} rows in, {self.rows_out} out and {self.dead} that fit no row"
        if self.hash_in != self.hash_out:
            return f"the hash of the rows was {self.hash_in}, and {self.hash_out} when read back"
        return ""


_REMEDY = "bring it back from an earlier version or a backup; who else writes to the destination?"
NOTHING = Skipped(0, 0)
# Runs that may still be in progress when a checkpoint is written.
KEPT_RUNS = 8


@dataclass(frozen=True, slots=True)
class Output:
    """The output that a commit names, with everything needed to publish it.

    ``crc32`` covers the whole object as stored; None if S3 copied it. ``size`` is the stored size
    and ``plain_bytes`` the decompressed size, in bytes. If the output is one ``copied`` source,
    ``plain_bytes`` and ``records`` are None. ``columnar`` is set if the output holds rows:
    its manifest then has no slices, and its sources cannot be restored from it. ``table`` is the
    CSV or TSV dialect, as declared or as decided for the data set.
    """

    bucket: str
    key: str
    upload_id: str
    parts: tuple[StoredPart, ...]
    size: int
    crc32: int | None
    plain_bytes: int | None
    records: int | None
    format: Format | None
    compression: Compression
    copied: bool = False
    columnar: Columnar | None = None
    table: TableDialect | None = None

    @property
    def uri(self) -> str:
        """Its location, for messages."""
        return f"s3://{self.bucket}/{self.key}"

    def require_accounted(self) -> None:
        """Check that each row of a columnar output was accounted for when it was written.

        Raises:
            IntegrityError: one was not.
        """
        if self.columnar is not None:
            if self.columnar.fault:
                raise damaged(self.uri, self.columnar.fault)
            require_equal(f"rows of {self.uri}", self.records, self.columnar.rows_out)


@dataclass(frozen=True, slots=True)
class Commit:
    """One entry of the commit log.

    Attributes:
        sequence: place in the log, from 1.
        commit_id: lets a writer recognise its own entry after a lost response.
        replaces: sequence of an earlier commit that this one makes void.
        decided_by: names the settings under which sources were left alone, as
            :func:`compactor.outputs.detection.decided_by` does; empty if none were.
        output: None when the entry only quarantines sources or voids a commit.
        log_id: identity of the log it was written for; empty in a draft.
        covered: objects and bytes of the compacted sources, and of those left alone for good, by
            the number of the declaration in ``formats`` that covers them, from 1, ascending.
    """

    sequence: int
    commit_id: str
    run_id: str
    created_at: float
    source_bucket: str
    group_id: str
    output: Output | None = None
    rows: tuple[ManifestRow, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    replaces: int | None = None
    log_id: str = ""
    decided_by: str = ""
    covered: tuple[tuple[int, int, int], ...] = ()

    @property
    def dead_letters(self) -> DeadLetters | None:
        """The records of its sources that fit no row of its output, or None."""
        columnar = self.output.columnar if self.output is not None else None
        return columnar.dead_letters if columnar is not None else None

    @property
    def empty(self) -> bool:
        """True if the commit holds nothing worth an entry."""
        return not (self.rows or self.quarantined) and self.replaces is None

    @property
    def sources(self) -> tuple[SourceObject, ...]:
        """The sources that are in its output."""
        return tuple(row.source for row in self.rows)

    def voided(self, run_id: str) -> Commit:
        """Return an entry that voids this commit without a successor."""
        return replace(
            self,
            commit_id=uuid.uuid4().hex,
            run_id=run_id,
            output=None,
            rows=(),
            quarantined=(),
            replaces=self.sequence,
            decided_by="",
            covered=(),
        )


def require_stored(
    where: str, stored: tuple[int, int | None], committed: tuple[int, int | None]
) -> bool:
    """Check that a stored object is the one that its commit names.

    Args:
        where: its URI.
        stored: its size, and its CRC32 if that is available.
        committed: the same of the commit.

    Returns:
        False if there is no CRC32 to compare.

    Raises:
        IntegrityError: the size differs, or the CRC32 does.
    """
    is_proven = None not in (stored[1], committed[1])
    if stored[0] != committed[0] or (is_proven and stored[1] != committed[1]):
        values = "it has {} bytes and CRC32 {}, its commit says {} bytes and CRC32 {}"
        raise damaged(where, values.format(*stored, *committed), _REMEDY)
    return is_proven


def require_proven(
    where: str, stored: tuple[int, int | None], committed: tuple[int, int | None]
) -> None:
    """Check the same, and that there is a CRC32 to compare.

    Raises:
        IntegrityError: the object differs, or nothing proves that it does not.
    """
    if not require_stored(where, stored, committed):
        raise IntegrityError(f"{where}: nothing proves its bytes, for it has no CRC32 to compare")


def require_each_once(draft: Commit) -> None:
    """Check that an entry names each key only once.

    Raises:
        IntegrityError: it names a key twice, whose records would be readable twice.
    """
    sources = (*draft.sources, *(unread.source for unread in draft.quarantined))
    named = Counter((source.bucket, source.key) for source in sources)
    if len(named) < len(sources):
        bucket, key = max(named, key=named.__getitem__)
        raise IntegrityError(f"a commit would name s3://{bucket}/{key} twice: nothing is written")


def output_digest(bucket: str, key: str) -> bytes:
    """Return a 16-byte digest of an output's location, as checkpoints keep it."""
    text = f"{bucket}\0{key}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()


def same_log(log_id: str, commit: Commit) -> str:
    """Return the identity that a log's entries name, through this one.

    Args:
        log_id: what the earlier entries name, or empty.
        commit: the next entry.

    Raises:
        IntegrityError: the entry names another one.
    """
    if log_id and commit.log_id != log_id:
        raise IntegrityError(
            f"entry {commit.sequence} of the commit log names log {commit.log_id}, those before it"
            f" name {log_id}: it was put there by hand"
        )
    return log_id or commit.log_id
