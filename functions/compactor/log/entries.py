"""The entries of a partition's commit log, and the outputs that they name."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from dataclasses import dataclass, replace

from compactor.errors import IntegrityError
from compactor.log.columnar import Columnar, DeadLetters
from compactor.log.manifest import ManifestRow
from compactor.model import (
    Again,
    Compression,
    Format,
    Quarantined,
    Skipped,
    SourceObject,
    StoredPart,
    TableDialect,
)

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
        again: sources whose content an earlier commit holds, and which this one therefore does not
            compact.
        overwritten: the sources of this commit whose key had other content compacted before.
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
    again: tuple[Again, ...] = ()
    overwritten: Skipped = NOTHING

    @classmethod
    def of_returned(cls, again: tuple[Again, ...], run_id: str, now: float, bucket: str) -> Commit:
        """Return an entry that records rewrites of committed sources; ``now`` in UNIX seconds."""
        return cls(0, uuid.uuid4().hex, run_id, now, bucket, group_id="", again=again)

    @property
    def dead_letters(self) -> DeadLetters | None:
        """The records of its sources that fit no row of its output, or None."""
        columnar = self.output.columnar if self.output is not None else None
        return columnar.dead_letters if columnar is not None else None

    @property
    def empty(self) -> bool:
        """True if the commit holds nothing worth an entry."""
        named = self.rows or self.quarantined or self.again
        return not named and self.replaces is None

    @property
    def sources(self) -> tuple[SourceObject, ...]:
        """All sources whose content an output holds: compacted here, or written again."""
        return (*(row.source for row in self.rows), *(one.source for one in self.again))

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
            again=(),
            overwritten=NOTHING,
        )


def require_each_once(draft: Commit) -> None:
    """Check that an entry names each key only once.

    Raises:
        IntegrityError: it names a key twice, whose records would be readable twice.
    """
    sources = (*draft.sources, *(one.source for one in draft.quarantined))
    named = Counter((one.bucket, one.key) for one in sources)
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
