"""Report: one account of a run, from what its partitions left behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any

import msgspec

from compactor import layout
from compactor.cleaning.report import CleanUpReport, report_clean_up
from compactor.clock import NoDeadline
from compactor.decoding import decoder, numbered
from compactor.discovery.parallel import Parallel
from compactor.discovery.work import WorkItem, elements_of, require_known_run
from compactor.errors import ObjectMissing
from compactor.log.at_rest import NOBODY, Resting
from compactor.log.entries import NOTHING
from compactor.log.left_alone import LeftAlone, headline
from compactor.model import Skipped, SkipReason
from compactor.ports import Deadline, ObjectStore
from compactor.report.gathered import Gathered, add_counts
from compactor.report.html import human_bytes, render
from compactor.report.shown import Shown
from compactor.report.so_far import SoFar, Time, read_so_far, write_so_far
from compactor.runs import receipts
from compactor.runs.receipts import Counts, Receipt
from compactor.settings.settings import Settings
from compactor.tables.receipts import TableReceipt, read_receipt

REPORT_VERSION = 1
# Each waits for one receipt; reading 64 at once leaves a processor no time to wait.
_READERS = 64
_SHOWN_CAUSES = 3
#: The error of a partition whose worker ended without a word.
LOST = "WorkerLost"
SPARK_ERROR_NAME = "spark-error.json"
# Where EMR (cluster, step) and EMR Serverless (job run) put the reason of a failure.
_REASONS = frozenset({"Reason", "Message", "StateDetails", "errorMessage"})


class DiscoveryLine(msgspec.Struct, frozen=True):
    """What discovery saw beside the work items."""

    unpartitioned: Skipped
    warnings: list[str] = []
    # What earlier versions wrote has none.
    resting: Resting = NOBODY


class SparkErrorLine(msgspec.Struct, frozen=True):
    """What the Spark job says of its own failure, as far as a report tells it."""

    error: str
    cause: str


_decode_discovery, _decode_spark_error = decoder(DiscoveryLine), decoder(SparkErrorLine)
_decode_item = decoder(WorkItem)


@dataclass(slots=True)
class RunReport:
    """One run's numbers.

    Attributes:
        status: ``succeeded``, or ``failed`` when any partition failed or was lost, or clean-up
            failed or found an output that is not proven.
        partitions: a receipt for every work item, failed ones included; of more than
            :data:`compactor.report.gathered.SHOWN_PARTITIONS`, those that failed and the largest.
            Partitions that went to Spark are among them.
        partition_count: how many work items there were.
        failed_count: how many of these failed.
        oversized: paths of the partitions too large for one worker, left alone because the
            run's spark_engine is none.
        spark: paths of the partitions that went to Spark.
        totals: sums over all partitions.
        left_alone: sources left alone for what they hold, by reason, the most frequent first.
        headline: says so where most of the sources were; else empty.
        failure: what ended the workflow before its partitions did, if anything.
        spark_failure: why the Spark job failed, if it did.
        overwritten: objects that were compacted beside other content of the same key.
        clean_up: what clean-up did; None where the settings do not ask for it.
        warnings: what the store does not promise, and what is done instead.
        table: what was brought into the table; None where the settings name none.
        resting: partitions in which discovery saw that nothing is to be done: they have no
            receipt, and what they skip is counted in ``skipped``.
    """

    run_id: str
    status: str
    started_at: str
    settings: dict[str, Any]
    totals: Counts
    partitions: list[Receipt]
    partition_count: int = 0
    failed_count: int = 0
    oversized: list[str] = field(default_factory=list)
    spark: list[str] = field(default_factory=list)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    left_alone: dict[str, LeftAlone] = field(default_factory=dict)
    headline: str = ""
    overwritten: Skipped = NOTHING
    failure: str = ""
    spark_failure: str = ""
    clean_up: CleanUpReport | None = None
    warnings: list[str] = field(default_factory=list)
    table: TableReceipt | None = None
    resting: Resting = NOBODY

    @property
    def looked_at(self) -> int:
        """How many partitions were worked on, or found at rest."""
        return self.partition_count + self.resting.partitions

    @property
    def failed(self) -> list[Receipt]:
        """Receipts of the partitions that did not finish, as far as they are told."""
        return [receipt for receipt in self.partitions if receipt.status != "done"]

    @property
    def cause(self) -> str:
        """Why the run failed, in one line; empty when it did not."""
        causes = [one for one in (self.failure, self.spark_failure) if one]
        # The job's own line tells of its partitions already.
        told = frozenset(self.spark) if self.spark_failure else frozenset()
        failed = [one for one in self.failed if one.path not in told]
        causes += [f"{one.path or '(root)'}: {one.error} {one.cause}" for one in failed]
        causes += [f"table: {line}" for line in self.table.causes] if self.table else []
        causes += [f"clean-up: {line}" for line in self.clean_up.causes] if self.clean_up else []
        shown = "; ".join(causes[:_SHOWN_CAUSES])
        more = len(causes) - _SHOWN_CAUSES + self.failed_count - len(self.failed)
        more += self.clean_up.more_causes if self.clean_up else 0
        return f"{shown}; and {more} more" if more > 0 else shown

    def to_dict(self) -> dict[str, Any]:
        """What ``report.json`` holds."""
        return numbered(self, REPORT_VERSION)

    def __str__(self) -> str:
        """A table with the numbers before and after."""
        return _shown(self).as_text()

    def _repr_html_(self) -> str:
        """The same, as notebooks show it."""
        return _shown(self).as_html()


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What tells one run from another, and how its workflow went.

    Attributes:
        started_at: ISO 8601.
        failure: what ended the workflow before its partitions did; empty for nothing.
        spark_failure: how the state machine tells that the Spark job failed; empty when it did
            not, or when there was none.
        clean_up_failure: what ended clean-up before its partitions did; empty for nothing.
        table_failure: why what is committed could not be brought into the table; empty for nothing.
    """

    run_id: str
    started_at: str
    failure: str = ""
    spark_failure: str = ""
    clean_up_failure: str = ""
    table_failure: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of partitions, by their path, without asking the store.

    Attributes:
        done: receipts that need not be read.
        lost: how the last worker of a partition ended, where it was lost.
    """

    done: Mapping[str, Receipt] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)


def report(
    run: RunIdentity, settings: Settings, store: ObjectStore, known: Known | None = None
) -> RunReport:
    """The report of a run in one go; as :func:`report_on` otherwise.

    Args:
        run: which one.
        settings: of the run.
        store: where the receipts are, and the report goes.
        known: what need not be read, and what nobody wrote; None for nothing.
    """
    made = report_on(run, settings, store, NoDeadline(), known=known)
    if made is None:
        raise AssertionError("a deadline that never comes has come")
    return made


def report_on(
    run: RunIdentity,
    settings: Settings,
    store: ObjectStore,
    deadline: Deadline,
    *,
    goes_on: bool = False,
    known: Known | None = None,
) -> RunReport | None:
    """Gather the receipts of a run and store ``report.json`` and ``report.html``.

    A work item without a receipt was lost with its worker and counts as failed.

    Args:
        run: which one.
        settings: of the run.
        store: where the receipts are, and the report goes.
        deadline: of this call, which reads one receipt in any case.
        goes_on: with what the call before has left, which ran out of time.
        known: what need not be read, and what nobody wrote; None for nothing.

    Returns:
        The report; None where time ran out, and another call is to go on.

    Raises:
        IntegrityError: a later version of this program wrote what the run left.
    """
    before = read_so_far(settings, run.run_id, store) if goes_on else SoFar()
    time = Time(deadline)
    discovered = _discovered(settings, run.run_id, store)
    oversized = tuple(_work(settings, run.run_id, "oversized.json", store))
    left, spark = (oversized, ()) if settings.spark_engine == "none" else ((), oversized)
    items = chain(_work(settings, run.run_id, "items.json", store), spark)
    spark_failure = _spark_failure(run, settings, store)
    known = known or Known()

    def receipt_of(item: WorkItem) -> Receipt:
        receipt = known.done.get(item.path) or _receipt(item, run.run_id, settings, store)
        return _with_ending(receipt, known.lost.get(item.path))

    found = _begun(before, discovered)
    so_far = partial(write_so_far, settings=settings, run_id=run.run_id, store=store)
    with Parallel(_READERS) as parallel:
        for receipt in parallel.in_order(receipt_of, islice(items, found.partitions, None)):
            found.add(receipt)
            if time.worked():
                so_far(SoFar(found.state()))
                return None
    clean_up, is_all = report_clean_up(
        settings,
        run.run_id,
        run.clean_up_failure,
        store,
        before=before.clean_up,
        stop=time.worked,
    )
    if not is_all:
        so_far(SoFar(found.state(), clean_up))
        return None
    result = RunReport(
        run_id=run.run_id,
        status="succeeded",
        started_at=run.started_at,
        settings=settings.to_dict(),
        totals=found.total(),
        partitions=found.shown(),
        partition_count=found.partitions,
        failed_count=found.failed,
        oversized=[item.path for item in left],
        spark=[item.path for item in spark],
        skipped=found.skipped,
        resting=discovered.resting,
        overwritten=found.overwritten,
        failure=run.failure,
        left_alone=found.left_alone,
        spark_failure=spark_failure,
        clean_up=clean_up,
        warnings=discovered.warnings,
        table=_table(settings, run, store),
    )
    result.headline = headline(result.totals.objects_in, result.left_alone, result.skipped)
    if result.cause:
        result.status = "failed"
    _store_report(result, settings, store)
    return result


def _begun(before: SoFar, discovered: DiscoveryLine) -> Gathered:
    """What the calls before gathered, or what is known before any receipt is read."""
    if before.gathered is not None:
        return Gathered.from_state(before.gathered)
    found = Gathered(skipped=dict(discovered.resting.skipped))
    if discovered.unpartitioned.objects:
        found.skipped[SkipReason.UNPARTITIONED.value] = discovered.unpartitioned
    return found


def _table(settings: Settings, run: RunIdentity, store: ObjectStore) -> TableReceipt | None:
    """What the run's publisher left; where it left nothing, that it never came to it."""
    if settings.table is None:
        return None
    found = read_receipt(settings, run.run_id, store)
    if found is None or (run.table_failure and not found.error):
        found = found or TableReceipt(table=settings.table)
        found.status = "failed"
        found.error, _, cause = (run.table_failure or "NotPublished").partition(": ")
        found.cause = cause or "the run ended before anything came into the table"
    return found


def _shown(result: RunReport) -> Shown:
    """A run in numbers, before and after; and a line for whatever it left alone or failed at."""
    totals = result.totals
    ratio = totals.objects_in / totals.objects_out if totals.objects_out else 0.0
    sizes = (totals.bytes_in, totals.bytes_out)
    counts = (totals.objects_in, totals.objects_out)
    averages = [size / max(1, count) for size, count in zip(sizes, counts, strict=True)]
    rows = (
        ("Partitions", f"{result.looked_at + len(result.oversized):,}", ""),
        ("Objects", *(f"{count:,}" for count in counts)),
        ("Bytes", *map(human_bytes, sizes)),
        ("Average size", *map(human_bytes, averages)),
        ("Records", f"{totals.records + totals.rejected:,}", f"{totals.records:,}"),
        ("Compaction ratio", "", f"{ratio:,.1f} : 1" if ratio else "-"),
    )
    lines = [line for line in (result.headline, result.cause) if line]
    if result.resting.partitions:
        lines.append(result.resting.line)
    lines += [f"left alone: {one.objects:,}, {why}" for why, one in sorted(result.skipped.items())]
    lines += [
        f"left alone: {one.objects:,}, {why}, such as {one.example}"
        for why, one in result.left_alone.items()
    ]
    lines += [f"left for Spark: {path or '(root)'}" for path in result.oversized]
    lines += [f"warning: {line}" for line in result.warnings]
    if result.table is not None:
        lines.append(result.table.line)
    if result.clean_up is not None:
        lines.append(f"clean-up: {result.clean_up.deleted:,} sources deleted")
    return Shown(f"Run {result.run_id}: {result.status}", ("", "Before", "After"), rows, lines)


def total(counts: Iterable[Counts]) -> Counts:
    """Sums, field by field; ``seconds`` adds up the work of all workers."""
    result = Counts()
    requests: Counter[str] = Counter()
    for one in counts:
        requests.update(one.requests)
        add_counts(result, one)
    result.requests = dict(requests)
    return result


def failure_text(failure: Mapping[str, Any] | None) -> str:
    """A failure as Step Functions keeps it (``Error``, ``Cause``) in one line; empty for none.

    The cause of an EMR task is the description of its cluster, step or job run; only what it
    says of the failure is told.
    """
    given = failure or {}
    cause = str(given.get("Cause") or "")
    try:
        document = msgspec.json.decode(cause)
    except msgspec.DecodeError:
        document = None
    reasons = dict.fromkeys(_reasons(document))
    texts = [str(given.get("Error") or ""), ", ".join(reasons) or cause]
    return ": ".join(" ".join(text.split()) for text in texts if text)


def _reasons(document: object) -> Iterator[str]:
    """Every text that EMR gives as a reason, wherever in the description it stands."""
    if not isinstance(document, Mapping):
        return
    for name, value in document.items():
        if name in _REASONS and isinstance(value, str):
            yield value
        yield from _reasons(value)


def _spark_failure(run: RunIdentity, settings: Settings, store: ObjectStore) -> str:
    """Why the Spark job failed, by its own word where it left one."""
    if not run.spark_failure:
        return ""
    try:
        body = store.get(*layout.run_key(settings, run.run_id, SPARK_ERROR_NAME))
        line = _decode_spark_error(body)
    except (ObjectMissing, msgspec.MsgspecError):
        # It never began, or was killed: EMR's word, often no more than Unknown Error, is all.
        return f"Spark: {run.spark_failure}"
    return f"Spark: {line.error}: {line.cause}"


def _work(settings: Settings, run_id: str, name: str, store: ObjectStore) -> Iterator[WorkItem]:
    """One after the other; none where discovery failed before it wrote any."""
    with suppress(ObjectMissing):
        for element in elements_of(store, *layout.run_key(settings, run_id, name)):
            yield _decode_item(element)


def _receipt(item: WorkItem, run_id: str, settings: Settings, store: ObjectStore) -> Receipt:
    bucket, key = layout.receipt_key(settings, run_id, item.partition)
    try:
        receipt = receipts.decode(store.get(bucket, key), f"s3://{bucket}/{key}")
    except ObjectMissing:
        cause = "no receipt: the worker was lost before it could write one"
        return Receipt(item.path, run_id, "failed", error=LOST, cause=cause)
    if receipt.status == "more":
        receipt.error, receipt.cause = LOST, "the last receipt says that work was left"
    return receipt


def _with_ending(receipt: Receipt, ending: str | None) -> Receipt:
    """The receipt, and how the worker ended that should have written the last one."""
    if ending is None or receipt.status == "done":
        return receipt
    if receipt.error == LOST:
        receipt.cause += f": {ending}"
    else:
        # What an earlier try wrote is no longer how it ended.
        receipt.error, receipt.cause = LOST, ending
    return receipt


def _discovered(settings: Settings, run_id: str, store: ObjectStore) -> DiscoveryLine:
    body = require_known_run(*layout.run_key(settings, run_id, ""), store)
    return _decode_discovery(body) if body else DiscoveryLine(Skipped(0, 0))


def _store_report(result: RunReport, settings: Settings, store: ObjectStore) -> None:
    document = result.to_dict()
    body = msgspec.json.format(msgspec.json.encode(document), indent=2)
    bucket, key = layout.run_key(settings, result.run_id, "report.json")
    store.put(bucket, key, body, content_type="application/json")
    bucket, key = layout.run_key(settings, result.run_id, "report.html")
    store.put(bucket, key, render(document).encode(), content_type="text/html; charset=utf-8")
