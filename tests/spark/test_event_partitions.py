"""The driver takes what events named, and marks it, as a worker does: no Spark is needed."""

from __future__ import annotations

from compactor.errors import TransientStoreError
from compactor.model import Partition, SkipReason
from compactor.partition.receipts import Receipt
from compactor_spark.oversized import Budget, OversizedPartition
from tests.spark.driver_world import answer_to
from tests.support.event_world import EventWorld


class DriverOfEvents(EventWorld):
    """Its partitions are compacted by the driver's code."""

    def compact(self, run_id: str, item: Partition) -> Receipt:
        partition = OversizedPartition(self.run_of(run_id, item))
        while partition.has_more:
            for planned in partition.plan(Budget(1_000)):
                partition.take(planned, answer_to(planned))
            partition.end_round()
        return partition.finish()


def test_the_driver_takes_what_is_pending_and_marks_it() -> None:
    world = DriverOfEvents()
    world.deliver(*(world.put(f"a/{n}.json") for n in range(4)))
    world.sweep()
    (receipt,) = world.run_started()
    assert (receipt.status, receipt.counts.objects_in, receipt.counts.marked) == ("done", 4, 4)
    assert world.lists_of_the_source() == 0
    world.must_be_finished()


def test_what_is_gone_is_skipped_by_the_driver_too() -> None:
    world = DriverOfEvents()
    world.deliver(*(world.put(f"a/{n}.json") for n in range(4)))
    world.remove("a/2.json")
    world.sweep()
    (receipt,) = world.run_started()
    assert (receipt.status, receipt.counts.objects_in) == ("done", 3)
    assert receipt.skipped[SkipReason.GONE.value].objects == 1
    assert world.states()["logs/a/2.json"] == "GONE"
    world.must_be_finished()


def test_marks_that_fail_fail_the_partition_and_the_next_run_makes_them() -> None:
    world = DriverOfEvents(seconds=100)
    world.deliver(world.put("a/1.json"), world.put("a/2.json"))
    world.sweep()

    def slow(step: str) -> None:
        if step == "mark":
            raise TransientStoreError("slow down")

    world.registry.hook = slow
    (receipt,) = world.run_started()
    assert (receipt.status, receipt.error) == ("failed", "TransientStoreError")
    world.check()
    world.registry.hook = lambda step: None
    world.clock.advance(200)
    world.sweep()
    (receipt,) = world.run_started()
    assert (receipt.status, receipt.counts.objects_in, receipt.counts.marked) == ("done", 0, 2)
    world.must_be_finished()
