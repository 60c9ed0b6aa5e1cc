"""The receipt of one partition in one run: what its calls did, and where the next one begins.

What was compacted is counted from the commit log, so that commits of a call that died later are
included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from compactor.decoding import decoder, require_version
from compactor.documents import leave_document
from compactor.errors import ObjectMissing
from compactor.log.counts import LeftAlone, SizeCounts, added_up
from compactor.log.entries import NOTHING
from compactor.log.state import SHOWN_QUARANTINED, LogState, QuarantineLine, RunTotals
from compactor.model import Partition, Skipped, SkipReason, add_skipped
from compactor.partition.inputs import PartitionRun
from compactor.ports import ObjectStore
from compactor.readers.outcome import Outcome
from compactor.settings.settings import Settings

RECEIPT_VERSION = 1


@dataclass(slots=True)
class Counts:
    """Counts of one partition in one run; bytes and seconds where the names say so.

    ``records`` excludes the records of server-side copies, which are not counted, and
    ``dead_letters``, which fit no row of a Parquet output. ``gb_seconds`` and ``invocations`` are
    those of Lambda functions, divided among the partitions of a batch. ``covered`` has objects and
    bytes of the sources that were compacted or left alone for their content, by the number of the
    declaration in ``formats`` that covers them, from 1; 0 for none.
    """

    objects_in: int = 0
    bytes_in: int = 0
    objects_out: int = 0
    bytes_out: int = 0
    records: int = 0
    copied: int = 0
    dead_letters: int = 0
    quarantined: int = 0
    conflicts: int = 0
    changed: int = 0
    repaired: int = 0
    marked: int = 0
    calls: int = 0
    seconds: float = 0.0
    requests: dict[str, int] = field(default_factory=dict)
    gb_seconds: float = 0.0
    invocations: float = 0.0
    covered: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cursor:
    """The window at which the next call begins, and what the run left alone before it.

    Sources that arrive, change or become available before it later are left to the next run.

    Attributes:
        after: the key after which that window begins; empty for the start of the partition.
        skipped: objects not compacted, by reason.
        unread: sources that could not be read now, by reason.
        lines: the first of these.
        committed, quarantined: what the run had committed and quarantined when it came here. What
            it committed since lies in that window or after it, and is listed again.
    """

    after: str = ""
    skipped: Mapping[str, Skipped] = field(default_factory=dict)
    unread: Mapping[str, LeftAlone] = field(default_factory=dict)
    lines: list[QuarantineLine] = field(default_factory=list)
    committed: Skipped = NOTHING
    quarantined: Skipped = NOTHING


@dataclass(slots=True)
class Receipt:
    """What one run did in one partition.

    Attributes:
        status: ``done``, ``more`` (time ran out) or ``failed``.
        error, cause: class name and text of the error that ended a failed partition.
        left_alone: the quarantined sources, by reason.
        skipped: objects not compacted, by reason, as they were when they were listed first.
        cursor: where the next call begins, if one is needed.
        shown: what the readers' table shows of the partition; None if the settings name no table.
        sizes: sizes of the objects that the run compacted, and of its outputs.
        dead_letters: the prefix with the dead-letter records; empty if the run has none here.
        oversized: a worker left the rest to Spark, as there is more than one worker takes.
        by_spark: Spark wrote it.
    """

    path: str
    run_id: str
    status: str
    counts: Counts = field(default_factory=Counts)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    quarantined: list[QuarantineLine] = field(default_factory=list)
    left_alone: dict[str, LeftAlone] = field(default_factory=dict)
    error: str = ""
    cause: str = ""
    cursor: Cursor = field(default_factory=Cursor)
    shown: Outcome | None = None
    sizes: SizeCounts = field(default_factory=SizeCounts)
    dead_letters: str = ""
    oversized: bool = False
    by_spark: bool = False

    def skip(self, reason: SkipReason, more: Skipped) -> None:
        """Add to the skipped objects of a reason."""
        add_skipped(self.skipped, {reason.value: more})
        if not (self.skipped[reason].objects or self.skipped[reason].bytes):
            del self.skipped[reason]

    def fail(self, error: str, cause: str) -> None:
        """Record the class name and text of the error that ended the call."""
        self.status, self.error, self.cause = "failed", error, cause


_decode = decoder(Receipt)


class ReceiptWriter:
    """Completes and writes the receipt of one call, on success or failure.

    Args:
        run: the run's input. Requests that its store makes from now on count for the call.
        earlier: counts of the earlier calls for this partition in this run; modified in place.

    Attributes:
        receipt: the receipt; it begins where that of the previous call ended.
    """

    def __init__(self, run: PartitionRun, earlier: Counts) -> None:
        self._run = run
        self._started = run.clock.now()
        self._requests_before = Counter(run.store.requests.snapshot())
        self.receipt = Receipt(run.partition.path, run.run_id, "failed", earlier)
        # A listing made before the run costs no LIST, and names only pending objects.
        if earlier.calls and run.listing is None:
            before = read(run.settings, run.run_id, run.partition, run.store)
            if before is not None:
                self.receipt.cursor = before.cursor
                self.receipt.skipped = dict(before.cursor.skipped)
                self.receipt.quarantined = list(before.cursor.lines)

    def close(
        self,
        state: LogState | None,
        *,
        seconds: float | None = None,
        requests: Mapping[str, int] | None = None,
    ) -> None:
        """Add this run's commits, from the log, and the call's time and requests.

        Args:
            state: the log; None if it could not be loaded.
            seconds: working time of other processes, instead of that of this one.
            requests: additional requests of other processes.
        """
        run, receipt, counts = self._run, self.receipt, self.receipt.counts
        if state is not None:
            count_commits(receipt, state.totals(run.run_id))
            if counts.dead_letters:
                bucket, prefix = run.settings.layout.dead_letters(run.partition.path)
                receipt.dead_letters = f"s3://{bucket}/{prefix}"
        made_here = Counter(run.store.requests.snapshot()) - self._requests_before
        add_requests(counts, made_here + Counter(requests or {}))
        if seconds is None:
            seconds = run.clock.now() - self._started
            counts.gb_seconds += seconds * run.paid.memory_gb
            counts.invocations += run.paid.share
        counts.seconds += seconds
        counts.calls += 1
        # What this run committed, and somebody deleted before it was listed again.
        receipt.skipped = {
            why: skipped for why, skipped in receipt.skipped.items() if skipped.objects > 0
        }
        if receipt.status == "done":
            receipt.cursor = Cursor()

    def write(self) -> None:
        """Store the receipt, replacing that of an earlier call of the same run."""
        run = self._run
        write(self.receipt, run.settings, run.partition, run.store)


def count_commits(receipt: Receipt, totals: RunTotals) -> None:
    """Add what this run committed to the sources that it could not read."""
    counts = receipt.counts
    counts.objects_in, counts.bytes_in = totals.sources, totals.source_bytes
    counts.objects_out, counts.bytes_out = totals.outputs, totals.output_bytes
    counts.records, counts.copied = totals.records, totals.copied
    counts.dead_letters = totals.dead_letters
    counts.covered = totals.covered | _undeclared(totals)
    unread = sum(tally.objects for tally in receipt.left_alone.values())
    counts.quarantined = totals.quarantined + unread
    receipt.quarantined = (totals.lines + receipt.quarantined)[:SHOWN_QUARANTINED]
    receipt.left_alone = added_up([totals.left_alone, receipt.left_alone])
    receipt.sizes = totals.sizes


def _undeclared(totals: RunTotals) -> dict[str, tuple[int, int]]:
    objects = totals.sources + totals.quarantined - sum(n for n, _ in totals.covered.values())
    size = totals.source_bytes + totals.quarantined_bytes
    size -= sum(size for _, size in totals.covered.values())
    return {"0": (objects, size)} if objects else {}


def add_covered(total: dict[str, tuple[int, int]], more: Mapping[str, tuple[int, int]]) -> None:
    """Add objects and bytes by declaration."""
    for number, (objects, size) in more.items():
        objects_before, size_before = total.get(number, (0, 0))
        total[number] = (objects_before + objects, size_before + size)


def add_requests(counts: Counts, requests: Mapping[str, int]) -> None:
    """Add the requests of another call."""
    counts.requests = dict(Counter(counts.requests) + Counter(dict(requests)))


def write(receipt: Receipt, settings: Settings, partition: Partition, store: ObjectStore) -> None:
    """Store a receipt, replacing that of an earlier call of the same run."""
    place = settings.layout.receipt(receipt.run_id, partition)
    leave_document(store, place, receipt, RECEIPT_VERSION)


def read(
    settings: Settings, run_id: str, partition: Partition, store: ObjectStore
) -> Receipt | None:
    """Return the receipt of this run's previous call; None if there is no receipt yet.

    Raises:
        IntegrityError: see :func:`decode`.
    """
    bucket, key = settings.layout.receipt(run_id, partition)
    try:
        return decode(store.get(bucket, key), f"s3://{bucket}/{key}")
    except ObjectMissing:
        return None


def decode(body: bytes, where: str = "a receipt") -> Receipt:
    """Decode a stored receipt.

    Raises:
        IntegrityError: a later version of this program wrote it, in a format unknown here.
    """
    require_version(where, body, RECEIPT_VERSION)
    return _decode(body)


def counts_from(document: Mapping[str, Any] | None) -> Counts:
    """Return the counts of earlier calls from the state machine's input; zeros without any."""
    return msgspec.convert(document, Counts) if document else Counts()
