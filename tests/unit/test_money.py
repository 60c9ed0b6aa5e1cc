"""What a run costs and saves: each rule of S3's bill, published examples, and the payback."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import pytest

import compactor.money
from compactor.model import SourceObject
from compactor.money import (
    STORAGE_CLASSES,
    Holding,
    RunWork,
    Verdict,
    cost_of,
    dollar_text,
    holdings_of,
)
from compactor.money.storage import scan, scan_requests
from compactor.prices import prices_for
from compactor.sizes import GIB, MIB
from compactor_cli.plan_money import show_verdict

PRICES = prices_for("us-east-1")
# The blog counts 1,000,000 KB as a GB; S3's bill has 1,048,576 of them.
PUBLISHED_GB = GIB / (1_000_000 * 1024)
# Published: "Optimizing storage costs and query performance by compacting small objects" (AWS
# Storage Blog), 10 million objects of 1 KB.
SMALL = Holding.alike(10_000_000, 1024)


def month(holding: Holding, storage_class: str) -> float:
    return holding.in_class(storage_class).month(PRICES)


@pytest.mark.parametrize(
    ("storage_class", "published"), [("STANDARD", 0.23), ("STANDARD_IA", 16.00)]
)
def test_ten_million_objects_of_1_kb_cost_what_aws_publishes(storage_class, published) -> None:
    assert month(SMALL, storage_class) * PUBLISHED_GB == pytest.approx(published, rel=0.001)


def test_compacted_they_cost_in_ia_what_aws_publishes() -> None:
    # It does not say into how many objects; at one for each of 1,000 prefixes to move them costs
    # the published cent.
    compacted = Holding.alike(1_000, 10_000 * 1024)
    assert f"${month(compacted, 'STANDARD_IA') * PUBLISHED_GB:.3f}" == "$0.125"
    assert compacted.move("STANDARD_IA", PRICES) == pytest.approx(0.01)


# Each rule.


@pytest.mark.parametrize("storage_class", ["STANDARD_IA", "ONEZONE_IA", "GLACIER_IR"])
def test_what_is_below_128_kb_is_billed_as_128_kb(storage_class) -> None:
    small = month(Holding.alike(1_000, 1), storage_class)
    assert small == pytest.approx(month(Holding.alike(1_000, 131_072), storage_class))
    assert month(Holding.alike(1_000, 131_073), storage_class) > small
    mixed = Holding.of([1, 131_072, 1 << 20])
    assert month(mixed, storage_class) == pytest.approx(
        month(Holding.of([131_072, 131_072, 1 << 20]), storage_class)
    )


def test_intelligent_tiering_takes_its_fee_of_objects_of_128_kb_and_more_alone() -> None:
    small = Holding.alike(1_000_000, 131_071)
    assert month(small, "INTELLIGENT_TIERING") == pytest.approx(month(small, "STANDARD"))
    large = Holding.alike(1_000_000, 131_072)
    fee = month(large, "INTELLIGENT_TIERING") - month(large, "STANDARD")
    assert fee == pytest.approx(2.5)


@pytest.mark.parametrize("storage_class", ["GLACIER", "DEEP_ARCHIVE"])
def test_an_archived_object_has_40_kb_beside_it(storage_class) -> None:
    dollars = PRICES.of(f"s3.storage.{storage_class.lower()}") * (32 + 1) * 1024 / GIB
    dollars += PRICES.of("s3.storage.standard") * 8 * 1024 / GIB
    assert month(Holding.alike(1, 1024), storage_class) == pytest.approx(dollars)


def test_objects_pay_each_for_their_move_and_not_where_they_are_already() -> None:
    assert Holding.alike(1_000, 1).move("GLACIER_IR", PRICES) == pytest.approx(0.02)
    assert Holding("GLACIER_IR", 2_000, 10).move("GLACIER_IR", PRICES) == 0
    assert Holding("GLACIER_IR", 2_000, 10).move("STANDARD", PRICES) == 0


def test_a_scan_pays_lists_a_get_for_each_object_and_what_is_retrieved() -> None:
    cold = Holding.alike(2_500, MIB).in_class("STANDARD_IA")
    assert scan_requests([cold]) == 3 + 2_500
    assert scan([cold], PRICES) == pytest.approx(3 * 5e-6 + 2_500 * 1e-6 + 2_500 / 1024 * 0.01)
    assert (scan_requests([]), scan([], PRICES)) == (0, 0)


def test_large_objects_are_read_by_ranges() -> None:
    assert Holding.alike(10, 128 * MIB).gets == 20


def test_an_archived_object_is_restored_before_it_is_read() -> None:
    archived = Holding.alike(1_000, MIB).in_class("GLACIER")
    assert archived.read(PRICES) == pytest.approx(1_000 * 4e-7 + 1_000 / 1024 * 0.01 + 0.05)


@pytest.mark.parametrize(
    "region", ["us-east-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1"]
)
def test_every_class_has_a_price_in_every_region(region) -> None:
    prices = prices_for(region)
    holding = Holding.alike(3, MIB)
    for name in STORAGE_CLASSES:
        there = holding.in_class(name)
        assert there.month(prices) > 0
        assert there.read(prices) > 0
        assert (holding.move(name, prices) > 0) == (name != "STANDARD")


def test_a_class_without_known_prices_costs_what_standard_does() -> None:
    unknown = Holding.alike(3, MIB).in_class("REDUCED_REDUNDANCY")
    assert unknown.month(PRICES) == Holding.alike(3, MIB).month(PRICES)
    lines = judged(sources=(unknown,)).lines()
    assert "no prices of REDUCED_REDUNDANCY are known here: taken for STANDARD" in lines


def test_a_run_pays_for_requests_functions_transitions_and_spark() -> None:
    work = RunWork(
        requests={"GET": 1_000_000, "HEAD": 1_000, "PUT": 380, "DELETE": 9, "bytes_read": 9},
        gb_seconds=620,
        invocations=24,
        transitions=104,
        vcpu_hours=1,
        gb_hours=4,
    )
    dollars = cost_of(work, PRICES)
    assert dollars == pytest.approx(
        {
            "GET": 0.4,
            "HEAD": 0.0004,
            "PUT": 0.0019,
            "Lambda": 620 * 1.33334e-5,
            "Lambda invocations": 24 * 2e-7,
            "Step Functions": 0.0026,
            "Spark": 0.8 * 0.052624 + 0.8 * 4 * 0.0057785,
        }
    )
    doubled = cost_of(work + work, PRICES)
    assert sum(doubled.values()) == pytest.approx(2 * sum(dollars.values()))


def test_listed_sources_are_counted_by_their_class() -> None:
    def source(key: str, size: int, storage_class: str) -> SourceObject:
        return SourceObject("b", key, "e", size, 0.0, storage_class)

    listed = [source("a", 1, "STANDARD_IA"), source("b", 9, "STANDARD"), source("c", 2, "STANDARD")]
    assert holdings_of(listed) == (
        Holding("STANDARD", 2, 11, 2, 11),
        Holding("STANDARD_IA", 1, 1, 1, 1),
    )


# The verdict.

RUN = RunWork(requests={"GET": 10_000_000, "LIST": 20_000, "PUT": 2_000})
OUTPUTS = Holding.alike(80, 128_000_000)


def judged(**given: Any) -> Verdict:
    usual = {"sources": (SMALL,), "outputs": (OUTPUTS,), "work": RUN, "prices": PRICES}
    return Verdict(**{**usual, **given})


def test_the_run_is_paid_once_and_each_scan_saves_its_requests() -> None:
    verdict = judged(scans_per_month=1, retention_days=0)
    assert verdict.once == pytest.approx(4 + 0.1 + 0.01)
    # 153 ranges of 64 MiB and a LIST.
    assert verdict.saved_requests == 10_000_000 + 10_000 - 153 - 1
    assert verdict.saved_by_scan == pytest.approx(4 + 0.05, abs=0.001)
    assert verdict.saved_by_storage == pytest.approx(0, abs=0.001)
    assert verdict.payback_days == pytest.approx(verdict.once / verdict.saved_by_month * 365 / 12)


def test_storage_alone_never_pays_it_back() -> None:
    verdict = judged(scans_per_month=0, retention_days=0)
    assert verdict.payback_days is None
    assert verdict.headline.startswith("DOES NOT PAY at 0 scans a month: costs $4.1 once, saves")


def test_sources_that_are_kept_are_paid_for_every_month() -> None:
    verdict = judged(retention_days=None)
    assert verdict.saved_by_storage == pytest.approx(-OUTPUTS.month(PRICES))
    assert any(line.startswith("delete_after: null") for line in verdict.lines())


def test_sources_that_go_are_paid_for_until_then() -> None:
    verdict = judged(retention_days=365 / 12)
    assert verdict.both_copies == pytest.approx(SMALL.month(PRICES))
    assert verdict.once == pytest.approx(4.11 + SMALL.month(PRICES))


def test_reading_sources_of_a_colder_class_costs_more_than_their_gets() -> None:
    cold = Holding.alike(1_000, MIB).in_class("GLACIER_IR")
    verdict = judged(sources=(cold,))
    assert verdict.run["colder classes"] == pytest.approx(
        1_000 * (1e-5 - 4e-7) + 1_000 / 1024 * 0.03
    )
    assert "colder classes" not in judged().run


def test_another_class_is_shown_and_does_not_change_the_verdict() -> None:
    verdict = judged(target_class="GLACIER_IR")
    assert verdict.headline == judged().headline
    present = judged().rows()
    assert verdict.rows()[:2] == present
    sources, outputs = verdict.to_dict()["stored"][2:]
    assert (sources["storage_class"], outputs["storage_class"]) == ("GLACIER_IR", "GLACIER_IR")
    assert sources["dollars_to_move"] == pytest.approx(200)
    assert outputs["dollars_to_move"] == pytest.approx(0.0016)
    assert sources["dollars_a_month"] == pytest.approx(month(SMALL, "GLACIER_IR"))


def test_a_run_that_takes_ten_years_to_pay_does_not() -> None:
    large = Holding.alike(1_000, 128 * MIB)
    verdict = judged(sources=(large,), outputs=(large,), scans_per_month=1, retention_days=0)
    saved = "saves $0 per scan and $0 per month"
    assert verdict.headline == f"DOES NOT PAY at 1 scan a month: costs $4.1 once, {saved}"


def test_the_same_work_costs_less_on_a_machine() -> None:
    work = RunWork(requests=RUN.requests, gb_seconds=9_000, invocations=100, transitions=400)
    verdict = judged(work=work)
    assert verdict.machine_dollars == pytest.approx(4.11)
    assert sum(verdict.run.values()) > 4.11
    assert verdict.lines()[1].endswith("), $4.1 on this machine")


def test_a_verdict_on_nothing_is_one_line(capsys) -> None:
    verdict = judged(sources=(), outputs=())
    show_verdict(verdict)
    assert capsys.readouterr().out == (
        "nothing would be compacted, so nothing is spent and nothing saved\n"
    )
    assert verdict.to_dict()["stored"] == []


def test_the_verdict_is_a_document() -> None:
    document = json.loads(json.dumps(judged(target_class="STANDARD_IA").to_dict()))
    assert document["run"]["requests"] == {"GET": 10_000_000, "LIST": 20_000, "PUT": 2_000}
    assert document["run_dollars"] == pytest.approx(4.11)
    assert document["payback_days"] == pytest.approx(judged().payback_days)
    assert [row["of"] for row in document["stored"]] == ["sources", "outputs"] * 2


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (0, "$0"),
        (1e-9, "<$0.000001"),
        (0.00004123, "$0.000041"),
        (0.4, "$0.40"),
        (4.11, "$4.1"),
        (1234.5, "$1,200"),
        (-0.5, "-$0.50"),
    ],
)
def test_dollars_have_two_digits(dollars, text) -> None:
    assert dollar_text(dollars) == text


def test_the_worked_example_of_the_manual_is_what_is_computed(capsys) -> None:
    manual = (Path(__file__).parents[2] / "docs" / "money.md").read_text("utf-8")
    verdict = Verdict(
        sources=(Holding.alike(1_000_000, 4_096),),
        outputs=(Holding.alike(31, 132_129_032),),
        work=RunWork(
            requests={"GET": 1_000_020, "LIST": 2_020, "PUT": 280},
            gb_seconds=610,
            invocations=12,
            transitions=54,
        ),
        prices=PRICES,
        target_class="GLACIER_IR",
        retention_days=7,
    )
    table = ["| " + " | ".join(row) + " |" for row in verdict.rows()]
    text = " ".join(manual.split())
    for line in (verdict.headline, *table, *verdict.lines()):
        assert " ".join(line.split()) in text


def test_the_example_of_the_package_is_what_it_prints() -> None:
    result = doctest.testmod(compactor.money)
    assert (result.failed, result.attempted > 3) == (0, True)
