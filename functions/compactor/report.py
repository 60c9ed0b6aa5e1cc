"""Report: one account of a run, from what its partitions left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import msgspec

from compactor import layout, receipts
from compactor.errors import ObjectMissing
from compactor.model import Partition, Skipped, SkipReason
from compactor.ports import ObjectStore
from compactor.receipts import Counts, Receipt
from compactor.report_html import render
from compactor.settings import Settings

_READERS = 16
_SHOWN_CAUSES = 3


class DiscoveryLine(msgspec.Struct, frozen=True):
    """What discovery saw beside the work items."""

    unpartitioned: Skipped


class WorkLine(msgspec.Struct, frozen=True):
    """One work item as discovery wrote it."""

    path: str
    bucket: str
    prefix: str
    objects: int
    bytes: int


@dataclass(slots=True)
class RunReport:
    """One run's numbers.

    Attributes:
        status: ``succeeded``, or ``failed`` when any partition failed or was lost.
        partitions: a receipt for every work item, failed ones included.
        oversized: paths of the partitions too large for one worker, left alone.
        totals: sums over all partitions.
        failure: what ended the workflow before its partitions did, if anything.
    """

    run_id: str
    status: str
    started_at: str
    settings: dict[str, Any]
    totals: Counts
    partitions: list[Receipt]
    oversized: list[str] = field(default_factory=list)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    failure: str = ""

    @property
    def failed(self) -> list[Receipt]:
        """Receipts of the partitions that did not finish."""
        return [receipt for receipt in self.partitions if receipt.status != "done"]

    @property
    def cause(self) -> str:
        """Why the run failed, in one line; empty when it did not."""
        causes = [self.failure] if self.failure else []
        causes += [f"{r.path or '(root)'}: {r.error} {r.cause}" for r in self.failed]
        shown = "; ".join(causes[:_SHOWN_CAUSES])
        more = len(causes) - _SHOWN_CAUSES
        return f"{shown}; and {more} more" if more > 0 else shown


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What tells one run from another. ``started_at`` is ISO 8601."""

    run_id: str
    started_at: str
    failure: str = ""


def report(run: RunIdentity, settings: Settings, store: ObjectStore) -> RunReport:
    """Gather the receipts of a run and store ``report.json`` and ``report.html``.

    A work item without a receipt was lost with its worker and counts as failed.
    """
    items = _work(settings, run.run_id, "items.json", store)
    oversized = _work(settings, run.run_id, "oversized.json", store)
    with ThreadPoolExecutor(_READERS) as pool:
        found = list(pool.map(lambda item: _receipt(item, run.run_id, settings, store), items))
    result = RunReport(
        run_id=run.run_id,
        status="failed" if run.failure or any(r.status != "done" for r in found) else "succeeded",
        started_at=run.started_at,
        settings=settings.to_dict(),
        totals=total(receipt.counts for receipt in found),
        partitions=found,
        oversized=[item.path for item in oversized],
        skipped=_all_skips(found, _unpartitioned(settings, run.run_id, store)),
        failure=run.failure,
    )
    _store_report(result, settings, store)
    return result


def total(counts: Iterable[Counts]) -> Counts:
    """Sums, field by field; ``seconds`` adds up the work of all workers."""
    result = Counts()
    requests: Counter[str] = Counter()
    for one in counts:
        requests.update(one.requests)
        for name in Counts.__slots__:
            if name != "requests":
                setattr(result, name, getattr(result, name) + getattr(one, name))
    result.requests = dict(requests)
    return result


def _work(settings: Settings, run_id: str, name: str, store: ObjectStore) -> Sequence[WorkLine]:
    try:
        body = store.get(*layout.run_key(settings, run_id, name))
    except ObjectMissing:
        # Discovery failed before it wrote any.
        return ()
    return msgspec.json.decode(body, type=list[WorkLine])


def _receipt(item: WorkLine, run_id: str, settings: Settings, store: ObjectStore) -> Receipt:
    partition = Partition(item.bucket, item.prefix, item.path)
    try:
        receipt = receipts.decode(store.get(*layout.receipt_key(settings, run_id, partition)))
    except ObjectMissing:
        cause = "no receipt: the worker was lost before it could write one"
        return Receipt(item.path, run_id, "failed", error="WorkerLost", cause=cause)
    if receipt.status == "more":
        receipt.error, receipt.cause = "WorkerLost", "the last receipt says that work was left"
    return receipt


def _unpartitioned(settings: Settings, run_id: str, store: ObjectStore) -> Skipped:
    try:
        body = store.get(*layout.run_key(settings, run_id, "discovery.json"))
    except ObjectMissing:
        return Skipped(0, 0)
    return msgspec.json.decode(body, type=DiscoveryLine).unpartitioned


def _all_skips(found: Iterable[Receipt], unpartitioned: Skipped) -> dict[str, Skipped]:
    skipped = {SkipReason.UNPARTITIONED.value: unpartitioned} if unpartitioned.objects else {}
    for receipt in found:
        for reason, one in receipt.skipped.items():
            skipped[reason] = skipped.get(reason, Skipped(0, 0)).plus(one)
    return skipped


def _store_report(result: RunReport, settings: Settings, store: ObjectStore) -> None:
    document: Mapping[str, Any] = msgspec.to_builtins(result)
    body = msgspec.json.format(msgspec.json.encode(document), indent=2)
    bucket, key = layout.run_key(settings, result.run_id, "report.json")
    store.put(bucket, key, body, content_type="application/json")
    bucket, key = layout.run_key(settings, result.run_id, "report.html")
    store.put(bucket, key, render(document).encode(), content_type="text/html; charset=utf-8")
