"""After a run its report says what it cost."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from compactor.clock import NoDeadline
from compactor.money import RunWork, cost_of
from compactor.partition.inputs import Paid, PartitionRun
from compactor.partition.receipts import Counts, Receipt
from compactor.partition.run import compact_partition
from compactor.prices import prices_for
from compactor.report.cost import RunCost, SparkHours, cost_of_run, spark_hours
from compactor.report.receipt_totals import Gathered
from compactor_handlers import report as handler
from tests.support.desk import RUN, Desk
from tests.support.examples import PARTITION
from tests.support.world import World

CONTEXT: Any = SimpleNamespace(
    get_remaining_time_in_millis=lambda: 900_000,
    function_name="report",
    memory_limit_in_mb=1_024,
    invoked_function_arn="arn:aws:lambda:us-east-1:123456789012:function:report",
    aws_request_id="1",
)
TOTALS = Counts(
    requests={"GET": 1_000, "PUT": 20, "LIST": 5, "bytes_read": 10**9},
    gb_seconds=12.0,
    invocations=1.9999,
)
OUTSIDE, AFTER = {"GET": 10, "PUT": 4, "DELETE": 7}, {"PUT": 3, "LIST": 1}
HOURS = SparkHours(2.0, 8.0)


def cost(**given: Any) -> RunCost:
    parts: dict[str, Any] = {
        "partitions": 5,
        "clean_up": None,
        "hours": HOURS,
        "region": "eu-central-1",
        **given,
    }
    return cost_of_run(TOTALS, OUTSIDE, AFTER, **parts)


def test_all_that_is_charged_is_counted_and_nothing_that_is_free() -> None:
    found = cost()
    # Four GETs and two PUTs are the report's own, and a GET for each receipt.
    assert found.requests == {"GET": 1_019, "LIST": 6, "PUT": 29}
    assert (found.invocations, found.transitions, found.gb_seconds) == (2, 22, 12.0)
    work = RunWork(found.requests, 12.0, 2, "arm64", 22, 2.0, 8.0)
    prices = prices_for("eu-central-1")
    assert found.dollars == pytest.approx(sum(cost_of(work, prices).values()), abs=1e-8)
    assert sum(found.by.values()) == pytest.approx(found.dollars, abs=1e-7)
    assert found.by["Spark"] > 0.8 * 2 * 0.060528
    assert found.prices_of == "eu-central-1"


def test_a_run_without_lambda_pays_for_none_of_it_and_for_no_transition() -> None:
    here = Counts(requests={"GET": 5})
    found = cost_of_run(here, {}, {}, partitions=1, clean_up=None, hours=SparkHours(), region="")
    assert set(found.by) == {"GET", "PUT"}


def test_it_is_reported_in_a_line() -> None:
    assert cost().line == (
        "cost about $0.14 deployed: 1,054 requests, 12 GB-seconds of Lambda, 2.00 vCPU-hours of"
        " Spark"
    )


def test_the_spark_job_s_own_word_counts_and_an_older_one_says_nothing() -> None:
    desk = Desk("a/")
    assert spark_hours(desk.settings, RUN.run_id, desk.store) == SparkHours()
    bucket, key = desk.settings.layout.run(RUN.run_id, "spark-error.json")
    desk.store.put(bucket, key, json.dumps({"error": "x", "vcpu_hours": 1.5}).encode())
    assert spark_hours(desk.settings, RUN.run_id, desk.store) == SparkHours(1.5, 0.0)
    bucket, key = desk.settings.layout.run(RUN.run_id, "spark-result.json")
    desk.store.put(bucket, key, json.dumps({"partitions": {}}).encode())
    assert spark_hours(desk.settings, RUN.run_id, desk.store) == SparkHours()


def test_the_report_has_it_and_the_document_too() -> None:
    desk = Desk("a/", "b/")
    for path in ("a/", "b/"):
        counts = Counts(objects_in=3, calls=1, requests={"GET": 3})
        desk.receipt(path, counts=counts)
    found = desk.report()
    assert found.cost is not None
    assert found.cost.requests["GET"] == 10
    # Receipt and checkpoint of each; history and report.json.
    assert found.cost.requests["PUT"] == 6
    assert found.cost.line in str(found)
    document = found.to_dict()
    assert document["cost"]["dollars"] == found.cost.dollars


def test_what_was_gathered_goes_on_in_another_call() -> None:
    found = Gathered()
    found.add(Receipt("a/", RUN.run_id, "done", Counts(calls=1, objects_in=1)))
    again = msgspec.json.decode(msgspec.json.encode(found), type=Gathered)
    again.add(Receipt("b/", RUN.run_id, "done", Counts(calls=1)))
    assert again.after == {"PUT": 3}


def worked(world: World, earlier: Counts, paid: Paid) -> Counts:
    run = PartitionRun(
        PARTITION, world.settings, world.store, world.clock, NoDeadline(), "run-1", paid=paid
    )
    return compact_partition(run, earlier).counts


def test_a_function_s_time_is_counted_with_its_memory_and_its_share_of_the_call() -> None:
    world = World()
    world.add("a.json", '{{"id": "{}"}}')
    world.store.hooks.before.append(lambda call: world.clock.advance(1.0))
    counts = worked(world, Counts(), Paid(memory_gb=2.0, share=0.25))
    assert counts.seconds > 5
    assert counts.gb_seconds == pytest.approx(2 * counts.seconds)
    assert counts.invocations == 0.25
    assert worked(world, counts, Paid(2.0, 0.5)).invocations == 0.75


def test_the_dashboard_has_spark_only_where_it_used_something(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk("a/", oversized=("b/",), spark_engine="emr_serverless")
    desk.receipt("a/", counts=Counts(objects_in=3))
    desk.receipt("b/", counts=Counts(objects_in=3), by_spark=True)
    monkeypatch.setattr(handler, "store_for", lambda *_: desk.store)
    event = {"run_id": RUN.run_id, "started_at": "", "settings": desk.settings.to_dict()}
    handler.handler(event, CONTEXT)
    assert "SparkVcpuHours" not in capsys.readouterr().out
    place = desk.settings.layout.run(RUN.run_id, "spark-result.json")
    desk.store.put(*place, json.dumps({"vcpu_hours": 2, "gb_hours": 8}).encode())
    handler.handler(event, CONTEXT)
    told = capsys.readouterr().out
    assert '"SparkVcpuHours":[2.0]' in told
    assert '"SparkGbHours":[8.0]' in told


def test_functions_that_are_invoked_on_this_machine_cost_no_time_of_lambda_either_way() -> None:
    counts = Counts(requests={"GET": 5}, invocations=2.0)
    found = cost_of_run(counts, {}, {}, partitions=1, clean_up=None, hours=SparkHours(), region="")
    assert "Lambda" not in found.by
