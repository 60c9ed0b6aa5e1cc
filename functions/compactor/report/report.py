"""The report of a run, from the receipts of its partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from compactor.cleaning.clean_up_report import CleanUpReport, report_clean_up
from compactor.clock import NoDeadline
from compactor.decoding import numbered
from compactor.discovery.parallel import Parallel
from compactor.log.counts import LeftAlone, SizeCounts
from compactor.model import Partition, Skipped
from compactor.partition.receipts import Counts, Receipt, add_covered
from compactor.ports import Deadline, ObjectStore
from compactor.readers.outcome import Outcomes
from compactor.report.cost import RunCost, SparkHours, cost_of_run, spark_hours
from compactor.report.reasons import grouped, left_for_content, nothing_to_do
from compactor.report.receipt_totals import Gathered, add_counts
from compactor.report.rendering import Shown
from compactor.report.report_progress import SoFar, Time, read_so_far, write_so_far
from compactor.report.run_history import RunLine, add_run
from compactor.report.run_records import (
    discovered_by,
    partitions_of,
    receipt_of,
    spark_failure,
    with_ending,
)
from compactor.report.text import shown
from compactor.settings.settings import Settings
from compactor.sinks.table_receipts import TableReceipt, read_receipt

REPORT_VERSION = 1
# Each thread waits for one receipt; 64 concurrent reads keep a processor busy.
_READERS = 64
_SHOWN_CAUSES = 3


@dataclass(slots=True)
class RunReport:
    """The figures of one run.

    Attributes:
        status: ``succeeded``; or ``failed`` if any partition failed or was lost, or clean-up failed
            or found an output that is not proven.
        partitions: a receipt for every partition, including failed ones and those that went to
            Spark. If there are more than :data:`.receipt_totals.SHOWN_PARTITIONS`, only failed ones
            and the largest.
        partition_count: number of partitions.
        failed_count: number of these that failed.
        oversized: paths of the partitions with more than one worker takes, whose rest was left
            because the run's spark_engine is none.
        spark: paths of the partitions that went to Spark.
        totals: sums over all partitions.
        left_alone: sources left because of their content, by reason, the most frequent first.
        headline: how many sources were left alone for their content, and why; or why nothing was
            compacted; else empty.
        failure: what ended the workflow before its partitions did, if anything.
        spark_failure: why the Spark job failed, if it did.
        clean_up: what clean-up did; None if the settings do not ask for it.
        warnings: guarantees that the store does not give, and what is done instead.
        table: what was published to the table; None if the settings name none.
        readers: what query engines see of the partitions; None if the settings name no readers'
            table.
        sizes: of what was compacted, before and after.
        dead_letters: the first prefixes with records that fit no row of an output; ``totals``
            counts them.
        cost: what the run cost.
        wall_seconds: from the start of the run to this report; 0 if unknown.
        previous: the runs before it into this destination, oldest first.
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
    failure: str = ""
    spark_failure: str = ""
    clean_up: CleanUpReport | None = None
    warnings: list[str] = field(default_factory=list)
    table: TableReceipt | None = None
    readers: Outcomes | None = None
    sizes: SizeCounts = field(default_factory=SizeCounts)
    cost: RunCost | None = None
    dead_letters: list[str] = field(default_factory=list)
    wall_seconds: float = 0.0
    previous: list[RunLine] = field(default_factory=list)

    @property
    def failed(self) -> list[Receipt]:
        """Receipts of the partitions that did not finish, as far as they are shown."""
        return [receipt for receipt in self.partitions if receipt.status != "done"]

    @property
    def cause(self) -> str:
        """Why the run failed, in one line; empty if it did not."""
        causes = [one for one in (self.failure, self.spark_failure) if one]
        # The job's own line already covers its partitions.
        covered = frozenset(self.spark) if self.spark_failure else frozenset()
        failed = [one for one in self.failed if one.path not in covered]
        causes += grouped((one.path, f"{one.error} {one.cause}") for one in failed)
        causes += [f"table: {line}" for line in self.table.causes] if self.table else []
        causes += [f"clean-up: {line}" for line in self.clean_up.causes] if self.clean_up else []
        shown = "; ".join(causes[:_SHOWN_CAUSES])
        more = max(0, len(causes) - _SHOWN_CAUSES) + self.failed_count - len(self.failed)
        more += self.clean_up.more_causes if self.clean_up else 0
        return f"{shown}; and {more} more" if more > 0 else shown

    def to_dict(self) -> dict[str, Any]:
        """Return the content of ``report.json``."""
        return numbered(self, REPORT_VERSION)

    def __str__(self) -> str:
        """Return a table with the numbers before and after."""
        return self._shown().as_text()

    def _repr_html_(self) -> str:
        """Return the same table for notebooks."""
        return self._shown().as_html()

    def _shown(self) -> Shown:
        table = shown(self.to_dict(), self.wall_seconds)
        return replace(table, lines=[*filter(None, [self.cause]), *table.lines])


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What identifies a run, and how its workflow ended.

    Attributes:
        started_at: ISO 8601.
        failure: what ended the workflow before its partitions did; else empty.
        spark_failure: the state machine's message that the Spark job failed; empty if it did not,
            or there was no job.
        clean_up_failure: what ended clean-up before its partitions did; else empty.
        table_failure: why committed outputs could not be published to the table; else empty.
        ended_at: UNIX seconds; None if unknown, then the run is not in the history.
    """

    run_id: str
    started_at: str
    failure: str = ""
    spark_failure: str = ""
    clean_up_failure: str = ""
    table_failure: str = ""
    ended_at: float | None = None

    @property
    def wall_seconds(self) -> float:
        """Time from its start to its end, never below 0; 0 if unknown."""
        try:
            began = datetime.fromisoformat(self.started_at).timestamp()
        except ValueError:
            return 0.0
        return 0.0 if self.ended_at is None else round(max(0.0, self.ended_at - began), 2)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known about partitions, by path, without reading the store.

    Attributes:
        done: receipts that need not be read.
        lost: how the last worker of a partition ended, if it was lost.
    """

    done: Mapping[str, Receipt] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)


def report(
    run: RunIdentity, settings: Settings, store: ObjectStore, known: Known | None = None
) -> RunReport:
    """Return the report of a run in one call; otherwise like :func:`report_on`.

    Args:
        run: the run.
        settings: of the run.
        store: where the receipts are, and the report is stored.
        known: receipts that need not be read, and workers that were lost; None for nothing.
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
    """Gather the receipts of a run and store ``report.json``.

    A work item without a receipt was lost with its worker, and counts as failed.

    Args:
        run: the run.
        settings: of the run.
        store: where the receipts are, and the report is stored.
        deadline: of this call, which reads at least one receipt.
        goes_on: resume from what the previous call left when it ran out of time.
        known: receipts that need not be read, and workers that were lost; None for nothing.

    Returns:
        The report; None if time ran out, and another call must resume.

    Raises:
        IntegrityError: a later version of this program wrote what the run left.
    """
    before = read_so_far(settings, run.run_id, store) if goes_on else SoFar()
    time = Time(deadline)
    discovered = discovered_by(settings, run.run_id, store)
    partitions = partitions_of(settings, run.run_id, store)
    spark_cause = spark_failure(run.spark_failure, run.run_id, settings, store)
    known = known or Known()

    def known_or_read(partition: Partition) -> Receipt:
        path = partition.path
        receipt = known.done.get(path) or receipt_of(partition, run.run_id, settings, store)
        return with_ending(receipt, known.lost.get(path))

    found = before.gathered or Gathered(
        skipped=dict(discovered.skipped), has_spark=settings.spark_engine != "none"
    )
    so_far = partial(write_so_far, settings=settings, run_id=run.run_id, store=store)
    with Parallel(_READERS) as parallel:
        for receipt in parallel.in_order(known_or_read, islice(partitions, found.partitions, None)):
            found.add(receipt)
            if time.worked():
                so_far(SoFar(found))
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
        so_far(SoFar(found, clean_up))
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
        oversized=found.oversized,
        spark=found.spark,
        skipped=found.skipped,
        failure=run.failure,
        left_alone=found.left_alone,
        spark_failure=spark_cause,
        clean_up=clean_up,
        warnings=discovered.warnings + found.outcomes.warnings,
        readers=None if settings.reader_table is None else found.outcomes,
        table=_table(settings, run, store),
        sizes=found.sizes,
        dead_letters=found.dead_letters,
        wall_seconds=run.wall_seconds,
    )
    hours = spark_hours(settings, run.run_id, store) if found.spark else SparkHours()
    result.cost = cost_of_run(
        result.totals,
        discovered.requests,
        found.after,
        partitions=found.partitions,
        clean_up=clean_up,
        hours=hours,
        region=store.region,
    )
    result.headline = left_for_content(result.totals.objects_in, result.left_alone, result.skipped)
    if result.cause:
        result.status = "failed"
    elif not (result.headline or result.totals.objects_in or result.spark):
        result.headline = nothing_to_do(settings, result.skipped, len(result.oversized))
    result.previous = _previous(run, result, settings, store)
    _store_report(result, settings, store)
    return result


def _previous(
    run: RunIdentity, result: RunReport, settings: Settings, store: ObjectStore
) -> list[RunLine]:
    """Return the runs before this one, and add it to them."""
    if run.ended_at is None:
        return []
    objects = result.totals.objects_in
    line = RunLine(run.run_id, run.started_at, run.wall_seconds, result.status, objects)
    return add_run(line, settings, store)


def _table(settings: Settings, run: RunIdentity, store: ObjectStore) -> TableReceipt | None:
    """Return the publisher's receipt; without one, a receipt that says it was not reached."""
    if settings.table is None:
        return None
    found = read_receipt(settings, run.run_id, store)
    if found is None or (run.table_failure and not found.error):
        found = found or TableReceipt(table=settings.table)
        found.status = "failed"
        found.error, _, cause = (run.table_failure or "NotPublished").partition(": ")
        found.cause = cause or "the run ended before anything came into the table"
    return found


def total(counts: Iterable[Counts]) -> Counts:
    """Return sums, field by field; ``seconds`` is the total time of all workers."""
    result = Counts()
    requests: Counter[str] = Counter()
    for one in counts:
        requests.update(one.requests)
        add_counts(result, one)
        add_covered(result.covered, one.covered)
    result.requests = dict(requests)
    return result


def _store_report(result: RunReport, settings: Settings, store: ObjectStore) -> None:
    document = result.to_dict()
    body = msgspec.json.format(msgspec.json.encode(document), indent=2)
    bucket, key = settings.layout.run(result.run_id, "report.json")
    store.put(bucket, key, body, content_type="application/json")
