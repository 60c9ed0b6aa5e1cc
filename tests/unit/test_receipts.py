"""Receipts add up over the calls of a run, and say why a call failed."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from compactor.clock import NoDeadline
from compactor.errors import IntegrityError, TransientStoreError
from compactor.limits import USUAL, WorkerLimits
from compactor.log.state import SHOWN_QUARANTINED
from compactor.model import Partition
from compactor.partition import receipts
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts, Receipt, counts_from
from compactor.partition.run import compact_partition
from tests.support.examples import PARTITION, settings
from tests.support.memory_store import Call, MemoryStore
from tests.support.world import World


class Groups:
    """A deadline that passes once so many groups were committed."""

    def __init__(self, store: MemoryStore, groups: int) -> None:
        self.store = store
        self.end = store.count("create") + groups

    def remaining_seconds(self) -> float:
        return 1_000.0 if self.store.count("create") < self.end else 0.0


# Every source is a group of its own.
SMALL_GROUPS = WorkerLimits(group_sources=1)


def various(limits: WorkerLimits = USUAL) -> World:
    world = World(limits=limits)
    world.add_variety()
    return world


def call(world: World, counts: Counts, groups: int | None, run_id: str = "run-1") -> Receipt:
    deadline = NoDeadline() if groups is None else Groups(world.store, groups)
    run = PartitionRun(PARTITION, world.settings, world.store, world.clock, deadline, run_id)
    return compact_partition(run, counts)


def carried(counts: Counts) -> Counts:
    """Counts as the state machine carries them to the next call."""
    return counts_from(json.loads(json.dumps(msgspec.to_builtins(counts))))


def comparable(receipt: Receipt) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(receipt)
    left_out = ("requests", "calls", "seconds")
    counts = {k: v for k, v in document["counts"].items() if k not in left_out}
    return {**document, "counts": counts}


def test_counts_add_up_over_calls_that_ran_out_of_time() -> None:
    whole = call(various(SMALL_GROUPS), Counts(), None)
    assert whole.counts.calls == 1
    assert whole.counts.objects_out >= 5
    world = various(SMALL_GROUPS)
    receipt = Receipt("", "", "more")
    seen = []
    for _ in range(40):
        receipt = call(world, carried(receipt.counts), 1)
        seen.append(receipt.counts.objects_in)
        if receipt.status == "done":
            break
        assert receipt.status == "more"
    assert comparable(receipt) == comparable(whole)
    assert receipt.counts.calls == len(seen) > 4
    assert seen == sorted(seen), "no call forgets what earlier ones did"
    # Every request of every call is counted once: all that the store saw but the last receipt.
    assert sum(v for k, v in receipt.counts.requests.items() if "bytes" not in k) <= len(
        world.store.calls
    )
    assert receipt.counts.requests["GET"] >= whole.counts.requests["GET"]
    stored = world.store.get(*world.settings.layout.receipt("run-1", PARTITION))
    assert receipts.decode(stored) == receipt
    world.runs = 1  # the next run is another one
    world.must_be_finished()


def test_a_quarantined_source_is_counted_once_however_many_calls_follow() -> None:
    world = various(SMALL_GROUPS)
    world.put("a.log.gz", b"\x1f\x8b\x08 cut")
    receipt = Receipt("", "", "more")
    for _ in range(20):
        receipt = call(world, carried(receipt.counts), 2)
        if receipt.status == "done":
            break
    assert receipt.counts.quarantined == 2
    assert sorted(line.key.rsplit("/", 1)[-1] for line in receipt.quarantined) == [
        "a.log.gz",
        "g.log.gz",
    ]


def test_a_source_counts_once_for_its_declaration_even_if_calls_died_or_lost_their_answer() -> None:
    declared = [
        {"match": "*.csv", "format": "csv", "header": True},
        {"match": "*.x", "format": "text"},
    ]
    world = World(limits=SMALL_GROUPS, formats=declared)
    bodies = {
        "a.csv": b"id,count\n1,2\n",
        "b.csv": b"id\n1,2\n",
        "c.json": b'{"id": 1}\n',
        "d.x": b"one\n",
        "e.bin": b"\0",
    }
    for name, body in bodies.items():
        world.put(name, body)
    receipt = before = Receipt("", "", "more")
    for number in range(20):
        receipt = call(world, carried(before.counts), 1)
        if number % 2:
            # The state machine got every second answer only.
            before = receipt
        if receipt.status == "done":
            break
    assert receipt.counts.quarantined == 2
    # The second CSV contradicts its declaration, and still is what was declared.
    assert receipt.counts.covered == {"1": (2, 20), "2": (1, 4), "0": (2, 11)}
    assert call(world, Counts(), None, "run-2").counts.covered == {}


def test_what_an_earlier_run_committed_is_not_counted_again() -> None:
    world = various()
    first = call(world, Counts(), None)
    again = call(world, Counts(), None, "run-2")
    assert first.counts.objects_in == 8
    assert again.counts.objects_in == again.counts.quarantined == again.counts.bytes_out == 0
    assert again.skipped["already_committed"].objects == 8
    assert again.skipped["quarantined"].objects == 1


def test_a_failed_call_leaves_a_receipt_with_its_cause() -> None:
    world = various()

    def fail(one: Call) -> None:
        if one.name == "complete_upload":
            raise TransientStoreError("the store is down")

    world.store.hooks.before.append(fail)
    with pytest.raises(TransientStoreError):
        call(world, Counts(), None)
    stored = world.store.get(*world.settings.layout.receipt("run-1", PARTITION))
    receipt = receipts.decode(stored)
    assert (receipt.status, receipt.error) == ("failed", "TransientStoreError")
    assert receipt.cause == "the store is down"
    assert receipt.counts.objects_in > 0, "what was committed is counted"
    assert receipt.counts.calls == 1


def test_a_failed_call_does_not_forget_what_earlier_calls_did() -> None:
    world = various(SMALL_GROUPS)
    first = call(world, Counts(), 1)
    assert (first.status, first.counts.objects_in) == ("more", 1)

    def fail(one: Call) -> None:
        if one.name == "list_objects":
            raise TransientStoreError("the store is down")

    world.store.hooks.before.append(fail)
    with pytest.raises(TransientStoreError):
        call(world, carried(first.counts), None)
    stored = world.store.get(*world.settings.layout.receipt("run-1", PARTITION))
    assert receipts.decode(stored).counts.objects_in == 1


def test_even_an_error_that_was_not_foreseen_leaves_a_receipt_with_its_cause() -> None:
    world = various()
    call(world, Counts(), None)
    bucket, prefix = world.settings.layout.commits(PARTITION.path)
    for key in world.store.contents(bucket, prefix):
        world.store.seed(bucket, key, b"no gzip at all")
    with pytest.raises(Exception, match=r"(?i)gzip") as caught:
        call(world, Counts(), None, "run-2")
    stored = world.store.get(*world.settings.layout.receipt("run-2", PARTITION))
    receipt = receipts.decode(stored)
    assert receipt.status == "failed"
    assert receipt.error == type(caught.value).__name__
    assert receipt.cause == str(caught.value)


def test_a_log_with_a_gap_is_reported_as_an_integrity_error() -> None:
    world = various()
    call(world, Counts(), None)
    bucket, prefix = world.settings.layout.commits(PARTITION.path)
    for key in world.store.contents(bucket, prefix):
        if "checkpoint" in key or key.endswith("1.json.gz"):
            world.store.remove(bucket, key)
    with pytest.raises(IntegrityError):
        call(world, Counts(), None, "run-2")
    stored = world.store.get(*world.settings.layout.receipt("run-2", PARTITION))
    assert receipts.decode(stored).error == "IntegrityError"


def test_a_call_that_ran_out_of_time_sums_up_what_it_did_for_the_next() -> None:
    world = various(SMALL_GROUPS)
    call(world, Counts(), 1)
    assert any("checkpoint" in key for key in world.store.contents("lake"))
    heads = world.store.count("head")
    receipt = call(world, Counts(), None)
    assert receipt.counts.objects_in == 7, "one group a source, and the empty one in none"
    assert world.store.count("head") == heads, "no output is looked at again"


def test_a_finished_call_whose_answer_was_lost_reports_the_same_again() -> None:
    world = various()
    first = call(world, Counts(), None)
    again = call(world, Counts(), None)
    assert comparable(again) == comparable(first)


def test_a_checkpoint_of_another_run_does_not_make_a_run_forget() -> None:
    world = various(SMALL_GROUPS)
    first = call(world, Counts(), 2)
    other = call(world, Counts(), None, "run-2")
    last = call(world, carried(first.counts), None)
    assert (first.status, other.status, last.status) == ("more", "done", "done")
    whole = call(various(SMALL_GROUPS), Counts(), None).counts
    assert first.counts.objects_in + other.counts.objects_in == whole.objects_in
    assert last.counts.objects_in == first.counts.objects_in


def test_publishing_again_what_is_published_is_no_repair() -> None:
    world = various(SMALL_GROUPS)
    receipt = Receipt("", "", "more")
    for _ in range(20):
        receipt = call(world, carried(receipt.counts), 1)
    assert receipt.status == "done"
    assert receipt.counts.repaired == 0


def test_a_receipt_shows_no_more_quarantined_sources_than_a_page_can_hold() -> None:
    world = World()
    for number in range(SHOWN_QUARANTINED + 20):
        world.put(f"{number:03}.log.gz", b"\x1f\x8b\x08 cut")
    receipt = call(world, Counts(), None)
    assert receipt.counts.quarantined == SHOWN_QUARANTINED + 20
    assert len(receipt.quarantined) == SHOWN_QUARANTINED


def test_receipts_of_partitions_whose_paths_look_alike_have_keys_of_their_own() -> None:
    paths = ("a/b/", "a-b/", "a/b", "é/", "-/", "", "x" * 200 + "/", "x" * 201 + "/")
    keys = {settings().layout.receipt("run-1", Partition("source", "", path)) for path in paths}
    assert len(keys) == len(paths)
    assert all(len(key.encode()) < 512 for _, key in keys)
