"""One partition's clean-up in one worker: the order of its steps.

list the log -> read it -> for each entry past retention: HEAD, prove -> delete -> record
-> abort the uploads that no commit names
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compactor.cleaning import clean_up_receipts
from compactor.cleaning import decide as cleanup
from compactor.cleaning.clean_up_receipts import CleanUpReceipt, waiting_line
from compactor.cleaning.clean_up_records import write_record
from compactor.cleaning.decide import Deleted, Entry
from compactor.cleaning.due import (
    CLOUDTRAIL_WARNING,
    DEAD_LETTER_WARNING,
    CleanUpRun,
    Examined,
    candidates,
    examine,
    with_table,
)
from compactor.cleaning.orphans import find_orphans
from compactor.errors import CompactorError, IntegrityError
from compactor.log.log_reader import StoredLog
from compactor.ports import OpenUpload

__all__ = ["CleanUpRun", "Decision", "Due", "clean_up", "decide", "record_clean_up"]


@dataclass(frozen=True, slots=True)
class Due:
    """One commit whose sources may be deleted."""

    sequence: int
    sources: int
    bytes: int


@dataclass(slots=True)
class Decision:
    """What a clean-up of one partition would do now.

    Attributes:
        due: commits whose sources would be deleted.
        unsafe: one line for each commit whose output could not be proven.
        elsewhere: number of commits whose sources lie in another source.
        waiting: number of commits whose sources query engines may still read; the reason is a
            warning.
        orphans: number of uploads that no commit names, and that would be aborted.
        error: why nothing in the partition would be touched; empty otherwise.
    """

    path: str
    due: list[Due] = field(default_factory=list)
    unsafe: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    elsewhere: int = 0
    waiting: int = 0
    orphans: int = 0
    error: str = ""

    @property
    def only(self) -> frozenset[int]:
        """The ``only`` argument that limits a :class:`CleanUpRun` to these commits."""
        return frozenset(entry.sequence for entry in self.due)


def decide(run: CleanUpRun) -> Decision:
    """Return what a clean-up would do now; reads only.

    Raises:
        TransientStoreError: the store did not answer.
        InvalidInput: access to something is denied.
    """
    decision = Decision(run.path)
    try:
        log = run.list_log()
        entries = run.survey(log).entries
        for entry, table in with_table(run, candidates(run, entries)):
            examined = examine(run, log, entry, table)
            if examined is not None:
                _add(decision, examined)
            run.on_entry()
        _count_orphans(decision, run, log, entries)
    except IntegrityError as error:
        decision.error = str(error)
        decision.due.clear()
    return decision


def _add(decision: Decision, examined: Examined) -> None:
    if examined.fault:
        decision.unsafe.append(examined.fault)
    elif examined.elsewhere:
        decision.elsewhere += 1
    elif examined.waits:
        decision.waiting += 1
        line = waiting_line(examined.waits)
        decision.warnings += [line] if line not in decision.warnings else []
    else:
        # Due even without sources: that nothing is left to delete must still be recorded.
        sequence, count = examined.commit.sequence, len(examined.sources)
        decision.due.append(Due(sequence, count, examined.bytes))
        if count and cleanup.is_cloudtrail(examined.commit) and not decision.warnings:
            decision.warnings.append(CLOUDTRAIL_WARNING)
        if examined.kept and DEAD_LETTER_WARNING not in decision.warnings:
            decision.warnings.append(DEAD_LETTER_WARNING)


def _count_orphans(
    decision: Decision, run: CleanUpRun, log: StoredLog, entries: Sequence[Entry]
) -> None:
    try:
        decision.orphans = sum(1 for _ in _orphans(run, log, entries)) if log.entries else 0
    except CompactorError as error:
        decision.warnings.append(f"uploads that no commit names stay: {error}")


def record_clean_up(run: CleanUpRun, earlier: CleanUpReceipt) -> CleanUpReceipt:
    """Clean up one partition as far as the deadline allows, and write a receipt.

    Args:
        run: the partition and everything its clean-up needs.
        earlier: receipt of earlier calls of the same run; their entries are not examined again.

    Raises:
        Exception: any error that ended it, after the receipt was written.
    """
    receipt = earlier.copy()
    try:
        clean_up(run, receipt)
    except Exception as error:
        receipt.status = "failed"
        receipt.error, receipt.cause = type(error).__name__, str(error)
        raise
    finally:
        clean_up_receipts.write(receipt, run.settings, run.partition, run.store)
    return receipt


def clean_up(run: CleanUpRun, receipt: CleanUpReceipt) -> None:
    """Clean up one partition as far as the deadline allows. Safe to run again, and concurrently.

    If a commit's output cannot be proven, its sources stay and the other commits proceed.

    Args:
        run: the partition and everything its clean-up needs.
        receipt: updated with what was done.

    Raises:
        IntegrityError: the log is damaged, or was changed by hand; nothing more was deleted.
        TransientStoreError: the store did not answer.
    """
    before = Counter(run.store.requests.snapshot())
    receipt.counts.calls += 1
    receipt.status, receipt.error, receipt.cause = "more", "", ""
    try:
        log = run.list_log()
        entries = run.survey(log).entries
        if not log.entries:
            receipt.status = "done"
        elif _go_through(run, receipt, log, entries):
            _abort_orphans(run, receipt, log, entries)
            receipt.status = "done"
    finally:
        receipt.add_requests(Counter(run.store.requests.snapshot()) - before)


def _go_through(
    run: CleanUpRun, receipt: CleanUpReceipt, log: StoredLog, entries: Sequence[Entry]
) -> bool:
    """Process the entries in order; return False if time ran out."""
    # The first entry is always begun, so that every call makes progress.
    needed = 0.0
    for entry, table in with_table(run, candidates(run, entries, receipt.counts.through)):
        if needed and run.deadline.remaining_seconds() < needed:
            return False
        started = run.clock.now()
        examined = examine(run, log, entry, table)
        if examined is not None:
            _carry_out(run, receipt, log, examined)
        receipt.counts.through = entry.sequence
        needed = max(needed, run.reserve_seconds, run.clock.now() - started)
        run.on_entry()
    return True


def _carry_out(run: CleanUpRun, receipt: CleanUpReceipt, log: StoredLog, entry: Examined) -> None:
    if entry.fault or entry.elsewhere or entry.waits:
        _note_kept(receipt, entry)
        return
    commit = entry.commit
    if entry.sources and cleanup.is_cloudtrail(commit):
        receipt.warn(CLOUDTRAIL_WARNING)
    if entry.kept:
        receipt.warn(DEAD_LETTER_WARNING)
    deleted = cleanup.delete(entry.sources, run.store) if entry.sources else Deleted()
    _count(receipt, deleted)
    # The commit may also name another source's objects, whose fate is unknown here.
    ours = len(entry.sources) + entry.kept
    all_ours = not ours or ours == len(commit.sources)
    if all_ours and not deleted.left:
        record = cleanup.record_of(commit, deleted, run.run_id, run.clock.now())
        key = log.record_key_of(commit.sequence)
        is_first = write_record(run.store, log.state.bucket, key, record)
        receipt.counts.commits += bool(entry.sources) and is_first


def _note_kept(receipt: CleanUpReceipt, entry: Examined) -> None:
    """Record why the sources of an entry stay."""
    if entry.fault:
        if entry.fault not in receipt.unsafe:
            receipt.unsafe.append(entry.fault)
    elif entry.waits:
        receipt.warn(waiting_line(entry.waits))


def _count(receipt: CleanUpReceipt, deleted: Deleted) -> None:
    counts = receipt.counts
    counts.deleted += len(deleted.ours)
    counts.deleted_bytes += sum(source.size for source in deleted.ours)
    counts.changed += len(deleted.changed)
    counts.markers += deleted.markers
    receipt.refuse(deleted.left)
    if deleted.markers:
        receipt.warn(
            "the source's bucket is versioned: deleting puts delete markers, and the old versions"
            " stay, and are paid for, until a lifecycle rule expires noncurrent versions"
        )


def _abort_orphans(
    run: CleanUpRun, receipt: CleanUpReceipt, log: StoredLog, entries: Sequence[Entry]
) -> None:
    """Abort the orphans; errors become warnings, because no source depends on uploads."""
    try:
        for upload in list(_orphans(run, log, entries)):
            run.store.abort_upload(run.settings.destination.bucket, upload.key, upload.upload_id)
            receipt.counts.uploads_aborted += 1
    except CompactorError as error:
        receipt.warn(f"uploads that no commit names stay: {error}")


def _orphans(run: CleanUpRun, log: StoredLog, entries: Sequence[Entry]) -> Iterator[OpenUpload]:
    named = {entry.upload_id for entry in entries if entry.valid}
    return find_orphans(run.store, run.destination, named, _earlier_of_both_clocks(run, log))


def _earlier_of_both_clocks(run: CleanUpRun, log: StoredLog) -> float:
    """Return the earlier of our time and the store's, which any HEAD returns; UNIX seconds."""
    now = run.clock.now()
    head = run.store.head(log.state.bucket, log.key_of(max(log.entries)))
    return now if head is None else cleanup.earlier_clock(head, now)
