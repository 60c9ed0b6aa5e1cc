"""The driver: plans all partitions, runs their groups, commits the answers, and plans again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count, groupby
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from compactor.clock import NoDeadline, SystemClock
from compactor.model import Partition
from compactor.partition.events import event_listing
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Receipt
from compactor.ports import StoreTraits
from compactor.s3.store import S3Store
from compactor_spark.answers import Answer, GroupTask
from compactor_spark.console import Console
from compactor_spark.oversized import Budget, OversizedPartition, PlannedGroup
from compactor_spark.places import LoadedRun
from compactor_spark.rounds import Rounds
from compactor_spark.tasks import OF_AWS

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

# Most sources in one round. The driver holds some 400 bytes for each until the round ends.
ROUND_SOURCES = 1_000_000
# Partitions listed, committed and published concurrently; work within one is sequential.
_CONCURRENT_PARTITIONS = 8


def nothing() -> None:
    """Do nothing: the default for ``before_stop``."""


@dataclass(frozen=True, slots=True)
class Driver:
    """Compacts the oversized partitions of one run.

    Args:
        loaded: the run's settings and partitions.
        client: serves the driver's own requests.
        console: shows progress.
        traits: store features that are safe to rely on.
        before_stop: called once everything planned is committed, before the session is stopped.
    """

    loaded: LoadedRun
    client: S3Client
    console: Console
    traits: StoreTraits = OF_AWS
    before_stop: Callable[[], None] = nothing

    def compact(self, session: SparkSession, stop: Callable[[], None]) -> Sequence[Receipt]:
        """Compact every oversized partition; a partition that fails does not stop the others.

        The session is stopped before the uploads of tasks that lost are aborted, so that no such
        task is still running and uploading.

        Args:
            session: runs the groups.
            stop: stops the session.

        Returns:
            A receipt for each partition. The receipts are also stored.
        """
        store = S3Store(self.client).with_traits(self.traits)
        partitions = [self._partition(one, store) for one in self.loaded.partitions]
        settings, run_id = self.loaded.settings, self.loaded.run_id
        region = self.client.meta.region_name
        rounds = Rounds(session.sparkContext, settings, run_id, region, traits=self.traits)
        numbers = count(1)
        with ThreadPoolExecutor(_CONCURRENT_PARTITIONS, thread_name_prefix="partition") as pool:
            try:
                while planned := self._plan(partitions, pool):
                    self._do_round(planned, rounds, numbers, pool)
                    for partition in partitions:
                        partition.end_round()
                self.before_stop()
            finally:
                stop()
            return list(pool.map(OversizedPartition.finish, partitions))

    def _partition(self, partition: Partition, shared: S3Store) -> OversizedPartition:
        # Connections are shared: a thousand partitions with some each would exhaust the files that
        # a process may open, and PySpark's own select() fails from the 1,024th on.
        store = shared.counted_apart()
        settings, run_id = self.loaded.settings, self.loaded.run_id
        clock = SystemClock()
        run = PartitionRun(
            partition,
            settings,
            store,
            clock,
            NoDeadline(),
            run_id,
            listing=event_listing(settings, clock.now()),
        )
        return OversizedPartition(run)

    def _plan(
        self, partitions: Sequence[OversizedPartition], pool: ThreadPoolExecutor
    ) -> Sequence[PlannedGroup]:
        """Return the groups of the next round; empty when no partition has anything left."""
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
        rounds: Rounds,
        numbers: Iterator[int],
        pool: ThreadPoolExecutor,
    ) -> None:
        waiting = dict(zip(numbers, planned, strict=False))
        tasks = [GroupTask(number, one.group, one.destination) for number, one in waiting.items()]
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
