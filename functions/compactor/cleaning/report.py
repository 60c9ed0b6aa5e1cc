"""Clean-up's part of a run's report, from what its workers left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from compactor import layout
from compactor.cleaning import receipts as clean_up_receipts
from compactor.cleaning.receipts import (
    SHOWN_REFUSALS,
    SUMMED,
    CleanUpReceipt,
    Undeleted,
    add_sums,
)
from compactor.cleaning.work import DueWork, partition_at, read_due
from compactor.errors import ObjectMissing
from compactor.ports import ObjectStore
from compactor.settings.settings import CleanUpMode, Settings

_READERS = 16


@dataclass(slots=True)
class CleanUpReport:
    """What clean-up did in one run.

    Attributes:
        partitions: how many have commits past retention.
        commits: how many of those were done with.
        deleted: sources that are gone; ``deleted_bytes`` is their size.
        changed: sources that stay, because another object stands at their key.
        refused: sources that the store did not delete.
        markers: deletes that left a noncurrent version, which is still paid for.
        uploads_aborted: orphans.
        requests: by kind.
        unsafe: a line for each commit whose output is not proven; its sources stay.
        refusals: the first of the refused sources.
        warnings: what somebody should know, though nothing failed.
        failures: a line for each partition whose clean-up failed or was lost, and for what
            ended clean-up before its partitions did.
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

    @property
    def causes(self) -> list[str]:
        """Why the run cannot have succeeded; sources that were refused are no such reason."""
        return [*self.failures, *self.unsafe]

    @property
    def totals(self) -> dict[str, int]:
        """Its numbers, with how many lines of each kind there are."""
        numbers = {name: getattr(self, name) for name in ("partitions", *SUMMED)}
        lines = ("unsafe", "warnings", "failures")
        return {**numbers, **{name: len(getattr(self, name)) for name in lines}}


def report_clean_up(
    settings: Settings, run_id: str, failure: str, store: ObjectStore
) -> CleanUpReport | None:
    """Gather the receipts of a run's clean-up; None where the run has none.

    Args:
        settings: of the run.
        run_id: of the run.
        failure: what ended clean-up before its partitions did; empty for nothing.
        store: where the receipts are.

    Raises:
        InvalidInput: the list of what is due is damaged.
    """
    if settings.clean_up is not CleanUpMode.DELETE:
        return None
    result = CleanUpReport(failures=[failure] if failure else [])
    due = _due(settings, run_id, store)
    if due is None:
        # The workflow goes past clean-up only after a failure of another kind.
        result.failures = result.failures or ["it did not begin"]
        return result
    result.partitions = len(due)
    with ThreadPoolExecutor(_READERS) as pool:
        found = pool.map(lambda work: _receipt(work, settings, run_id, store), due)
        for work, receipt in zip(due, found, strict=True):
            if receipt is not None:
                _add(result, receipt)
            elif not failure:
                lost = "WorkerLost no receipt: the worker was lost before it could write one"
                result.failures.append(f"{_name(work.path)}: {lost}")
    return result


def _due(settings: Settings, run_id: str, store: ObjectStore) -> Sequence[DueWork] | None:
    try:
        body = store.get(*layout.clean_up_list_key(settings, run_id))
    except ObjectMissing:
        return None
    return read_due(body)


def _receipt(
    work: DueWork, settings: Settings, run_id: str, store: ObjectStore
) -> CleanUpReceipt | None:
    bucket, key = layout.clean_up_receipt_key(settings, run_id, partition_at(settings, work.path))
    try:
        body = store.get(bucket, key)
    except ObjectMissing:
        return None
    return clean_up_receipts.decode(body, f"s3://{bucket}/{key}")


def _add(result: CleanUpReport, receipt: CleanUpReceipt) -> None:
    add_sums(result, receipt.counts)
    result.requests = dict(Counter(result.requests) + Counter(receipt.counts.requests))
    result.unsafe += receipt.unsafe
    result.warnings += receipt.warnings
    result.refusals += receipt.refusals[: SHOWN_REFUSALS - len(result.refusals)]
    if receipt.status == "more":
        receipt.error = "WorkerLost"
        receipt.cause = "the last receipt says that commits were left"
    if receipt.status != "done":
        result.failures.append(f"{_name(receipt.path)}: {receipt.error} {receipt.cause}")


def _name(path: str) -> str:
    return path or "(root)"
