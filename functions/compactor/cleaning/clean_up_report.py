"""Clean-up's part of a run's report, from the receipts of its workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from compactor.cleaning import clean_up_receipts
from compactor.cleaning.clean_up_list import DueWork, stream_due
from compactor.cleaning.clean_up_receipts import (
    SHOWN_REFUSALS,
    SUMMED,
    CleanUpReceipt,
    Undeleted,
    add_sums,
)
from compactor.discovery.parallel import Parallel
from compactor.errors import ObjectMissing
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

_READERS = 64
# For each kind of line; further lines are only counted.
_SHOWN_LINES = 1_000


@dataclass(slots=True)
class CleanUpReport:
    """What clean-up did in one run.

    Attributes:
        partitions: number of partitions with commits past retention.
        commits: number of those commits that were finished.
        deleted: sources that are gone; ``deleted_bytes`` is their size.
        changed: sources that stay because their key holds another object.
        refused: sources that the store did not delete.
        markers: deletes that left a noncurrent version, which is still paid for.
        uploads_aborted: orphaned uploads that were aborted.
        requests: by kind.
        unsafe: a line for each commit whose output is not proven; its sources stay.
        refusals: the first of the refused sources.
        warnings: what an operator should know, though nothing failed.
        failures: a line for each partition whose clean-up failed or was lost, and for an error that
            ended clean-up early.
        left_out: number of ``unsafe``, ``warnings`` and ``failures`` lines beyond the first 1,000
            of each.
    """

    partitions: int = 0
    commits: int = 0
    deleted: int = 0
    deleted_bytes: int = 0
    changed: int = 0
    refused: int = 0
    markers: int = 0
    uploads_aborted: int = 0
    requests: dict[str, int] = field(default_factory=dict)
    unsafe: list[str] = field(default_factory=list)
    refusals: list[Undeleted] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    def add_line(self, kind: str, line: str) -> None:
        """Add a line to ``unsafe``, ``warnings`` or ``failures``, or count it."""
        lines: list[str] = getattr(self, kind)
        if len(lines) < _SHOWN_LINES:
            lines.append(line)
        else:
            self.left_out[kind] = self.left_out.get(kind, 0) + 1

    @property
    def causes(self) -> list[str]:
        """Why the run cannot count as succeeded; refused sources are not a reason."""
        return [*self.failures, *self.unsafe]

    @property
    def more_causes(self) -> int:
        """Number of causes that are counted instead of shown."""
        return self.left_out.get("failures", 0) + self.left_out.get("unsafe", 0)

    @property
    def totals(self) -> dict[str, int]:
        """All counts, including the number of lines of each kind."""
        numbers = {name: getattr(self, name) for name in ("partitions", *SUMMED)}
        lines = ("unsafe", "warnings", "failures")
        further = self.left_out
        return {**numbers, **{n: len(getattr(self, n)) + further.get(n, 0) for n in lines}}


def report_clean_up(
    settings: Settings,
    run_id: str,
    failure: str,
    store: ObjectStore,
    *,
    before: CleanUpReport | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[CleanUpReport | None, bool]:
    """Gather the receipts of a run's clean-up.

    Args:
        settings: the run's settings.
        run_id: id of the run.
        failure: the error that ended clean-up early, or empty.
        store: the store that holds the receipts.
        before: what an earlier call gathered.
        stop: called after each partition; returns True to end this call there.

    Returns:
        The report so far (None if the run has no clean-up), and whether it is complete.

    Raises:
        InvalidInput: the list of due partitions is damaged.
    """
    if not settings.deletes:
        return None, True
    result = before or CleanUpReport(failures=[failure] if failure else [])
    try:
        for work, receipt in _receipts(settings, run_id, store, result.partitions):
            result.partitions += 1
            if receipt is not None:
                _add(result, receipt)
            elif not failure:
                lost = "WorkerLost no receipt: the worker was lost before it could write one"
                result.add_line("failures", f"{_name(work.path)}: {lost}")
            if stop():
                return result, False
    except ObjectMissing:
        # The workflow continues without clean-up only after another failure.
        result.failures = result.failures or ["it did not begin"]
    return result, True


def _receipts(
    settings: Settings, run_id: str, store: ObjectStore, start: int
) -> Iterator[tuple[DueWork, CleanUpReceipt | None]]:
    """Yield each due partition with its receipt, in order, from index ``start`` on."""

    def one(work: DueWork) -> tuple[DueWork, CleanUpReceipt | None]:
        return work, _receipt(work, settings, run_id, store)

    with Parallel(_READERS) as parallel:
        due = stream_due(store, *settings.layout.clean_up_list(run_id))
        yield from parallel.in_order(one, islice(due, start, None))


def _receipt(
    work: DueWork, settings: Settings, run_id: str, store: ObjectStore
) -> CleanUpReceipt | None:
    bucket, key = settings.layout.clean_up_receipt(run_id, settings.partition_at(work.path))
    try:
        body = store.get(bucket, key)
    except ObjectMissing:
        return None
    return clean_up_receipts.decode(body, f"s3://{bucket}/{key}")


def _add(result: CleanUpReport, receipt: CleanUpReceipt) -> None:
    add_sums(result, receipt.counts)
    result.requests = dict(Counter(result.requests) + Counter(receipt.counts.requests))
    for kind, lines in (("unsafe", receipt.unsafe), ("warnings", receipt.warnings)):
        for line in lines:
            result.add_line(kind, line)
    result.refusals += receipt.refusals[: SHOWN_REFUSALS - len(result.refusals)]
    if receipt.status == "more":
        receipt.error = "WorkerLost"
        receipt.cause = "the last receipt says that commits were left"
    if receipt.status != "done":
        result.add_line("failures", f"{_name(receipt.path)}: {receipt.error} {receipt.cause}")


def _name(path: str) -> str:
    return path or "(root)"
