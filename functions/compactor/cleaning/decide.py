"""Decides what clean-up may delete: the sources of commits past retention, and nothing else.

Decisions depend on the log and the clocks; in between, :mod:`.output_proof` proves that an output
is what its commit says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import floor, isfinite

from compactor.cleaning.clean_up_records import CleanUpRecord, check_record
from compactor.formats import spec_of
from compactor.log.entries import Commit, same_log
from compactor.log.log_reader import StoredLog, every_entry
from compactor.log.numbered import require_unbroken
from compactor.model import SourceObject
from compactor.ports import ObjectHead, ObjectStore, Refused
from compactor.settings.settings import Settings
from compactor.settings.uris import SourceLocation
from compactor.settings.windows import matches

# Part of every key that CloudTrail writes.
_CLOUDTRAIL = "/CloudTrail/"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept about a log entry that clean-up has not finished.

    Attributes:
        valid: no later entry replaces it.
        upload_id: of its output; empty if it has no output.
        readable_since: when a checkpoint first said that its output can be read, by the store's
            clock; UNIX seconds.
    """

    sequence: int
    commit_id: str
    valid: bool
    upload_id: str
    readable_since: float


@dataclass(frozen=True, slots=True)
class Deleted:
    """The outcome of deleting the sources of one commit.

    Attributes:
        gone: sources that no longer exist.
        left: sources that the store did not delete; they may be tried again.
        changed: sources whose key holds another object.
        absent: keys of sources that were already gone.
    """

    gone: tuple[SourceObject, ...] = ()
    left: tuple[Refused, ...] = ()
    changed: tuple[Refused, ...] = ()
    markers: int = 0
    absent: frozenset[str] = frozenset()

    @property
    def ours(self) -> tuple[SourceObject, ...]:
        """Sources that this clean-up deleted, rather than an earlier one."""
        return tuple(source for source in self.gone if source.key not in self.absent)

    @property
    def bytes(self) -> int:
        """Total size of the sources that are gone, in bytes."""
        return sum(source.size for source in self.gone)


@dataclass(frozen=True, slots=True)
class Survey:
    """What a log says before anything is deleted.

    Attributes:
        entries: those that clean-up has not finished, oldest first.
        log_id: the identity that the entries name; empty if there are no entries.
    """

    entries: tuple[Entry, ...] = ()
    log_id: str = ""


def survey(log: StoredLog, store: ObjectStore) -> Survey:
    """Read all entries of a log that matter, before anything is deleted.

    Entries older than the first unfinished one say nothing about later ones, and are not read. One
    full commit is in memory at a time.

    Raises:
        IntegrityError: an entry is damaged, missing or of another log, or a record is about another
            commit.
    """
    todo = set(log.uncleaned)
    if not todo:
        return Survey()
    require_unbroken(log.where, log.entries, log.checkpoints)
    since = log.readable_since
    first = min(todo)
    keys = {sequence: log.key_of(sequence) for sequence in log.entries if sequence >= first}
    entries: list[Entry] = []
    commits: list[Commit] = []
    for commit, valid in every_entry(store, log.state.bucket, keys):
        commits.append(replace(commit, rows=(), quarantined=()))
        if commit.sequence in todo:
            entries.append(_entry(commit, since[commit.sequence], valid=valid))
        else:
            key = log.record_key_of(commit.sequence)
            check_record(store, log.state.bucket, key, commit.commit_id)
    log_id = ""
    for commit in reversed(commits):
        log_id = same_log(log_id, commit)
    return Survey(tuple(reversed(entries)), log_id)


def _entry(commit: Commit, readable_since: float, *, valid: bool) -> Entry:
    upload_id = commit.output.upload_id if commit.output is not None else ""
    return Entry(commit.sequence, commit.commit_id, valid, upload_id, readable_since)


def may_be_due(entry: Entry, settings: Settings, now: float) -> bool:
    """Return True if clean-up is on and retention has passed by our own clock."""
    return settings.deletes and has_passed(entry.readable_since, settings, now)


def earlier_clock(head: ObjectHead, now: float) -> float:
    """Return the earlier of our time and the store's: either clock may have jumped.

    Args:
        head: a response of the store, which contains its time.
        now: by our clock; all in UNIX seconds.
    """
    return now if head.answered_at is None else min(now, head.answered_at)


def has_passed(since: float, settings: Settings, at: float) -> bool:
    """Return True if sources have been kept long enough since then; UNIX seconds."""
    # The store has whole seconds: without retention, a checkpoint of this second would count as
    # too young.
    return isfinite(since) and at - floor(since) >= settings.retention_seconds


def own_sources(commit: Commit, source: SourceLocation) -> tuple[SourceObject, ...]:
    """Return the sources of a commit that lie in this source.

    Runs over other sources, which may have to be kept, can share a destination.
    """
    return tuple(compacted for compacted in commit.sources if lies_in(compacted, source))


def lies_in(compacted: SourceObject, source: SourceLocation) -> bool:
    """Return True if an object lies below a prefix that the source's URI matches."""
    root, pattern = source.root, source.pattern
    if compacted.bucket != root.bucket or not compacted.key.startswith(root.prefix):
        return False
    segments = compacted.key[len(root.prefix) :].split("/")
    # The last segment is the object's own name, which the pattern does not cover.
    return len(segments) > len(pattern) and all(map(matches, pattern, segments))


def is_cloudtrail(commit: Commit) -> bool:
    """Return True if ``aws cloudtrail validate-logs`` needs the sources."""
    output = commit.output
    if output is not None and output.format is not None and spec_of(output.format).validated:
        return True
    return any(_CLOUDTRAIL in compacted.key for compacted in commit.sources[:1])


def delete(sources: Sequence[SourceObject], store: ObjectStore) -> Deleted:
    """Delete exactly these sources, by key and ETag, each only if it is what was compacted."""
    deletion = store.delete_sources(sources)
    refused = {refusal.key for refusal in deletion.refused}
    return Deleted(
        gone=tuple(source for source in sources if source.key not in refused),
        left=tuple(refusal for refusal in deletion.refused if not refusal.final),
        changed=tuple(refusal for refusal in deletion.refused if refusal.final),
        markers=deletion.markers,
        absent=deletion.absent,
    )


def record_of(commit: Commit, deleted: Deleted, run_id: str, now: float) -> CleanUpRecord:
    """Return the record of a finished commit, which prevents it from being tried again."""
    return CleanUpRecord(
        commit_id=commit.commit_id,
        run_id=run_id,
        at=now,
        deleted=len(deleted.gone),
        deleted_bytes=deleted.bytes,
        markers=deleted.markers,
        changed=len(deleted.changed),
    )
