"""The simulation against real runs: the same requests, where all of it is small enough for both."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

import pytest

from compactor.discovery import parallel
from compactor.discovery.work_list import Discovery, write_work
from compactor.partition import receipts
from compactor.partition.receipts import Counts, Receipt
from compactor.settings.settings import Settings
from tests.scale import bodies, cases, memory, meter, table, wire, workflow
from tests.scale.account import EPOCH, Context, Invocation, account, invoked, on_store
from tests.scale.cases import Case, simulated
from tests.scale.figures import Figures
from tests.scale.fleet import side_by_side
from tests.scale.keys import LAKE_BUCKET, SOURCE_BUCKET, Keys
from tests.scale.meter import Asked, Meter
from tests.scale.services import FUNCTIONS, LambdaService, Services
from tests.support.memory_store import ManualClock, MemoryStore

PARTITIONS, OBJECTS = 20, 2_000
CASE = Case(PARTITIONS, OBJECTS, 5, (("first", 0), ("1 % new", 20), ("nothing new", 0)))


class Processor:
    """Takes the same time for each request, however busy this machine is and large this process.

    A sample is weighed: what garbage is collected of hundreds of other tests would count 325 times.
    """

    # botocore takes 0.6 ms a request, which begins and ends two measurements.
    _SECONDS_EACH = 0.6e-3 / 4

    def __init__(self) -> None:
        self._asked = 0

    def thread_time(self) -> float:
        self._asked += 1
        return 0.0

    def process_time(self) -> float:
        return self._asked * self._SECONDS_EACH


@pytest.fixture(scope="module", autouse=True)
def processor() -> Iterator[None]:
    one = Processor()
    with ExitStack() as stack:
        for module in (meter, wire, bodies):
            stack.enter_context(mock.patch.object(module, "time", one))
        yield


class RealRuns:
    """The same partitions with bodies, in the memory store, through the same handlers."""

    def __init__(self) -> None:
        self.clock = ManualClock(EPOCH)
        self.store = _Store(self.clock)
        self.store.add_bucket(LAKE_BUCKET)
        self._number = 0
        self._there = 0

    def run(self, fresh: int) -> Counter[str]:
        """What a run asks for, after so many objects more have come to each partition."""
        self._add(fresh)
        self._number += 1
        self.store.calls.clear()
        with on_store(self.store, self.clock.now):
            self._carry_out(f"run-{self._number}")
        self.clock.advance(90_000)
        return Counter({kind: n for kind, n in self.store.snapshot().items() if kind.isupper()})

    def _add(self, fresh: int) -> None:
        keys = Keys(PARTITIONS, OBJECTS, fresh)
        for number in range(PARTITIONS):
            for index in range(self._there, keys.in_each):
                key = keys.prefix(number) + keys.name(number, index)
                body = b'{"id": %d}\n' % index
                self.store.seed(SOURCE_BUCKET, key, body, last_modified=EPOCH - 2 * 86_400)
        self._there = keys.in_each

    def _carry_out(self, run_id: str) -> None:
        found = self._call("discover", {"input": CASE.input, "run_id": run_id, "started_at": ""})
        items = json.loads(self.store.contents(LAKE_BUCKET)[found["items"]["key"]])
        assert len(items) == PARTITIONS
        state = {"run_id": run_id, "settings": found["settings"]}
        for item in items:
            done = self._call("compact_partition", {**state, "partition": item})
            assert done["status"] == "done"
        self._call("plan_clean_up", state)
        assert self._call("report", found)["status"] == "succeeded"

    @staticmethod
    def _call(name: str, event: dict[str, Any]) -> dict[str, Any]:
        meter = Meter(FUNCTIONS[name], Services())
        return invoked(name, event, Context(meter, Services(), True, name, 1_024))


class _Store(MemoryStore):
    def within(self, _: object) -> _Store:
        return self


@pytest.fixture(scope="module")
def simulation() -> list[Figures]:
    return list(simulated(CASE, Services()))


@pytest.fixture(scope="module")
def reality() -> Iterator[list[Counter[str]]]:
    runs = RealRuns()
    with ExitStack() as stack:
        # The names that discovery finds are the same, the environment of its account is not.
        stack.enter_context(mock.patch.dict("os.environ", {"COMPACTOR_SPARK": "emr_serverless"}))
        yield [runs.run(fresh) for fresh in (0, 20, 20)]


@pytest.mark.parametrize("number", range(len(CASE.runs)), ids=[title for title, _ in CASE.runs])
def test_a_simulated_run_asks_for_what_a_real_one_asks_for(
    number: int, simulation: list[Figures], reality: list[Counter[str]]
) -> None:
    simulated_run, real = simulation[number], reality[number]
    asked = {kind: simulated_run.of_kind(kind) for kind in ("LIST", "GET", "HEAD", "PUT")}
    assert asked == {kind: real[kind] for kind in asked}


def test_all_sources_are_read_once_and_then_only_what_is_new(simulation: list[Figures]) -> None:
    read = [one.source_gets for one in simulation]
    assert read == [PARTITIONS * OBJECTS, PARTITIONS * 20, 0]


def test_every_goal_is_computed_and_a_goal_that_is_missed_says_so(
    simulation: list[Figures],
) -> None:
    for one in simulation:
        one.memory = {"compact_partition": 3_009.0}
    found = {goal.wanted: goal for goal in table.goals(simulation)}
    assert len(found) == 6
    assert not found["none above its memory"].met
    assert found["history below 5,000 events"].met
    assert found["no invocation above 10 minutes"].met
    simulation[0].longest["discover"] = 1_290.0
    goal = table.goals(simulation)[0]
    assert not goal.met
    assert "Lambda ends it" in goal.found
    page = table.as_markdown(simulation, ["A note."])
    missed = page.count("| **missed** |")
    assert missed >= 2
    assert page.count("\n\nMissed, ") == missed
    assert all(
        line.count("|") == 5 for line in page.splitlines()[: len(table.page_rows(simulation))]
    )


def test_a_sample_stands_for_the_whole() -> None:
    meter = Meter(FUNCTIONS["discover"], Services(), 10.0, lambda asked: asked.about == "source")
    for about in ("state", "source", "source", "lake"):
        meter.asked(Asked("LIST", about, "k"), 0.0)
    total = meter.total()
    assert total.requests == {"LIST state": 1, "LIST source": 20, "LIST lake": 1}
    assert total.alone == pytest.approx(22 * Services().s3.list_seconds)


def test_a_share_of_a_large_partition_stands_for_all_of_it() -> None:
    case = Case(1, 400_000, 1, (("first", 0),), share=100)
    (one,) = simulated(case, Services(functions=LambdaService(seconds=60.0)))
    assert one.source_gets == one.objects == 400_000
    assert one.longest["compact_partition"] < 60.0
    assert one.invocations["compact_partition"] >= 3
    assert one.child == workflow.child(round(one.invocations["compact_partition"]))


def test_all_partitions_are_found_by_one_invocation() -> None:
    with mock.patch.object(cases, "_COPIES", 20):
        (one,) = simulated(Case(100_000, 10, 2, (("first", 0),)), Services())
    assert one.invocations["discover"] == 1
    # A hundred pages of a level, one after another.
    assert one.longest["discover"] < 60


def test_a_worker_of_many_windows_makes_a_tenth_more_lists_than_pages_at_most() -> None:
    case = Case(1, 110_000, 1, (("first", 0),), cases._BY_LAMBDA)
    (one,) = simulated(case, Services())
    assert 110 <= one.requests["LIST source"] <= 1.1 * 110


def test_a_report_of_more_than_a_million_partitions_ends_in_several_calls() -> None:
    copies, partitions = 4_000, 1_300_000
    keys = Keys(copies, 10)
    # What is under way when a call ends counts as often as the sample does.
    with account(keys, Services()) as here, mock.patch.object(parallel, "_AHEAD_PER_WORKER", 1):
        settings = Settings.from_input({**CASE.input, "delete_after": None})
        write_work(Discovery(tuple(keys.items())), settings, "run-1", here.store)
        for item in keys.items():
            receipt = Receipt(
                item.path, "run-1", "done", Counts(10, 40_960, 1, requests={"GET": 9})
            )
            receipts.write(receipt, settings, item, here.store)
        calls: list[Invocation] = []
        event = {"run_id": "run-1", "started_at": "2026-01-04", "settings": settings.to_dict()}
        while not calls or calls[-1].answer["status"] == "more":
            weight = partitions / copies
            calls.append(here.call("report", event, weight, cases._reads_receipts))
            event = calls[-1].answer
    assert calls[-1].answer["totals"]["objects_in"] == 10 * copies
    assert 2 <= len(calls) < 20
    assert max(one.seconds for one in calls) < 600


def test_botocore_makes_every_request_but_the_get_of_a_source() -> None:
    requests: list[str] = []
    with account(Keys(1, 10), Services()) as here:
        events: Any = here.store.client.meta.events
        events.register("before-call.s3", lambda model, **_: requests.append(model.name))
        list(here.store.list_objects(SOURCE_BUCKET, here.wire.keys.prefix(0)))
        here.store.put(LAKE_BUCKET, "_compactor/one", b"x")
        assert here.store.get(LAKE_BUCKET, "_compactor/one") == b"x"
        upload = here.store.create_upload(LAKE_BUCKET, "two")
        parts = [here.store.upload_part(LAKE_BUCKET, "two", upload, 1, b"x")]
        here.store.complete_upload(LAKE_BUCKET, "two", upload, parts, crc32=None)
    assert requests == [
        "ListObjectsV2",
        "PutObject",
        "GetObject",
        "CreateMultipartUpload",
        "UploadPart",
        "CompleteMultipartUpload",
    ]


@pytest.mark.parametrize("after", ["", "a", "0", "middle", "last", "~"])
def test_the_listing_of_formulas_begins_after_any_key(after: str) -> None:
    keys = Keys(3, 2_500, 30)
    every = [keys.prefix(1) + keys.name(1, index) for index in range(keys.in_each)]
    assert every == sorted(every)
    place = {"middle": every[1_234], "last": every[-1]}.get(after, keys.prefix(1) + after)
    with account(keys, Services()) as here:
        pages = here.store.list_objects(SOURCE_BUCKET, keys.prefix(1), start_after=place)
        listed = [one for page in pages for one in page]
    assert [one.key for one in listed] == [key for key in every if key > place]
    assert len({one.etag for one in listed}) == len(listed)


def test_a_history_has_an_event_for_each_step_of_each_state_on_the_way() -> None:
    # Start, task, choice, task, choice, pass; 5, 2, 5, 2 and 2 events, and two of the execution.
    assert workflow.child(2) == workflow.Walked(6, 18)
    assert workflow.parent().events < 100


def test_no_more_workers_run_than_the_account_allows() -> None:
    services = Services(functions=LambdaService(concurrency=10))
    together = side_by_side(100, [5.0], services, 1_000)
    assert together.most == 10
    assert together.seconds == pytest.approx(math.ceil(100 / 10) * 5.0, rel=0.02)
    started = side_by_side(1_000, [2.0], Services(), 1_000)
    assert started.seconds == pytest.approx(1_000 / 100 + 2.0, rel=0.01)
    assert started.most == pytest.approx(200, abs=1)


def test_what_the_log_of_a_large_partition_takes_grows_with_its_sources() -> None:
    few, many = (memory.of_log(sources, 2, Services()) for sources in (70_000, 700_000))
    for name in ("written", "read"):
        # 24 bytes of digests a source, at the least.
        assert many[name] > few[name] + 600_000 * 24 / 1e6
