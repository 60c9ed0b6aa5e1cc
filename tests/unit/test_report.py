"""Reports: every partition is accounted for, and every failure has its cause."""

from __future__ import annotations

import html
import json
import tracemalloc
from collections import deque
from typing import Any

import msgspec
import pytest

from compactor.failures import failure_text
from compactor.log.state import QuarantineLine
from compactor.model import Skipped, SkipReason
from compactor.partition import receipts
from compactor.partition.receipts import Counts, Receipt
from compactor.report import receipt_totals as gathered
from compactor.report.page import render
from compactor.report.report import total
from compactor.settings.settings import Settings
from compactor_cli.summary import totals_of
from tests.support.desk import RUN, Desk, item

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
    assert [one.path for one in found.partitions] == ["a/", "b/", "c/"]
    assert (found.oversized, found.spark) == (["c/"], [])


def test_text_and_page_show_what_each_declaration_covers() -> None:
    desk = Desk("a/", "b/", formats=[{"match": "*.csv", "format": "csv", "header": True}])
    desk.receipt("a/", counts=Counts(objects_in=3, covered={"0": (1, 10), "1": (2, 20)}))
    desk.receipt("b/", counts=Counts(objects_in=4, covered={"1": (4, 2_028)}))
    found = desk.report()
    assert found.totals.covered == {"0": (1, 10), "1": (6, 2_048)}
    lines = [
        'formats declares 6 objects, 2.0 KiB: *.csv: {"format":"csv","header":true}',
        "not declared: 1 object, 10 B, compacted if named, dated or proven",
    ]
    assert str(found).splitlines()[-3:-1] == lines
    document = found.to_dict()
    assert totals_of(document, 1.0, "")["formats"] == [
        {"declaration": lines[0].split(": ", 1)[1], "objects": 6, "bytes": 2_048},
        {"declaration": "", "objects": 1, "bytes": 10},
    ]
    page = html.unescape(render(document))
    assert all(line in page for line in lines)


def test_text_and_page_say_nothing_of_declarations_where_nothing_came() -> None:
    desk = Desk("a/", formats=[{"match": "*.csv", "format": "csv", "header": True}])
    desk.receipt("a/")
    assert "declare" not in str(desk.report())


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
    desk.store.remove(*desk.settings.layout.run(RUN.run_id, "items.json"))
    found = desk.report("InvalidInput: no bucket")
    assert (found.status, found.partitions, found.oversized) == ("failed", [], [])
    assert Desk().report().status == "succeeded"


def test_only_the_first_causes_are_reported_and_the_others_counted() -> None:
    desk = Desk(*(f"{n}/" for n in range(9)))
    for n in range(9):
        desk.receipt(f"{n}/", status="failed", error="IntegrityError", cause=f"cause {n}")
    found = desk.report()
    assert found.cause.count("IntegrityError") == 3
    assert found.cause.endswith("; and 6 more")


# Very many partitions.


@pytest.fixture
def _tells_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered, "SHOWN_PARTITIONS", 3)


@pytest.mark.usefixtures("_tells_three")
def test_of_very_many_partitions_the_failed_and_the_largest_are_reported_and_all_are_summed() -> (
    None
):
    desk = Desk(*(f"{n}/" for n in range(9)))
    for n in range(8):
        counts = Counts(objects_in=n, bytes_in=n * 10, requests={"GET": n})
        desk.receipt(f"{n}/", "failed" if n == 1 else "done", counts=counts)
    found = desk.report()
    assert (found.partition_count, found.failed_count) == (9, 2)
    assert [(one.path, one.status) for one in found.partitions] == [
        ("1/", "failed"),
        ("7/", "done"),
        ("8/", "failed"),
    ]
    assert found.totals == Counts(objects_in=28, bytes_in=280, requests={"GET": 28})
    document = json.loads(desk.stored("report.json"))
    assert totals_of(document, 1.0, "")["partitions"] == 9


@pytest.mark.usefixtures("_tells_three")
def test_failures_that_are_not_reported_one_by_one_are_counted() -> None:
    found = Desk(*(f"{n}/" for n in range(9))).report()
    assert (len(found.failed), found.failed_count) == (3, 9)
    assert found.cause.endswith("; and 6 more")


def test_few_of_very_many_quarantined_sources_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered, "SHOWN_SOURCES", 5)
    desk = Desk("a/", "b/", "c/")
    for path in ("a/", "b/", "c/"):
        lines = [QuarantineLine(f"{path}{n}", "binary", "") for n in range(3)]
        desk.receipt(path, counts=Counts(quarantined=3), quarantined=lines)
    found = desk.report()
    assert [len(one.quarantined) for one in found.partitions] == [3, 2, 0]
    assert found.totals.quarantined == 9


def test_what_a_report_holds_does_not_grow_with_its_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gathered, "SHOWN_PARTITIONS", 50)
    few, many = (_peak_of(Desk(*(f"part={n:06}/" for n in range(count)))) for count in (500, 4_000))
    # It was 2.5 KB a partition; what grows now is the body of the list, which this store holds.
    assert (many - few) / 3_500 < 400


def _peak_of(desk: Desk) -> int:
    """Bytes allocated at most; the store's own record of its calls left out."""
    desk.store.calls.clear()
    monkey = pytest.MonkeyPatch()
    monkey.setattr(desk.store, "calls", deque(maxlen=0))
    tracemalloc.start()
    try:
        desk.report()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        monkey.undo()


# Partitions that went to Spark.


@pytest.mark.parametrize("engine", ["emr_serverless", "j-2AXXXXXXGAPLF"])
def test_partitions_that_spark_did_count_like_all_others(engine: str) -> None:
    desk = Desk("a/", oversized=("b/", "c/"), spark_engine=engine)
    for path, objects in (("a/", 1), ("b/", 20), ("c/", 300)):
        desk.receipt(path, counts=Counts(objects_in=objects), by_spark=path != "a/")
    found = desk.report()
    assert (found.status, found.cause) == ("succeeded", "")
    assert found.totals.objects_in == 321
    assert [one.path for one in found.partitions] == ["a/", "b/", "c/"]
    assert (found.oversized, found.spark) == ([], ["b/", "c/"])


def test_what_spark_skipped_and_quarantined_is_reported_too() -> None:
    desk = Desk(oversized=("b/",))
    line = QuarantineLine("k", "truncated", "ends early")
    desk.receipt("b/", by_spark=True, skipped={"empty": Skipped(2, 0)}, quarantined=[line])
    found = desk.report()
    assert found.skipped["empty"].objects == 2
    assert found.partitions[0].quarantined == [line]


def test_an_oversized_partition_without_a_receipt_of_spark_fails_the_run() -> None:
    found = Desk(oversized=("b/",)).report()
    assert (found.status, found.failed[0].error) == ("failed", "WorkerLost")
    assert found.cause.startswith("b/: WorkerLost")


def test_the_jobs_own_line_is_the_cause_of_its_failure() -> None:
    desk = Desk("a/", oversized=("b/", "c/"))
    desk.receipt("a/")
    desk.receipt("b/", "failed", by_spark=True, error="IntegrityError", cause="a gap")
    desk.receipt("c/", by_spark=True, counts=Counts(objects_in=5))
    desk.spark_error(
        b'{"error": "IntegrityError", "cause": "b/: a gap", "partitions": {"done": 1}}'
    )
    found = desk.report(spark_failure="States.TaskFailed: Unknown Error.")
    assert (found.status, found.totals.objects_in) == ("failed", 5)
    assert found.cause == "Spark: IntegrityError: b/: a gap"
    assert [one.path for one in found.failed] == ["b/"]


def test_failures_beside_spark_are_reported_beside_it() -> None:
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
    desk.receipt("b/", by_spark=True)
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


def test_the_page_shows_what_went_to_spark_and_why_it_failed() -> None:
    desk = Desk("a/", oversized=("b/",))
    desk.receipt("a/")
    desk.receipt("b/", "failed", by_spark=True, error="E", cause="why")
    desk.report(spark_failure="States.TaskFailed: no subnet")
    text = desk.page.text
    assert "Spark States.TaskFailed: no subnet" in text
    assert "b/ E why" in text
    assert "by Spark: b/" in text


# One run and another.


def test_receipts_of_another_run_do_not_count() -> None:
    desk = Desk("a/")
    other = Receipt("a/", "run-2", "done")
    receipts.write(other, desk.settings, item("a/"), desk.store)
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
    assert document == {"version": 1, **json.loads(json.dumps(msgspec.to_builtins(found)))}
    assert document["totals"]["objects_in"] == 5
    assert Settings.from_input(document["settings"]) == desk.settings
    bucket, key = desk.settings.layout.run(RUN.run_id, "report.json")
    assert desk.store._buckets[bucket].objects[key].content_type == "application/json"


def test_a_receipt_reads_back_as_it_was_written() -> None:
    desk = Desk("a/")
    line = QuarantineLine("k", "truncated", "ends early")
    given: dict[str, Any] = {
        "counts": Counts(records=2, seconds=0.5),
        "quarantined": [line],
        "error": "E",
    }
    desk.receipt("a/", "failed", **given)
    key = desk.settings.layout.receipt(RUN.run_id, item("a/"))
    assert receipts.decode(desk.store.get(*key)) == Receipt("a/", "run-1", "failed", **given)


def test_totals_add_up_field_by_field() -> None:
    names = [name for name in Counts.__slots__ if name not in ("requests", "covered")]
    numbers: dict[str, Any] = {name: number for number, name in enumerate(names, 1)}
    one = Counts(**numbers, requests={"GET": 1}, covered={"0": (1, 10), "2": (2, 20)})
    assert total([]) == Counts()
    summed = total([one, one, one])
    assert [getattr(summed, name) for name in names] == [3 * n for n in range(1, len(names) + 1)]
    assert summed.requests == {"GET": 3}
    assert summed.covered == {"0": (3, 30), "2": (6, 60)}
