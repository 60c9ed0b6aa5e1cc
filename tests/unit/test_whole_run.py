"""A whole run on scripted workers: what is tried again, left, stopped, reported."""

from __future__ import annotations

import json
import math
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from compactor.discovery.work_list import Discovery
from compactor.errors import IntegrityError, InvalidInput, SourceChanged, TransientStoreError
from compactor.orchestration.in_process import ThisProcess
from compactor.orchestration.messages import DONE, FAILED, MORE, Answer, Desk, Order, Task
from compactor.orchestration.partition_retry import LOST, RETRIES, STOPPED
from compactor.orchestration.run import Ended, Given, run_whole
from compactor.orchestration.run_progress import RunProgress
from compactor.orchestration.workers import Observer
from compactor.ports import ObjectStore
from compactor_cli.machine.installed import definition
from tests.support.examples import LONG_AGO, NOW, settings
from tests.support.memory_store import ManualClock, MemoryStore

DAY = 86_400.0
STARTED = "2027-01-15T08:00:00Z"


class Forever:
    def remaining_seconds(self) -> float:
        return math.inf


class Seconds:
    """What a function says is left."""

    def __init__(self, left: Callable[[], float]) -> None:
        self.remaining_seconds = left


class Seen(Observer):
    def __init__(self) -> None:
        self.found: Discovery | None = None
        self.answers: list[tuple[str, str]] = []
        self.progress: list[RunProgress] = []

    def discovered(self, found: Discovery) -> None:
        self.found = found

    def answered(self, order: Order, answer: Answer) -> None:
        self.answers.append((order.path, answer.error or answer.status))

    def progressed(self, progress: RunProgress) -> None:
        self.progress.append(progress)


class Troubled:
    """Workers that work, but for the trouble they are given: by path, one error a call.

    An error is a name to answer with; ``KeyboardInterrupt`` is what a terminal does meanwhile.
    """

    own_time = True

    def __init__(self, desk: Desk, slots: int, trouble: dict[str, list[str]]) -> None:
        self.slots = slots
        self.stopped = threading.Event()
        self._desk = desk
        self._trouble = trouble

    def carry_out(self, order: Order) -> Answer:
        if self.stopped.is_set():
            return Answer(FAILED, STOPPED, "stopped")
        if waiting := self._trouble.get(order.path):
            error = waiting.pop(0)
            if error == "wait for the end":
                self.stopped.wait(60)
                error = STOPPED
            return Answer(FAILED, error, "told so")
        return self._desk.carry_out(order, Forever())

    def stop(self) -> None:
        self.stopped.set()


class Lossy(Troubled):
    """Workers of which those are lost that work on a/, and on b/ for the second time."""

    def __init__(self, desk: Desk, ending: str) -> None:
        super().__init__(desk, 1, {})
        self._ending = ending
        self._begun: set[str] = set()

    def carry_out(self, order: Order) -> Answer:
        if order.path == "a/" or order.path in self._begun:
            return Answer(FAILED, LOST, self._ending)
        if order.path == "b/":
            self._begun.add(order.path)
            return self._desk.carry_out(order, Seconds(lambda: 0.0))
        return super().carry_out(order)


class World:
    """Some partitions of two sources each."""

    def __init__(self, *paths: str, **given: Any) -> None:
        self.clock = ManualClock(NOW)
        self.store = MemoryStore(self.clock)
        self.settings = settings(depth=1, **given)
        for bucket in ("source", "lake"):
            self.store.add_bucket(bucket)
        for path in paths:
            for n in range(2):
                body = b'{"in":"%s","n":%d}\n' % (path.encode(), n)
                self.store.seed("source", f"logs/{path}{n}.json", body, last_modified=LONG_AGO)
        self.seen = Seen()
        self.waits: list[float] = []
        self.workers: Any = None
        self.runs = 0

    def run(
        self,
        workers: Callable[[Desk], Any] | None = None,
        *,
        deadline: Any = None,
        run_id: str = "run-1",
        **given: Any,
    ) -> Ended:
        deadline = deadline or Forever()

        def make(store: ObjectStore) -> Any:
            desk = Desk(self.settings, store, self.clock, run_id)
            self.workers = workers(desk) if workers else ThisProcess(desk, deadline)
            return self.workers

        return run_whole(
            Given(
                settings=self.settings,
                run_id=run_id,
                started_at=STARTED,
                store=self.store,
                clock=self.clock,
                deadline=deadline,
                workers=make,
                observer=self.seen,
                pause=lambda stopped, longest: self.waits.append(longest),
                **given,
            )
        )

    def troubled(self, slots: int = 2, **trouble: list[str]) -> Ended:
        named = {f"{name}/": errors for name, errors in trouble.items()}
        return self.run(lambda desk: Troubled(desk, slots, named))

    @property
    def outputs(self) -> list[str]:
        return sorted(key.split("/")[1] for key in self.store.contents("lake", "compacted/"))

    def stored(self, name: str) -> Any:
        return json.loads(self.store.get(*self.settings.layout.run("run-1", name)))


def test_a_run_leaves_what_the_workflow_leaves() -> None:
    world = World("a/", "b/")
    ended = world.run()
    assert ended.report is not None
    assert (ended.report.status, ended.report.totals.objects_in) == ("succeeded", 4)
    assert (ended.left, ended.failed, ended.oversized) == ([], [], [])
    assert world.outputs == ["a", "b"]
    assert [item["path"] for item in world.stored("items.json")] == ["a/", "b/"]
    assert world.stored("settings.json")["depth"] == 1
    document = world.stored("report.json")
    assert (document["started_at"], document["totals"]["objects_out"]) == (STARTED, 2)
    receipts = world.store.contents("lake", "_compactor/compacted/runs/run-1/receipts/")
    assert len(receipts) == 2


def test_receipts_that_workers_answered_with_are_not_read_again() -> None:
    world = World("a/", "b/")
    world.run()
    assert world.store.count("get", prefix="_compactor/compacted/runs/run-1/receipts/") == 0


def test_a_process_reads_the_identity_once_whatever_the_number_of_partitions() -> None:
    state = "_compactor/compacted/"
    asked: list[Counter[str]] = []
    for paths in (["a/"], ["a/", "b/", "c/"]):
        world = World(*paths)
        world.run()
        assert len(world.outputs) == len(paths)
        kinds = ("head", "get", "create")
        count = world.store.count
        asked.append(Counter({kind: count(kind, prefix=f"{state}identity.json") for kind in kinds}))
    assert asked[1] == asked[0]


@pytest.mark.parametrize("gone", ["identity.json", ""])
def test_what_a_process_remembers_doubles_nothing_when_the_state_is_damaged_meanwhile(
    gone: str,
) -> None:
    world = World("a/", "b/")

    class Damages(Observer):
        def answered(self, order: Order, answer: Answer) -> None:
            if order.path == "a/":
                for key in world.store.contents("lake", f"_compactor/compacted/{gone}"):
                    if "/runs/" not in key:
                        world.store.remove("lake", key)

    world.seen = Damages()  # type: ignore[assignment]  # only what is told of counts here
    world.run()
    assert world.outputs == ["a", "b"]
    world.seen = Seen()
    for run_id in ("run-2", "run-3"):
        # More of both, for which the log is needed.
        body = f'{{"more":"{run_id}"}}\n'.encode()
        for path in ("a/", "b/"):
            key = f"logs/{path}{run_id}.json"
            world.store.seed("source", key, body, last_modified=LONG_AGO)
        with suppress(IntegrityError, InvalidInput):
            world.run(run_id=run_id)
        lines = [
            line
            for body in world.store.contents("lake", "compacted/").values()
            for line in body.splitlines()
        ]
        assert len(lines) == len(set(lines))


def test_progress_counts_partitions_and_objects_as_they_are_done() -> None:
    world = World("a/", "b/", "c/")
    world.troubled(c=["IntegrityError"])
    last = world.seen.progress[-1]
    assert (last.partitions_total, last.partitions_done, last.partitions_failed) == (3, 2, 1)
    assert last.objects_done == 4


@pytest.mark.parametrize("error", ["SourceChanged", "TransientStoreError", LOST])
def test_a_failure_that_may_pass_is_tried_again_until_it_has(error: str) -> None:
    world = World("a/", "b/")
    ended = world.troubled(a=[error, error])
    assert ended.report is not None
    assert ended.report.status == "succeeded"
    assert world.outputs == ["a", "b"]
    first = RETRIES[error].interval_seconds
    assert world.waits == [first, 2 * first]


def test_a_failure_that_does_not_pass_is_given_up_and_the_others_are_done() -> None:
    world = World("a/", "b/")
    ended = world.troubled(a=[LOST] * 100)
    assert ended.failed == ["a/"]
    assert world.outputs == ["b"]
    assert world.seen.answers.count(("a/", LOST)) == 1 + RETRIES[LOST].attempts
    assert ended.report is not None
    assert "a/: WorkerLost no receipt" in ended.report.cause


def test_the_report_says_how_the_last_worker_of_a_lost_partition_ended() -> None:
    world = World("a/", "b/", "c/")
    ending = "its worker process was killed by signal 9 (SIGKILL)"
    world.run(lambda desk: Lossy(desk, ending))
    told = {one["path"]: one for one in world.stored("report.json")["partitions"]}
    assert [told[path]["error"] for path in ("a/", "b/", "c/")] == [LOST, LOST, ""]
    assert told["a/"]["cause"].startswith("no receipt")
    assert told["a/"]["cause"].endswith(f": {ending}")
    assert told["b/"]["cause"] == f"the last receipt says that work was left: {ending}"


@pytest.mark.parametrize("error", ["IntegrityError", "InvalidInput", "KeyError"])
def test_a_failure_that_cannot_pass_is_not_tried_again(error: str) -> None:
    world = World("a/")
    world.troubled(a=[error] * 100)
    assert (world.seen.answers, world.waits) == ([("a/", error)], [])


def test_a_run_here_tries_as_often_as_the_state_machine() -> None:
    states = json.loads(definition().read_text("utf-8"))["States"]
    retriers = states["CompactPartitions"]["ItemProcessor"]["States"]["CompactPartition"]["Retry"]
    found = {
        name: (one["MaxAttempts"], one.get("IntervalSeconds"), one.get("MaxDelaySeconds"))
        for one in retriers
        for name in one["ErrorEquals"]
    }
    for name, mine in RETRIES.items():
        theirs = found["Runtime.ExitError" if name == LOST else name]
        assert theirs == (mine.attempts, mine.interval_seconds, mine.longest_seconds), name
    assert SourceChanged.__name__ in RETRIES
    assert TransientStoreError.__name__ in RETRIES


def test_a_worker_that_ran_out_of_time_is_called_again_with_its_counts() -> None:
    world = World("a/")

    class OneGroupACall(Troubled):
        calls = 0

        def carry_out(self, order: Order) -> Answer:
            self.calls += 1
            assert order.before.calls == self.calls - 1
            return self._desk.carry_out(order, Seconds(lambda: 0.0 if self.calls == 1 else 900.0))

    ended = world.run(lambda desk: OneGroupACall(desk, 1, {}))
    assert world.workers.calls == 2
    assert ended.report is not None
    assert (ended.report.totals.calls, ended.report.totals.objects_in) == (2, 2)


def test_partitions_for_which_there_is_no_time_are_left_and_a_second_call_does_them() -> None:
    world = World("a/", "b/")
    first = world.run(deadline=Seconds(lambda: 59.0 if world.outputs else 900.0))
    assert (first.report, first.left) == (None, ["b/"])
    assert world.outputs == ["a"]
    second = world.run()
    assert second.report is not None
    assert second.report.totals.objects_in == 4
    # The partition that was done is not looked at again.
    assert [path for path, _ in world.seen.answers] == ["a/", "b/"]


def test_spark_for_which_no_time_is_left_is_killed_and_its_partitions_are_left() -> None:
    world = World("a/", "b/", lambda_max_objects=1)
    left = [61.0]

    class Endless(FakeSpark):
        def __init__(self) -> None:
            super().__init__()
            self.stopped = threading.Event()

        def run(self, run_id: str, run_uri: str, on_line: Callable[[str], None]) -> str:
            left[0] = 0.01
            assert self.stopped.wait(60)
            return "killed"

        def stop(self) -> None:
            self.stopped.set()

    ended = world.run(spark=Endless(), deadline=Seconds(lambda: left[0]))
    assert (ended.report, ended.left) == (None, ["a/", "b/"])


def test_an_interrupt_stops_the_workers_and_is_passed_on() -> None:
    world = World("a/", "b/", "c/")

    class Interrupts(Observer):
        def answered(self, order: Order, answer: Answer) -> None:
            raise KeyboardInterrupt

    trouble = {"b/": ["wait for the end"], "c/": ["wait for the end"]}
    world.seen = Interrupts()  # type: ignore[assignment]  # only what is told of counts here
    with pytest.raises(KeyboardInterrupt):
        world.run(lambda desk: Troubled(desk, 2, trouble))
    assert world.workers.stopped.is_set()
    # No report: it would count what was never begun as lost.
    assert not [key for key in world.store.contents("lake") if "report" in key]
    world.seen = Seen()
    again = world.run(run_id="run-2")
    assert again.report is not None
    assert again.report.status == "succeeded"
    assert world.outputs == ["a", "b", "c"]


class FakeSpark:
    def __init__(self, failure: str = "") -> None:
        self.failure = failure
        self.asked: list[Sequence[str]] = []

    def run(self, run_id: str, run_uri: str, on_line: Callable[[str], None]) -> str:
        self.asked.append((run_id, run_uri))
        on_line("half of it")
        return self.failure

    def stop(self) -> None:
        raise AssertionError("nothing was to be stopped")


def test_spark_is_asked_once_for_what_is_oversized_and_fails_the_run_with_its_reason() -> None:
    world = World("a/", "b/", lambda_max_objects=1)
    spark = FakeSpark("no Java here")
    ended = world.run(spark=spark)
    assert spark.asked == [("run-1", "s3://lake/_compactor/compacted/runs/run-1/")]
    assert ended.report is not None
    assert ended.report.cause == "Spark: no Java here"
    assert ended.report.spark == ["a/", "b/"]
    assert "half of it" in {one.spark for one in world.seen.progress}
    assert world.seen.progress[-1].spark == ""


def test_without_spark_oversized_partitions_are_left_and_named() -> None:
    world = World("a/", "b/", lambda_max_objects=1, spark_engine="none")
    spark = FakeSpark()
    ended = world.run(spark=spark)
    assert not spark.asked
    assert [one.path for one in ended.oversized] == ["a/", "b/"]
    assert ended.report is not None
    assert (ended.report.status, ended.report.oversized) == ("succeeded", ["a/", "b/"])


def test_what_is_past_retention_is_cleaned_up_by_the_same_workers() -> None:
    world = World("a/", "b/", delete_after="1d")
    world.run()
    world.clock.advance(2 * DAY)
    ended = world.run(lambda desk: Troubled(desk, 2, {}), run_id="run-2")
    assert ended.report is not None
    assert ended.report.clean_up is not None
    assert ended.report.clean_up.deleted == 4
    assert not world.store.contents("source")
    last = world.seen.progress[-1]
    assert (last.clean_ups_total, last.clean_ups_done, last.deleted) == (2, 2, 4)


def test_an_order_and_an_answer_pass_through_a_message_unchanged() -> None:
    import msgspec

    world = World("a/", "<b>/")
    kept: list[Answer] = []

    class Keeps(Troubled):
        def carry_out(self, order: Order) -> Answer:
            passed = msgspec.json.decode(msgspec.json.encode(order), type=Order)
            assert passed == order
            kept.append(super().carry_out(passed))
            return msgspec.json.decode(msgspec.json.encode(kept[-1]), type=Answer)

    ended = world.run(lambda desk: Keeps(desk, 1, {}))
    assert ended.report is not None
    assert [one.status for one in kept] == [DONE, DONE]
    assert ended.report.totals.objects_in == 4
    assert Answer(MORE).status not in {one.status for one in kept}
    assert Task.COMPACT.value == "compact"


def test_a_second_run_takes_what_is_new_and_lists_each_partition_once_for_its_worker() -> None:
    world = World("a/", "b/")
    world.run()
    world.store.seed("source", "logs/b/2.json", b'{"n":2}\n', last_modified=LONG_AGO)
    world.store.calls.clear()
    ended = world.run(run_id="run-2")
    assert ended.report is not None
    assert (ended.report.status, ended.report.totals.objects_in) == ("succeeded", 1)
    assert [(one.path, one.counts.objects_in) for one in ended.report.partitions] == [
        ("a/", 0),
        ("b/", 1),
    ]
    assert ended.report.skipped["already_committed"].objects == 4


def test_a_partition_with_nothing_new_is_cleaned_up_when_its_retention_has_passed() -> None:
    world = World("a/", "b/", delete_after="7d")
    world.run()
    world.clock.advance(8 * DAY)
    ended = world.run(run_id="run-2")
    assert ended.report is not None
    assert ended.report.clean_up is not None
    assert ended.report.clean_up.deleted == 4
    assert world.store.contents("source") == {}
