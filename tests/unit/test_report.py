"""Receipts and reports: every partition is accounted for, and every failure has its cause."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from compactor import layout, packing, receipts
from compactor.commit_log import SHOWN_QUARANTINED, QuarantineLine
from compactor.errors import IntegrityError, TransientStoreError
from compactor.model import Partition, Skipped, SkipReason
from compactor.receipts import Counts, Receipt, counts_from
from compactor.report import RunIdentity, RunReport, failure_text, report, total
from compactor.report_html import human_bytes, render
from compactor.run_partition import PartitionRun, record_partition
from compactor.settings import Settings
from compactor.work import WorkItem, to_items_json
from tests.support.examples import PARTITION, settings
from tests.support.memory_store import Call, ManualClock, MemoryStore
from tests.support.world import NoDeadline, World

RUN = RunIdentity("run-1", "2026-01-03T00:00:00Z")


class Desk:
    """A store with the work list and receipts of one run."""

    def __init__(self, *paths: str, oversized: tuple[str, ...] = (), **given: Any) -> None:
        self.settings: Settings = settings(**given)
        self.store = MemoryStore(ManualClock())
        self.store.add_bucket("lake")
        self._write("items.json", to_items_json([item(path) for path in paths]))
        self._write("oversized.json", to_items_json([item(path) for path in oversized]))

    def _write(self, name: str, body: bytes) -> None:
        self.store.put(*layout.run_key(self.settings, RUN.run_id, name), body)

    def receipt(self, path: str, status: str = "done", **given: Any) -> None:
        one = Receipt(path, RUN.run_id, status, **given)
        receipts.write(one, self.settings, item(path).partition, self.store)

    def report(self, failure: str = "", spark_failure: str = "") -> RunReport:
        run = replace(RUN, failure=failure, spark_failure=spark_failure)
        return report(run, self.settings, self.store)

    def spark_error(self, body: bytes) -> None:
        self._write("spark-error.json", body)

    def stored(self, name: str) -> str:
        return self.store.get(*layout.run_key(self.settings, RUN.run_id, name)).decode()


def item(path: str) -> WorkItem:
    return WorkItem(path, "source", f"logs/{path}", 10, 100)


# The report.


def test_a_run_whose_partitions_are_all_done_has_succeeded() -> None:
    desk = Desk("a/", "b/", oversized=("c/",), spark_engine="none")
    desk.receipt("a/", counts=Counts(objects_in=3, bytes_in=30, objects_out=1, requests={"GET": 3}))
    desk.receipt(
        "b/", counts=Counts(objects_in=4, bytes_in=40, copied=1, requests={"GET": 1, "PUT": 2})
    )
    found = desk.report()
    assert (found.status, found.cause, found.failed) == ("succeeded", "", [])
    assert found.totals == Counts(
        objects_in=7, bytes_in=70, objects_out=1, copied=1, requests={"GET": 4, "PUT": 2}
    )
    assert [one.path for one in found.partitions] == ["a/", "b/"]
    assert (found.oversized, found.spark) == (["c/"], [])


def test_a_partition_without_a_receipt_was_lost_and_fails_the_run() -> None:
    desk = Desk("a/", "b/")
    desk.receipt("a/", counts=Counts(objects_in=3))
    found = desk.report()
    assert found.status == "failed"
    (lost,) = found.failed
    assert (lost.path, lost.status, lost.error) == ("b/", "failed", "WorkerLost")
    assert found.cause.startswith("b/: WorkerLost no receipt")
    assert found.totals.objects_in == 3


def test_a_partition_whose_last_call_left_work_was_lost_too() -> None:
    desk = Desk("a/")
    desk.receipt("a/", "more", counts=Counts(objects_in=3, calls=1))
    found = desk.report()
    assert found.status == "failed"
    assert found.cause == "a/: WorkerLost the last receipt says that work was left"
    assert found.totals.objects_in == 3


def test_a_failed_partition_fails_the_run_with_its_cause() -> None:
    desk = Desk("")
    desk.receipt("", "failed", error="IntegrityError", cause="the log has no entry 2")
    found = desk.report()
    assert found.status == "failed"
    assert found.cause == "(root): IntegrityError the log has no entry 2"


def test_a_run_that_ended_before_its_partitions_did_has_failed() -> None:
    desk = Desk("a/")
    desk.receipt("a/")
    found = desk.report("States.Timeout: too long")
    assert (found.status, found.cause) == ("failed", "States.Timeout: too long")


def test_a_run_that_found_no_work_list_can_be_reported() -> None:
    desk = Desk()
    for name in ("items.json", "oversized.json"):
        desk.store.remove(*layout.run_key(desk.settings, RUN.run_id, name))
    found = desk.report("InvalidInput: no bucket")
    assert (found.status, found.partitions, found.oversized) == ("failed", [], [])
    assert Desk().report().status == "succeeded"


def test_only_the_first_causes_are_told_and_the_others_counted() -> None:
    found = Desk(*(f"{n}/" for n in range(9))).report()
    assert found.cause.count("WorkerLost") == 3
    assert found.cause.endswith("; and 6 more")


# Partitions that went to Spark.


@pytest.mark.parametrize("engine", ["emr", "emr_serverless"])
def test_partitions_that_spark_did_count_like_all_others(engine: str) -> None:
    desk = Desk("a/", oversized=("b/", "c/"), spark_engine=engine)
    for path, objects in (("a/", 1), ("b/", 20), ("c/", 300)):
        desk.receipt(path, counts=Counts(objects_in=objects))
    found = desk.report()
    assert (found.status, found.cause) == ("succeeded", "")
    assert found.totals.objects_in == 321
    assert [one.path for one in found.partitions] == ["a/", "b/", "c/"]
    assert (found.oversized, found.spark) == ([], ["b/", "c/"])


def test_what_spark_skipped_and_quarantined_is_reported_too() -> None:
    desk = Desk(oversized=("b/",))
    line = QuarantineLine("k", "truncated", "ends early")
    desk.receipt("b/", skipped={"empty": Skipped(2, 0)}, quarantined=[line])
    found = desk.report()
    assert found.skipped["empty"].objects == 2
    assert found.partitions[0].quarantined == [line]


def test_an_oversized_partition_without_a_receipt_fails_the_run() -> None:
    found = Desk(oversized=("b/",)).report()
    assert (found.status, found.failed[0].error) == ("failed", "WorkerLost")
    assert found.cause.startswith("b/: WorkerLost")


def test_the_jobs_own_line_is_the_cause_of_its_failure() -> None:
    desk = Desk("a/", oversized=("b/", "c/"))
    desk.receipt("a/")
    desk.receipt("b/", "failed", error="IntegrityError", cause="a gap")
    desk.receipt("c/", counts=Counts(objects_in=5))
    desk.spark_error(
        b'{"error": "IntegrityError", "cause": "b/: a gap", "partitions": {"done": 1}}'
    )
    found = desk.report(spark_failure="States.TaskFailed: Unknown Error.")
    assert (found.status, found.totals.objects_in) == ("failed", 5)
    assert found.cause == "Spark: IntegrityError: b/: a gap"
    assert [one.path for one in found.failed] == ["b/"]


def test_failures_beside_spark_are_told_beside_it() -> None:
    desk = Desk("a/", oversized=("b/",))
    found = desk.report(spark_failure="States.TaskFailed: no subnet")
    assert found.cause.startswith("Spark: States.TaskFailed: no subnet; a/: WorkerLost")
    assert "b/" not in found.cause


@pytest.mark.parametrize("body", [b"", b"[]", b'{"error": 1}', b'{"cause": "no name"}'])
def test_a_broken_line_of_the_job_hides_nothing(body: bytes) -> None:
    desk = Desk(oversized=("b/",))
    desk.spark_error(body)
    found = desk.report(spark_failure="States.TaskFailed: Unknown Error.")
    assert found.cause == "Spark: States.TaskFailed: Unknown Error."


def test_the_line_of_an_attempt_that_was_made_good_does_not_count() -> None:
    desk = Desk(oversized=("b/",))
    desk.receipt("b/")
    desk.spark_error(b'{"error": "E", "cause": "an earlier attempt"}')
    assert (desk.report().status, desk.report().cause) == ("succeeded", "")


CAUSES = [
    (None, ""),
    ({}, ""),
    ({"Error": "Boom", "Cause": ""}, "Boom"),
    ({"Error": "Boom", "Cause": "two\n lines"}, "Boom: two lines"),
    (
        {"Error": "E", "Cause": '{"Step": {"Status": {"FailureDetails": {"Reason": "Unknown"}}}}'},
        "E: Unknown",
    ),
    (
        {
            "Error": "E",
            "Cause": '{"Cluster": {"Name": "n", "Status": {"State": "TERMINATED_WITH_ERRORS",'
            ' "StateChangeReason": {"Code": "V", "Message": "no such subnet"}}}}',
        },
        "E: no such subnet",
    ),
    ({"Error": "E", "Cause": '{"State": "FAILED", "StateDetails": "exit 1"}'}, "E: exit 1"),
    ({"Error": "E", "Cause": '{"errorMessage": "m", "errorType": "E"}'}, "E: m"),
    ({"Error": "E", "Cause": '{"State": "FAILED"}'}, 'E: {"State": "FAILED"}'),
    ({"Error": "E", "Cause": "[1, 2]"}, "E: [1, 2]"),
]


@pytest.mark.parametrize(("failure", "text"), CAUSES)
def test_a_failure_as_the_workflow_keeps_it_becomes_one_line(
    failure: dict[str, str] | None, text: str
) -> None:
    assert failure_text(failure) == text


def test_the_page_tells_what_went_to_spark_and_why_it_failed() -> None:
    desk = Desk("a/", oversized=("b/",))
    desk.receipt("a/")
    desk.receipt("b/", "failed", error="E", cause="why")
    desk.report(spark_failure="States.TaskFailed: no subnet")
    texts = Page(desk.stored("report.html")).texts
    assert "Spark: States.TaskFailed: no subnet" in texts
    assert {"done", "failed, Spark"} <= set(texts)


# One run and another.


def test_receipts_of_another_run_do_not_count() -> None:
    desk = Desk("a/")
    other = Receipt("a/", "run-2", "done")
    receipts.write(other, desk.settings, item("a/").partition, desk.store)
    assert desk.report().status == "failed"


def test_skips_add_up_over_partitions() -> None:
    desk = Desk("a/", "b/")
    young = SkipReason.TOO_YOUNG.value
    desk.receipt("a/", skipped={young: Skipped(1, 10, ("x",))})
    desk.receipt("b/", skipped={young: Skipped(2, 20, ("y",)), "empty": Skipped(3, 0)})
    skipped = desk.report().skipped
    assert (skipped[young].objects, skipped[young].bytes) == (3, 30)
    assert skipped[young].examples[0] == "x"
    assert skipped["empty"].objects == 3


def test_the_report_is_stored_as_json_that_says_the_same() -> None:
    desk = Desk("a/")
    desk.receipt("a/", counts=Counts(objects_in=5, seconds=1.5))
    found = desk.report()
    document = json.loads(desk.stored("report.json"))
    assert document == msgspec.to_builtins(found)
    assert document["totals"]["objects_in"] == 5
    assert Settings.from_input(document["settings"]) == desk.settings
    for name, kind in (("json", "application/json"), ("html", "text/html; charset=utf-8")):
        bucket, key = layout.run_key(desk.settings, RUN.run_id, f"report.{name}")
        assert desk.store._buckets[bucket].objects[key].content_type == kind


def test_a_receipt_reads_back_as_it_was_written() -> None:
    desk = Desk("a/")
    line = QuarantineLine("k", "truncated", "ends early")
    given: dict[str, Any] = {
        "counts": Counts(records=2, seconds=0.5),
        "quarantined": [line],
        "error": "E",
    }
    desk.receipt("a/", "failed", **given)
    key = layout.receipt_key(desk.settings, RUN.run_id, item("a/").partition)
    assert receipts.decode(desk.store.get(*key)) == Receipt("a/", "run-1", "failed", **given)


def test_totals_add_up_field_by_field() -> None:
    names = [name for name in Counts.__slots__ if name != "requests"]
    one = Counts(**{name: number for number, name in enumerate(names, 1)}, requests={"GET": 1})
    assert total([]) == Counts()
    summed = total([one, one, one])
    assert [getattr(summed, name) for name in names] == [3 * n for n in range(1, len(names) + 1)]
    assert summed.requests == {"GET": 3}


# The page.


class Page(HTMLParser):
    """Tags and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


HOSTILE = "<script>alert('\"1\"')</script>&amp;<img src=x onerror=alert(1)>"


def hostile_page() -> Page:
    uris = {
        "s3_source_uri": f"s3://source/{HOSTILE}",
        "s3_destination_uri": f"s3://lake/{HOSTILE}x",
    }
    desk = Desk(HOSTILE + "/", "", oversized=(HOSTILE,), spark_engine="none", **uris)
    desk.receipt("")
    desk.receipt(
        HOSTILE + "/",
        "failed",
        error=HOSTILE,
        cause=HOSTILE,
        counts=Counts(requests={HOSTILE: 1}),
        skipped={HOSTILE: Skipped(1, 1, (HOSTILE,))},
        quarantined=[QuarantineLine(HOSTILE, HOSTILE, HOSTILE)],
    )
    found = desk.report(HOSTILE)
    assert found.totals.requests == {HOSTILE: 1}
    document = msgspec.to_builtins(found)
    return Page(render({**document, "run_id": HOSTILE, "started_at": HOSTILE, "status": HOSTILE}))


def test_nothing_from_outside_becomes_part_of_the_pages_markup() -> None:
    page = hostile_page()
    ours = {"html", "meta", "title", "style", "h1", "span", "p", "h2", "ul", "li"}
    assert set(page.tags) <= ours | {"table", "tr", "th", "td"}
    assert {name for name, _ in page.attributes} <= {"lang", "charset", "class"}


def test_hostile_names_are_shown_as_they_are() -> None:
    desk = Desk(HOSTILE + "/", oversized=(HOSTILE,), spark_engine="none")
    desk.receipt(
        HOSTILE + "/", quarantined=[QuarantineLine(f"key {HOSTILE}", "truncated", "cut")],
        skipped={"empty": Skipped(1, 1, (f"example {HOSTILE}",))},
    )  # fmt: skip
    desk.report()
    texts = Page(desk.stored("report.html")).texts
    for text in (HOSTILE + "/", HOSTILE, f"key {HOSTILE}", f"example {HOSTILE}"):
        assert text in texts


def test_the_page_shows_totals_failures_and_partitions() -> None:
    desk = Desk("a/", "")
    desk.receipt("a/", counts=Counts(objects_in=12_000, bytes_in=1536, objects_out=1, records=7))
    desk.receipt("", "failed", error="IntegrityError", cause="a gap")
    desk.report()
    texts = Page(desk.stored("report.html")).texts
    for text in ("12,000", "1.5 KiB", "(root)", "(root): IntegrityError a gap", "failed", "7"):
        assert text in texts


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1,023 B"),
        (1536, "1.5 KiB"),
        (5 * 1024**2, "5.0 MiB"),
        (3.25 * 1024**3, "3.2 GiB"),
        (2048 * 1024**4, "2,048.0 TiB"),
    ],
)
def test_bytes_are_shown_with_a_binary_unit(count: float, text: str) -> None:
    assert human_bytes(count) == text


# Receipts of calls.


class Groups:
    """A deadline that passes once so many groups were committed."""

    def __init__(self, store: MemoryStore, groups: int) -> None:
        self.store = store
        self.end = store.count("create") + groups

    def remaining_seconds(self) -> float:
        return 1_000.0 if self.store.count("create") < self.end else 0.0


def various() -> World:
    world = World()
    world.add_variety()
    return world


def call(world: World, counts: Counts, groups: int | None, run_id: str = "run-1") -> Receipt:
    deadline = NoDeadline() if groups is None else Groups(world.store, groups)
    run = PartitionRun(PARTITION, world.settings, world.store, world.clock, deadline, run_id)
    return record_partition(run, counts)


def carried(counts: Counts) -> Counts:
    """Counts as the state machine carries them to the next call."""
    return counts_from(json.loads(json.dumps(msgspec.to_builtins(counts))))


def comparable(receipt: Receipt) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(receipt)
    left_out = ("requests", "calls", "seconds")
    counts = {k: v for k, v in document["counts"].items() if k not in left_out}
    return {**document, "counts": counts}


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MAX_SOURCES_PER_GROUP", 1)


@pytest.mark.usefixtures("small_groups")
def test_counts_add_up_over_calls_that_ran_out_of_time() -> None:
    whole = call(various(), Counts(), None)
    assert whole.counts.calls == 1
    assert whole.counts.objects_out >= 5
    world = various()
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
    stored = world.store.get(*layout.receipt_key(world.settings, "run-1", PARTITION))
    assert receipts.decode(stored) == receipt
    world.runs = 1  # the next run is another one
    world.must_be_finished()


@pytest.mark.usefixtures("small_groups")
def test_a_quarantined_source_is_counted_once_however_many_calls_follow() -> None:
    world = various()
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


def test_what_an_earlier_run_committed_is_not_counted_again() -> None:
    world = various()
    first = call(world, Counts(), None)
    again = call(world, Counts(), None, "run-2")
    assert first.counts.objects_in == 7
    assert again.counts.objects_in == again.counts.quarantined == again.counts.bytes_out == 0
    assert again.skipped["already_committed"].objects == 7
    assert again.skipped["quarantined"].objects == 1


def test_a_failed_call_leaves_a_receipt_with_its_cause() -> None:
    world = various()

    def fail(one: Call) -> None:
        if one.name == "complete_upload":
            raise TransientStoreError("the store is down")

    world.store.hooks.before.append(fail)
    with pytest.raises(TransientStoreError):
        call(world, Counts(), None)
    stored = world.store.get(*layout.receipt_key(world.settings, "run-1", PARTITION))
    receipt = receipts.decode(stored)
    assert (receipt.status, receipt.error) == ("failed", "TransientStoreError")
    assert receipt.cause == "the store is down"
    assert receipt.counts.objects_in > 0, "what was committed is counted"
    assert receipt.counts.calls == 1


def test_a_failed_call_does_not_forget_what_earlier_calls_did(small_groups: None) -> None:
    world = various()
    first = call(world, Counts(), 1)
    assert (first.status, first.counts.objects_in) == ("more", 1)

    def fail(one: Call) -> None:
        if one.name == "list_objects":
            raise TransientStoreError("the store is down")

    world.store.hooks.before.append(fail)
    with pytest.raises(TransientStoreError):
        call(world, carried(first.counts), None)
    stored = world.store.get(*layout.receipt_key(world.settings, "run-1", PARTITION))
    assert receipts.decode(stored).counts.objects_in == 1


def test_even_an_error_nobody_foresaw_leaves_a_receipt_with_its_cause() -> None:
    world = various()
    call(world, Counts(), None)
    bucket, prefix = layout.commits_prefix(world.settings, PARTITION)
    for key in world.store.contents(bucket, prefix):
        world.store.seed(bucket, key, b"no gzip at all")
    with pytest.raises(Exception, match=r"(?i)gzip") as caught:
        call(world, Counts(), None, "run-2")
    stored = world.store.get(*layout.receipt_key(world.settings, "run-2", PARTITION))
    receipt = receipts.decode(stored)
    assert receipt.status == "failed"
    assert receipt.error == type(caught.value).__name__
    assert receipt.cause == str(caught.value)


def test_a_log_with_a_gap_is_told_as_an_integrity_error() -> None:
    world = various()
    call(world, Counts(), None)
    bucket, prefix = layout.commits_prefix(world.settings, PARTITION)
    for key in world.store.contents(bucket, prefix):
        if "checkpoint" in key or key.endswith("1.json.gz"):
            world.store.remove(bucket, key)
    with pytest.raises(IntegrityError):
        call(world, Counts(), None, "run-2")
    stored = world.store.get(*layout.receipt_key(world.settings, "run-2", PARTITION))
    assert receipts.decode(stored).error == "IntegrityError"


def test_a_call_that_ran_out_of_time_sums_up_what_it_did_for_the_next(small_groups: None) -> None:
    world = various()
    call(world, Counts(), 1)
    assert any("checkpoint" in key for key in world.store.contents("lake"))
    heads = world.store.count("head")
    receipt = call(world, Counts(), None)
    assert receipt.counts.objects_in == 6, "one group a source, and the empty one in none"
    assert world.store.count("head") == heads, "no output is looked at again"


def test_a_finished_call_whose_answer_was_lost_reports_the_same_again() -> None:
    world = various()
    first = call(world, Counts(), None)
    again = call(world, Counts(), None)
    assert comparable(again) == comparable(first)


def test_a_checkpoint_of_another_run_does_not_make_a_run_forget(small_groups: None) -> None:
    world = various()
    first = call(world, Counts(), 2)
    other = call(world, Counts(), None, "run-2")
    last = call(world, carried(first.counts), None)
    assert (first.status, other.status, last.status) == ("more", "done", "done")
    whole = call(various(), Counts(), None).counts
    assert first.counts.objects_in + other.counts.objects_in == whole.objects_in
    assert last.counts.objects_in == first.counts.objects_in


def test_publishing_again_what_is_published_is_no_repair(small_groups: None) -> None:
    world = various()
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
    keys = {
        layout.receipt_key(settings(), "run-1", Partition("source", "", path)) for path in paths
    }
    assert len(keys) == len(paths)
    assert all(len(key.encode()) < 512 for _, key in keys)
