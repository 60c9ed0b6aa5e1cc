"""The driver: plan all partitions, run their groups, commit what comes back, plan again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count, groupby
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import SparkSession

from compactor.clock import NoDeadline, SystemClock
from compactor.conditions import StoreTraits
from compactor.discovery.work_items import WorkItem
from compactor.runs.partition_receipts import Receipt
from compactor.runs.partition_run import PartitionRun
from compactor.runs.prior_listing import open_earlier
from compactor.s3.store import S3Store
from compactor_spark.answers import Answer, GroupTask
from compactor_spark.console import Console
from compactor_spark.oversized import Budget, OversizedPartition, PlannedGroup
from compactor_spark.places import LoadedRun
from compactor_spark.rounds import Rounds
from compactor_spark.tasks import OF_AWS

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

# What the driver holds of a round: some 400 bytes a source, before and while it runs.
ROUND_SOURCES = 1_000_000
# Listed, committed and published concurrently; each is one partition's own sequence.
_CONCURRENT_PARTITIONS = 8


class RunsGroups(Protocol):
    """Runs the groups of a round, wherever."""

    def run(self, tasks: Sequence[GroupTask]) -> Iterator[Sequence[Answer]]:
        """Answers as they come, one for each task; often none, so that the caller may log."""
        ...


def nothing() -> None:
    """What most jobs do before they stop."""


@dataclass(frozen=True, slots=True)
class Driver:
    """The job over one run.

    Args:
        loaded: what discovery wrote.
        client: serves the driver's own requests.
        console: shows how far the job is.
        traits: the ways that are safe at the store.
        before_stop: what else needs the session, once all that was planned is committed.
    """

    loaded: LoadedRun
    client: S3Client
    console: Console
    traits: StoreTraits = OF_AWS
    before_stop: Callable[[], None] = nothing

    def compact(self, session: SparkSession) -> Sequence[Receipt]:
        """Compact every oversized partition; a partition that fails does not stop the others.

        The session is stopped before the uploads of tasks that lost are aborted, so that none
        of them still runs and stores more.

        Returns:
            A receipt for each partition; they are stored, too.
        """
        partitions = [self._partition(item) for item in self.loaded.items]
        rounds = self._rounds(session)
        numbers = count(1)
        with ThreadPoolExecutor(_CONCURRENT_PARTITIONS, thread_name_prefix="partition") as pool:
            try:
                while planned := self._plan(partitions, pool):
                    self._do_round(planned, rounds, numbers, pool)
                    for partition in partitions:
                        partition.end_round()
                self.before_stop()
            finally:
                session.stop()
            return list(pool.map(OversizedPartition.finish, partitions))

    def _partition(self, item: WorkItem) -> OversizedPartition:
        # A store of its own, so that its requests are counted apart.
        store = S3Store(self.client).with_traits(self.traits)
        settings, run_id = self.loaded.settings, self.loaded.run_id
        clock = SystemClock()
        run = PartitionRun(
            item.partition,
            settings,
            store,
            clock,
            NoDeadline(),
            run_id,
            listing=open_earlier(settings, run_id, store, clock.now()),
        )
        return OversizedPartition(run, rebuild=not settings.columnar)

    def _rounds(self, session: SparkSession) -> RunsGroups:
        settings, run_id = self.loaded.settings, self.loaded.run_id
        if settings.columnar:
            from compactor_spark.columnar.rounds import ParquetRounds  # noqa: PLC0415 - no other run needs it

            return ParquetRounds(session, settings, run_id, self.client, traits=self.traits)
        region = self.client.meta.region_name
        return Rounds(session.sparkContext, settings, run_id, region, traits=self.traits)

    def _plan(
        self, partitions: Sequence[OversizedPartition], pool: ThreadPoolExecutor
    ) -> Sequence[PlannedGroup]:
        """The groups of the next round; none when no partition has anything left."""
        while any(partition.has_more for partition in partitions):
            listed = sum(partition.has_more for partition in partitions)
            self.console.say(f"listing {listed:,} of {len(partitions):,} partitions")
            budget = Budget(ROUND_SOURCES)
            found = pool.map(partial(OversizedPartition.plan, budget=budget), partitions)
            planned = [group for groups in found for group in groups]
            if planned:
                return planned
        return ()

    def _do_round(
        self,
        planned: Sequence[PlannedGroup],
        rounds: RunsGroups,
        numbers: Iterator[int],
        pool: ThreadPoolExecutor,
    ) -> None:
        waiting = dict(zip(numbers, planned, strict=False))
        tasks = [
            GroupTask(number, one.group, one.destination, one.replays)
            for number, one in waiting.items()
        ]
        more = any(one.partition.has_more for one in planned)
        self.console.begin_round((one.group for one in planned), more=more)
        for answers in rounds.run(tasks):
            answered = [(waiting.pop(answer.number), answer) for answer in answers]
            list(pool.map(_take, _by_partition(answered)))
            for one, _ in answered:
                self.console.finish(one.group)
            self.console.show(more=more)
        self.console.end_round()


_Answered = tuple[PlannedGroup, Answer]


def _by_partition(answered: Sequence[_Answered]) -> Sequence[Sequence[_Answered]]:
    def partition(one: _Answered) -> int:
        return id(one[0].partition)

    return [list(group) for _, group in groupby(sorted(answered, key=partition), key=partition)]


def _take(answered: Sequence[_Answered]) -> None:
    for planned, answer in answered:
        planned.partition.take(planned, answer)
