"""One run from discovery to its report, on workers that the caller provides.

discover -> compact each partition -> Spark, for what workers left to it -> publish to the table, if
any -> clean up each partition with commits past retention -> report

The receipts record what is done, so that a run resumes where an earlier invocation stopped. What a
killed worker leaves unfinished is repaired by the next call, or by the next run.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf

import msgspec

from compactor.catalogs.opening import open_catalog
from compactor.cleaning import clean_up_receipts
from compactor.cleaning.clean_up_list import (
    drop_replaced_checkpoints,
    find_due,
    read_due,
    write_due,
)
from compactor.decoding import decoder
from compactor.discovery.work_list import ITEMS_NAME
from compactor.errors import CompactorError, ObjectMissing
from compactor.model import Partition
from compactor.orchestration.discovery_step import Begun, begin
from compactor.orchestration.messages import DONE, FAILED, MORE, Answer, Order, Task
from compactor.orchestration.partition_retry import LOST, RETRIES, STOPPED, Retry, Tries
from compactor.orchestration.run_progress import Tally
from compactor.orchestration.workers import Observer, Spark, Workers
from compactor.partition import receipts
from compactor.partition.receipts import Counts, Receipt
from compactor.ports import Clock, Deadline, ObjectStore
from compactor.report.report import Known, RunIdentity, RunReport, report
from compactor.report.run_records import SPARK_ERROR_NAME
from compactor.settings.settings import Settings
from compactor.sinks.merged_tables import look_at_merge
from compactor.sinks.table_proof import OpenCatalog
from compactor.sinks.table_publisher import Publishing, check_table, record_publish
from compactor.sinks.table_receipts import TableReceipt, read_receipt

SPARK_RESULT_NAME = "spark-result.json"
# A partition is begun only with this much time left, so that it can commit a group.
PARTITION_SECONDS = 60.0
# S3 allows 3,500 deletes a second per prefix, and each request deletes up to 1,000 objects.
_CONCURRENT_CLEAN_UPS = 10


class _SparkCounts(msgspec.Struct):
    done: int = 0
    failed: int = 0
    objects_in: int = 0


class _SparkOutcome(msgspec.Struct):
    """The part of the Spark job's result that progress shows."""

    partitions: _SparkCounts


_decode_outcome = decoder(_SparkOutcome)


def _wait(stopped: threading.Event, longest: float) -> None:
    stopped.wait(random.uniform(0, longest))  # noqa: S311 - jitter keeps no secret


@dataclass(frozen=True, slots=True)
class Given:
    """The input of a whole run.

    Attributes:
        run_id: the run's id; a run that an earlier call began is resumed.
        started_at: when the run's first call started, ISO 8601.
        deadline: this call's deadline; partitions that do not fit are left to the next call.
        workers: makes the workers, given the probed store.
        spark: runs the Spark job; if None, ``spark_engine`` must be ``none``.
        retries: retries by the name of the error.
        pause: waits up to this many seconds before a retry; ends early when the event is set.
        open_catalog: opens the catalog of the table that the settings name.
    """

    settings: Settings
    run_id: str
    started_at: str
    store: ObjectStore
    clock: Clock
    deadline: Deadline
    workers: Callable[[ObjectStore], Workers]
    spark: Spark | None = None
    observer: Observer = field(default_factory=Observer)
    retries: Mapping[str, Retry] = field(default_factory=lambda: RETRIES)
    pause: Callable[[threading.Event, float], None] = _wait
    open_catalog: OpenCatalog = open_catalog


@dataclass(frozen=True, slots=True)
class Ended:
    """How this call of a run ended.

    Attributes:
        report: None if time ran out. Another call is needed then, for the partitions left.
        left: paths of partitions that need another call, to be compacted or cleaned up.
        failed: paths of partitions whose compaction failed.
        oversized: receipts of partitions with more than one worker takes, by workers.
    """

    report: RunReport | None
    left: Sequence[str]
    failed: Sequence[str]
    oversized: Sequence[Receipt]


def run_whole(given: Given) -> Ended:
    """Carry out a run as far as the deadline allows. Idempotent, and safe alongside other runs.

    Raises:
        InvalidInput: the input is invalid; nothing was done.
        TransientStoreError: the store did not answer for discovery or the report.
        BaseException: any interruption of this thread, including Ctrl-C, after work under way was
            stopped between two requests.
    """
    if given.settings.table is not None:
        catalog = given.open_catalog(given.settings, given.store)
        check_table(given.settings, given.store, catalog)
    goes_on = given.store.head(*_run_key(given, ITEMS_NAME)) is not None
    begun = begin(
        given.settings, given.run_id, given.store, given.clock.now(), deadline=given.deadline
    )
    return _Whole(given, begun, goes_on=goes_on).carry_out()


class _Whole:
    """A run that has begun."""

    def __init__(self, given: Given, begun: Begun[ObjectStore], *, goes_on: bool) -> None:
        self._given = given
        self._begun = begun
        self._goes_on = goes_on
        self._workers = given.workers(begun.store)
        self._tally = Tally(given.observer.progressed)
        self._stopped = threading.Event()
        self._left: list[str] = []
        self._failed: list[str] = []
        self._done: dict[str, Receipt] = {}
        self._lost: dict[str, str] = {}
        self._oversized: list[Receipt] = []

    def carry_out(self) -> Ended:
        found, settings = self._begun.found, self._given.settings
        self._given.observer.discovered(found)
        self._tally.set(partitions_total=len(found.partitions))
        self._compact(found.partitions)
        has_work = bool(self._oversized) or self._begun.lags
        spark_failure = ""
        if has_work and self._spark_follows and not self._left:
            spark_failure = self._run_spark()
        table_failure = clean_up_failure = ""
        if not self._left and settings.table is not None:
            table_failure = self._publish_table()
        if not self._left and settings.deletes and not table_failure:
            clean_up_failure = self._clean_up()
        result = None
        if not self._left:
            identity = RunIdentity(
                self._given.run_id,
                self._given.started_at,
                spark_failure=spark_failure,
                table_failure=table_failure,
                clean_up_failure=clean_up_failure,
                ended_at=self._given.clock.now(),
            )
            known = Known(self._done, self._lost)
            result = report(identity, settings, self._begun.store, known)
        return Ended(result, self._left, self._failed, self._oversized)

    def _compact(self, partitions: Sequence[Partition]) -> None:
        for order, answer in self._each(self._to_compact(partitions), self._workers.slots):
            if answer.status == DONE and answer.compacted is not None:
                self._ended_well(answer.compacted)
            elif answer.status == FAILED:
                self._failed.append(order.path)
                if answer.error == LOST:
                    self._lost[order.path] = answer.cause
            else:
                self._left.append(order.path)

    def _ended_well(self, receipt: Receipt) -> None:
        if receipt.oversized:
            self._oversized.append(receipt)
        if not receipt.oversized or not self._spark_follows:
            # No other receipt replaces it.
            self._done[receipt.path] = receipt

    def _to_compact(self, partitions: Iterable[Partition]) -> Iterator[Order]:
        """Yield an order for each partition that this run has not finished."""
        for partition in partitions:
            earlier = self._earlier(partition)
            if earlier is not None and earlier.status == DONE:
                self._ended_well(earlier)
                self._tally.ended(Task.COMPACT, DONE)
            else:
                yield Order.to_compact(partition, Counts() if earlier is None else earlier.counts)

    def _earlier(self, partition: Partition) -> Receipt | None:
        """Return the receipt of the run's earlier calls for a partition, if there were any."""
        given = self._given
        if not self._goes_on:
            return None
        return receipts.read(given.settings, given.run_id, partition, self._begun.store)

    def _publish_table(self) -> str:
        """Add committed outputs to the table; return the failure, or an empty string."""
        given, store = self._given, self._begun.store
        tries = Tries(given.retries)
        while True:
            try:
                receipt = self._published(store)
                given.observer.published(receipt)
            except Exception as error:
                # Compaction is not affected: the failure is reported, and the next run adds the
                # rest.
                longest = tries.longest_wait(type(error).__name__)
                if longest is None:
                    given.observer.not_published(error)
                    return f"{type(error).__name__}: {error}"
                given.pause(self._stopped, longest)
            else:
                return f"{receipt.error}: {receipt.cause}" if receipt.error else ""

    def _published(self, store: ObjectStore) -> TableReceipt:
        given = self._given
        catalog = given.open_catalog(given.settings, store)
        if given.settings.upsert_key:
            return look_at_merge(given.settings, store, catalog, given.run_id)
        work = Publishing(
            settings=given.settings,
            store=store,
            catalog=catalog,
            clock=given.clock,
            deadline=given.deadline,
            run_id=given.run_id,
        )
        return record_publish(work, read_receipt(given.settings, given.run_id, store))

    def _clean_up(self) -> str:
        """Clean up all partitions with commits past retention; return why planning failed, if so.

        The failures of single partitions are not returned: their receipts record them.
        """
        try:
            due = self._due()
        except Exception as error:
            # Compaction is not affected, and the failure is reported.
            self._given.observer.clean_up_not_planned(error)
            return f"{type(error).__name__}: {error}"
        self._tally.set(clean_ups_total=len(due))
        concurrent = min(self._workers.slots, _CONCURRENT_CLEAN_UPS)
        for order, answer in self._each(self._to_clean_up(due), concurrent):
            if answer.status == MORE:
                self._left.append(order.path)
        if not self._left:
            self._drop_replaced_checkpoints()
        return ""

    def _drop_replaced_checkpoints(self) -> None:
        given, store = self._given, self._begun.store
        # What stays does no harm, and the next run drops it.
        with suppress(CompactorError):
            drop_replaced_checkpoints(given.settings, store, given.clock.now(), given.deadline)

    def _due(self) -> Sequence[str]:
        """Return the partitions to clean up, as found by this run's first call that planned it."""
        given, store = self._given, self._begun.store
        try:
            due = read_due(store.get(*given.settings.layout.clean_up_list(given.run_id)))
        except ObjectMissing:
            due = find_due(given.settings, store, given.clock.now())
            write_due(due, given.settings, given.run_id, store)
            given.observer.planned_clean_up(len(due))
        return [work.path for work in due]

    def _to_clean_up(self, due: Iterable[str]) -> Iterator[Order]:
        settings, run_id = self._given.settings, self._given.run_id
        for path in due:
            if self._goes_on:
                partition = settings.partition_at(path)
                before = clean_up_receipts.earlier(settings, run_id, partition, self._begun.store)
                if before.status == DONE:
                    self._tally.ended(Task.CLEAN_UP, DONE)
                    continue
            yield Order.to_clean_up(path, settings)

    def _each(self, orders: Iterable[Order], concurrent: int) -> list[tuple[Order, Answer]]:
        """Carry all orders to their end, up to ``concurrent`` of them at a time."""
        try:
            if not self._workers.own_time:
                return [(order, self._see_through(order)) for order in orders]
            with ThreadPoolExecutor(concurrent, thread_name_prefix="partition") as pool:
                wanted = list(orders)
                try:
                    return list(zip(wanted, pool.map(self._see_through, wanted), strict=True))
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    self._stop()
                    raise
        except BaseException:
            self._stop()
            raise

    def _stop(self) -> None:
        """Stop work under way between two requests, and begin nothing else."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._workers.stop()

    def _see_through(self, order: Order) -> Answer:
        """Call workers for a partition until it is done, has failed for good, or time runs out."""
        answer = self._last_answer(order)
        receipt = answer.compacted
        is_left = receipt is not None and receipt.oversized and self._spark_follows
        if answer.error != STOPPED and not is_left:
            self._tally.ended(order.task, answer.status)
        return answer

    @property
    def _spark_follows(self) -> bool:
        return self._given.spark is not None and self._given.settings.spark_engine != "none"

    def _last_answer(self, order: Order) -> Answer:
        tries = Tries(self._given.retries)
        while self._given.deadline.remaining_seconds() >= PARTITION_SECONDS:
            answer = self._workers.carry_out(order)
            self._count(order, answer)
            if answer.status == FAILED:
                longest = tries.longest_wait(answer.error)
                if longest is None:
                    return answer
                self._given.pause(self._stopped, longest)
            elif answer.status == DONE or not self._workers.own_time:
                return answer
            order = order.following(answer)
        return Answer(MORE)

    def _count(self, order: Order, answer: Answer) -> None:
        if answer.error != STOPPED:
            with self._tally.lock:
                self._tally.answered(order, answer)
                self._given.observer.answered(order, answer)

    def _run_spark(self) -> str:
        """Run the Spark job and return its failure; kill it if time runs out.

        The commits of a killed job stand, and its partitions are left to the next call.
        """
        spark = self._given.spark
        if spark is None:
            return ""
        pool = ThreadPoolExecutor(1, thread_name_prefix="spark")
        try:
            job = pool.submit(self._job, spark)
            remaining = self._given.deadline.remaining_seconds()
            done, _ = wait([job], None if remaining == inf else max(0.0, remaining))
            if done:
                return job.result()
            spark.stop()
            self._left.extend(one.path for one in self._oversized)
            return ""
        except BaseException:
            spark.stop()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _job(self, spark: Spark) -> str:
        def show(line: str) -> None:
            self._tally.set(spark=line)

        bucket, prefix = _run_key(self._given, "")
        failure = spark.run(self._given.run_id, f"s3://{bucket}/{prefix}", show)
        for name in (SPARK_RESULT_NAME, SPARK_ERROR_NAME):
            with suppress(ObjectMissing, msgspec.MsgspecError):
                body = self._begun.store.get(*_run_key(self._given, name))
                counts = _decode_outcome(body).partitions
                # Workers have counted what they took of the same partitions.
                by_workers = sum(one.counts.objects_in for one in self._oversized)
                self._tally.add(
                    partitions_done=counts.done,
                    partitions_failed=counts.failed,
                    objects_done=max(0, counts.objects_in - by_workers),
                )
                break
        self._tally.set(spark="")
        return failure


def _run_key(given: Given, name: str) -> tuple[str, str]:
    return given.settings.layout.run(given.run_id, name)
