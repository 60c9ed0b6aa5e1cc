"""The small world of the crash tests, worked on as the Spark driver does, without Spark."""

from __future__ import annotations

import random
from itertools import count

from compactor.clock import NoDeadline
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Receipt
from compactor.partition.steps import store
from compactor_spark.answers import Answer, GroupTask
from compactor_spark.oversized import Budget, OversizedPartition, PlannedGroup
from compactor_spark.tasks import answer_for
from tests.support.examples import PARTITION
from tests.support.world import World

_numbers = count(1)


def answer_to(planned: PlannedGroup) -> Answer:
    """What a task on an executor would hand back."""
    run = planned.partition.run
    group = planned.group
    task = GroupTask(next(_numbers), group, run.destination)
    return answer_for(
        task,
        run.run_id,
        run.store,
        lambda: store(group, run.settings, run.store, task.destination),
    )


class DriverWorld(World):
    """Its runs go through the driver's code; tasks end in an order of their own.

    Attributes:
        round_sources: how many sources a round takes, more or less.
        twice: every task runs a second time, as speculation may do; the first answer counts.
    """

    def __init__(self, seed: int = 0, **given: object) -> None:
        super().__init__(**given)
        self.chance = random.Random(seed)
        self.round_sources = 1_000
        self.twice = False

    def run(self) -> Receipt:
        self.runs += 1
        partition = OversizedPartition(self.partition_run(f"run-{self.runs}"))
        while partition.has_more:
            planned = list(partition.plan(Budget(self.round_sources)))
            self.chance.shuffle(planned)
            self._do_round(planned)
            partition.end_round()
        return partition.finish()

    def partition_run(self, run_id: str) -> PartitionRun:
        return PartitionRun(PARTITION, self.settings, self.store, self.clock, NoDeadline(), run_id)

    def _do_round(self, planned: list[PlannedGroup]) -> None:
        while planned:
            # Some tasks have ended when the driver looks; it commits those, and looks again.
            ended = [planned.pop() for _ in range(self.chance.randint(1, len(planned)))]
            answers = [(one, answer_to(one)) for one in ended]
            if self.twice:
                for one in ended:
                    answer_to(one)
            for one, answer in answers:
                one.partition.take(one, answer)
