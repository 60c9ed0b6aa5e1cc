"""What a run costs and saves: each rule of S3's bill, published examples, and the payback."""

from __future__ import annotations

import doctest
import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

import compactor.money
from compactor.model import SourceObject
from compactor.money import (
    Holding,
    RunWork,
    Shape,
    Verdict,
    cost_of,
    rounded,
    shown,
    total,
    verdict,
)
from compactor.money.storage import a_month, to_delete_early, to_move, to_read_once, to_scan
from compactor.prices import Price, Prices, prices_for
from compactor.settings.storage_classes import STORAGE_CLASSES
from compactor.sizes import GIB

PRICES = prices_for("us-east-1")
# The blog counts 1,000,000 KB as a GB; S3's bill has 1,048,576 of them.
PUBLISHED_GB = GIB / (1_000_000 * 1024)


def month(shape: Shape, storage_class: str, scans: float = 1) -> float:
    return total(a_month(shape.moved(storage_class), PRICES, scans))


# Published: "Optimizing storage costs and query performance by compacting small objects" (AWS
# Storage Blog), 10 million objects of 1 KB.
SMALL = Shape.alike(10_000_000, 1024)


@pytest.mark.parametrize(
    ("storage_class", "published"), [("STANDARD", "$0.23"), ("STANDARD_IA", "$16.00")]
)
def test_ten_million_objects_of_1_kb_cost_what_aws_publishes(storage_class, published) -> None:
    assert shown(month(SMALL, storage_class) * PUBLISHED_GB) == published


def test_compacted_they_cost_in_ia_what_aws_publishes() -> None:
    # It does not say into how many objects; at one for each of 1,000 prefixes to move them costs
    # the published cent.
    compacted = Shape.alike(1_000, 10_000 * 1024)
    assert f"${month(compacted, 'STANDARD_IA') * PUBLISHED_GB:.3f}" == "$0.125"
    assert shown(total(to_move(compacted, "STANDARD_IA", PRICES))) == "$0.01"


def test_by_the_bill_s_own_gb_the_same_costs_a_twentieth_less() -> None:
    assert pytest.approx(1.048576) == PUBLISHED_GB
    assert shown(month(SMALL, "STANDARD")) == "$0.22"
    assert shown(month(SMALL, "STANDARD_IA")) == "$15.26"


def test_a_thousand_prefixes_cost_22_cents_only_without_what_depends_on_their_objects() -> None:
    # The example is not told with objects, memory and seconds of a prefix. Of a run of this
    # project, all that hangs on the number of prefixes alone is below it: four transitions, a
    # call, and 11 requests of 5 cents ten thousand.
    fixed = RunWork(requests={"PUT": 8_000, "LIST": 3_000}, transitions=4_014, invocations=1_000)
    assert total(cost_of(fixed, PRICES)) == pytest.approx(0.155, abs=0.001)
    # What is left of the 22 cents pays for 3.7 seconds of a GB each at the price of x86_64, or for
    # 160 GETs: not for the 10,000 objects a prefix of the example beside it, which cost $4.
    left = 0.22 - 0.155
    assert left / 1_000 / PRICES.of("lambda.gb_second.x86_64") == pytest.approx(3.9, abs=0.1)
    assert left / 1_000 / PRICES.of("s3.get") == pytest.approx(162, abs=2)
    assert total(cost_of(RunWork(requests={"GET": 10_000_000}), PRICES)) == pytest.approx(4)


# Each rule.


@pytest.mark.parametrize("storage_class", ["STANDARD_IA", "ONEZONE_IA", "GLACIER_IR"])
def test_what_is_below_128_kb_is_billed_as_128_kb(storage_class) -> None:
    small = month(Shape.alike(1_000, 1), storage_class)
    assert small == pytest.approx(month(Shape.alike(1_000, 131_072), storage_class))
    assert month(Shape.alike(1_000, 131_073), storage_class) > small
    mixed = Shape.of([1, 131_072, 1 << 20])
    assert month(mixed, storage_class) == pytest.approx(
        month(Shape.of([131_072, 131_072, 1 << 20]), storage_class)
    )


def test_intelligent_tiering_takes_its_fee_of_objects_of_128_kb_and_more_alone() -> None:
    small = Shape.alike(1_000_000, 131_071)
    assert month(small, "INTELLIGENT_TIERING") == pytest.approx(month(small, "STANDARD"))
    large = Shape.alike(1_000_000, 131_072)
    fee = month(large, "INTELLIGENT_TIERING") - month(large, "STANDARD")
    assert fee == pytest.approx(2.5)


def test_intelligent_tiering_keeps_small_objects_at_the_price_of_what_is_read() -> None:
    seldom = 0.5
    small, large = Shape.alike(8, 1 << 10), Shape.alike(1, 1 << 30)
    assert month(small, "INTELLIGENT_TIERING", seldom) == month(small, "STANDARD")
    assert month(large, "INTELLIGENT_TIERING", seldom) < month(large, "STANDARD") * 0.6


@pytest.mark.parametrize("storage_class", ["GLACIER", "DEEP_ARCHIVE"])
def test_an_archived_object_has_40_kb_beside_it(storage_class) -> None:
    one = PRICES.of(f"s3.storage.{storage_class.lower()}") * (32 + 1) * 1024 / GIB
    one += PRICES.of("s3.storage.standard") * 8 * 1024 / GIB
    assert month(Shape.alike(1, 1024), storage_class) == pytest.approx(one)


def test_objects_pay_each_for_their_move_and_not_where_they_are_already() -> None:
    there = Shape((Holding("GLACIER_IR", 2_000, 10),)) + Shape.alike(1_000, 1)
    assert total(to_move(there, "GLACIER_IR", PRICES)) == pytest.approx(0.02)
    assert to_move(there, "STANDARD", PRICES) == ()


def test_a_scan_pays_lists_a_get_for_each_part_and_what_is_retrieved() -> None:
    shape = Shape.alike(2_500, 1 << 20, storage_class="STANDARD_IA", parts=5_000)
    assert total(to_scan(shape, PRICES)) == pytest.approx(
        3 * 5e-6 + 5_000 * 1e-6 + 2_500 / 1024 * 0.01
    )
    assert to_scan(Shape(), PRICES) == ()


def test_to_read_sources_of_a_cold_class_costs_more_than_their_gets() -> None:
    assert to_read_once(Shape.alike(9, 9), PRICES) == ()
    cold = Shape.alike(1_000, 1 << 20, storage_class="GLACIER_IR")
    assert total(to_read_once(cold, PRICES)) == pytest.approx(
        1_000 * (1e-5 - 4e-7) + 1_000 / 1024 * 0.03
    )


def test_every_class_has_a_price_in_every_region() -> None:
    shape = Shape.alike(3, 1 << 20)
    for region in ("us-east-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1"):
        prices = prices_for(region)
        for name in STORAGE_CLASSES:
            found = (*a_month(shape.moved(name), prices), *to_scan(shape.moved(name), prices))
            own = {price.region for one in found for price in one.prices}
            assert own == {region}


def test_a_run_pays_for_requests_functions_transitions_and_spark() -> None:
    work = RunWork(
        requests={"GET": 1_000_000, "HEAD": 1_000, "PUT": 380, "DELETE": 9, "bytes_read": 9},
        gb_seconds=620,
        invocations=24,
        transitions=104,
        vcpu_hours=1,
        gb_hours=4,
    )
    found = {one.name: one.dollars for one in cost_of(work, PRICES)}
    assert found == pytest.approx(
        {
            "GET": 0.4,
            "HEAD": 0.0004,
            "PUT": 0.0019,
            "Lambda": 620 * 1.33334e-5,
            "Lambda, invocations": 24 * 2e-7,
            "Step Functions": 0.0026,
            "Spark, processors": 0.8 * 0.052624,
            "Spark, memory": 0.8 * 4 * 0.0057785,
        }
    )
    assert total(cost_of(work + work, PRICES)) == pytest.approx(2 * sum(found.values()))


def object_of(size: int, storage_class: str, written_at: float) -> SourceObject:
    return SourceObject("b", "k", "e", size, written_at, storage_class)


# The verdict.

RUN = RunWork(requests={"GET": 10_000_000, "LIST": 20_000, "PUT": 2_000})
OUTPUTS = Shape.alike(80, 128_000_000)


def judged(**given: Any) -> Verdict:
    return verdict(SMALL, OUTPUTS, RUN, PRICES, **given)


def test_what_storage_never_pays_is_reported_and_from_which_scan_on_it_pays() -> None:
    found = judged(scans_per_month=0)
    assert (found.payback_days, found.storage_days, found.payback_scans) == (None, None, 2)
    assert found.lines()[-1] == (
        "payback: never at 0 scans a month: 10,000,000 objects of 1.0 KiB in STANDARD save $0 a"
        " month by storage against $4.33 spent once; it pays from scan 2 on, not by storage"
    )


def test_in_ia_the_same_saves_ten_cents_a_month_against_four_dollars() -> None:
    found = judged(scans_per_month=0, target_class="STANDARD_IA")
    assert shown(found.saved_by_storage) == "$0.10"
    assert shown(found.once) == "$4.33"
    assert found.payback_days == pytest.approx(found.once / found.saved_by_storage * 365 / 12)


def test_with_scans_it_pays_after_so_many_and_in_so_many_days() -> None:
    found = judged(scans_per_month=30)
    assert found.payback_days == pytest.approx(found.once / found.saved_by_month * 365 / 12)
    assert "payback: after 2 scans, 1 day at 30 scans a month;" in found.lines()[-1]
    assert found.pays_within(2)
    assert not found.pays_within(0.5)


def test_sources_that_are_never_deleted_cost_month_by_month() -> None:
    kept = judged(retention_days=None, scans_per_month=0)
    assert kept.saved_by_storage == pytest.approx(-month(SMALL, "STANDARD"))
    assert kept.payback_days is None
    assert not kept.pays_within(1e9)
    assert "the sources stay beside the outputs for ever" in kept.lines()[2]
    assert "cost $0.22 more a month by storage" in kept.lines()[-1]


def test_both_copies_are_paid_for_until_retention_ends() -> None:
    short, long = judged(retention_days=0), judged(retention_days=73)
    more = month(SMALL, "STANDARD") * 73 * 12 / 365
    assert long.once - short.once == pytest.approx(more)


def test_sources_below_128_kb_are_not_taken_to_ia_without_compaction() -> None:
    found = judged(target_class="STANDARD_IA")
    assert found.before == SMALL
    assert found.left.once == ()


def test_where_lifecycle_alone_would_save_compaction_is_compared_with_that() -> None:
    large = Shape.alike(1_000_000, 1 << 20)
    run = RunWork(requests={"GET": 1_000_000})
    outputs = Shape.alike(8_000, (1_000_000 << 20) // 8_000)
    given: dict[str, Any] = {
        "scans_per_month": 0,
        "target_class": "STANDARD_IA",
        "retention_days": 0,
    }
    found = verdict(large, outputs, run, PRICES, **given)
    assert [one.name for one in found.left.once] == ["transitions, STANDARD_IA"]
    assert found.saved_by_storage == pytest.approx(0, abs=1e-6)
    # It pays at once, for what lifecycle would take: $10 of transitions, not $0.40 of GETs.
    assert found.once == pytest.approx(0.4 + 0.08 - 10)
    assert found.lines()[-1] == "payback: immediately: without compaction more would be spent"


# 80 outputs of 128,000,000 bytes.
OUTPUTS_GB = 80 * 128_000_000 / 1_073_741_824


def test_where_scans_make_standard_cheaper_both_figures_and_the_key_are_said() -> None:
    found = judged(target_class="GLACIER_IR", scans_per_month=30)
    retrieval = OUTPUTS_GB * 0.03
    # A scan is one LIST and 80 GETs.
    glacier = OUTPUTS_GB * 0.004 + 30 * (0.005 / 1_000 + 80 * 0.01 / 1_000 + retrieval)
    standard = OUTPUTS_GB * 0.023 + 30 * (0.005 / 1_000 + 80 * 0.0004 / 1_000)
    minimum, cheaper = found.lines()[3:5]
    assert minimum == (
        f"outputs in GLACIER_IR: each scan costs ${retrieval:.2f} of retrieval, and each output is"
        " billed for at least 90 days"
    )
    assert cheaper == (
        f"at 30 scans a month these outputs cost ${glacier:.2f} a month in GLACIER_IR and"
        f" ${standard:.2f} in STANDARD; the deployment key lifecycle={{}} keeps them there"
    )
    assert found.to_dict()["outputs"] == {
        "retrieval_dollars_a_scan": pytest.approx(retrieval),
        "minimum_days": 90,
        "dollars_a_month": {
            "GLACIER_IR": pytest.approx(glacier),
            "STANDARD": pytest.approx(standard),
            "INTELLIGENT_TIERING": pytest.approx(standard + 80 * 0.0025 / 1_000),
        },
    }


def test_between_the_two_intelligent_tiering_is_cheapest() -> None:
    found = judged(target_class="GLACIER_IR", scans_per_month=0.5)
    tiered = OUTPUTS_GB * 0.0125 + 80 * 0.0025 / 1_000 + 0.5 * 37e-6
    assert f"and ${tiered:.2f} in INTELLIGENT_TIERING" in found.lines()[4]
    assert 'lifecycle={"intelligent_tiering": 30} keeps' in found.lines()[4]


@pytest.mark.parametrize(
    ("storage_class", "scans", "days"),
    [
        ("STANDARD_IA", 0.0, 30),
        ("ONEZONE_IA", 0.0, 30),
        ("GLACIER_IR", 0.2, 90),
        ("GLACIER", 0.0, 90),
        ("DEEP_ARCHIVE", 0.0, 180),
    ],
)
def test_a_class_that_is_cheapest_has_one_line_with_its_minimum_of_days(
    storage_class, scans, days
) -> None:
    lines = judged(target_class=storage_class, scans_per_month=scans).lines()
    assert len(lines) == 6
    assert lines[3].endswith(f"billed for at least {days} days")


def test_classes_without_a_fee_for_retrieval_are_not_mentioned() -> None:
    assert len(judged(scans_per_month=0).lines()) == 5
    assert len(judged(target_class="INTELLIGENT_TIERING", scans_per_month=0).lines()) == 5


def test_spark_on_x86_64_costs_a_quarter_more_than_on_arm64() -> None:
    work = RunWork(vcpu_hours=10, gb_hours=40)
    costs = [
        total(cost_of(msgspec.structs.replace(work, architecture=one), PRICES))
        for one in ("arm64", "x86_64")
    ]
    assert costs[1] == pytest.approx(10 * 0.052624 + 40 * 0.0057785)
    assert costs[1] / costs[0] == pytest.approx(1.25)


def test_a_source_deleted_before_the_minimum_of_its_class_is_charged_for_the_rest() -> None:
    day, now = 86_400.0, 1_800_000_000.0
    listed = [
        # Deleted after 40 of 90 days, 90 of 90, and 200 of 90.
        object_of(GIB, "GLACIER_IR", now - 10 * day),
        object_of(GIB, "GLACIER_IR", now - 60 * day),
        object_of(GIB, "GLACIER_IR", now - 170 * day),
        # Deleted after 30 of 30 days; with an index of 32 KB after 30 of 180.
        object_of(1_000, "STANDARD_IA", now),
        object_of(1_000, "DEEP_ARCHIVE", now),
        object_of(GIB, "STANDARD", now),
    ]
    shape = Shape.of_sources(listed, deleted_at=now + 30 * day)
    found = {one.name: one.dollars for one in to_delete_early(shape, PRICES)}
    assert found == pytest.approx(
        {
            "early deletion, GLACIER_IR": 0.004 * 50 * 12 / 365,
            "early deletion, DEEP_ARCHIVE": 0.00099 * (1_000 + 32 * 1024) / GIB * 150 * 12 / 365,
        }
    )
    assert not to_delete_early(Shape.of_sources(listed), PRICES)
    with_early = verdict(shape, OUTPUTS, RUN, PRICES)
    without = verdict(Shape.of_sources(listed), OUTPUTS, RUN, PRICES)
    assert with_early.once - without.once == pytest.approx(sum(found.values()))


def test_what_an_account_may_be_charged_for_each_request_is_named_and_not_counted() -> None:
    work = RunWork(requests={"GET": 1_000_000, "LIST": 1_000, "PUT": 9_000, "DELETE": 5_000_000})
    found = verdict(SMALL, OUTPUTS, work, PRICES)
    assert [one.dollars for one in found.aside] == pytest.approx(
        [1_009_000 * 3e-6, 1_010_000 * 1e-6, 1_010_000 * 8e-7]
    )
    assert found.lines()[-2] == (
        "not counted, where your account has them on: KMS, for keys without a bucket key $3.03,"
        " data events of CloudTrail $1.01, S3 Protection of GuardDuty $0.81"
    )
    assert total(found.run) == pytest.approx(total(cost_of(work, PRICES)))


def test_of_outputs_that_shrink_storage_pays() -> None:
    found = verdict(
        Shape.alike(1_000, 1 << 30),
        Shape.alike(2_000, 1 << 27),
        RunWork(requests={"GET": 1_000}),
        PRICES,
        scans_per_month=0,
    )
    assert found.saved_by_storage == pytest.approx(750 * 0.023)
    assert found.storage_days == found.payback_days
    assert "by storage alone" in found.lines()[-1]


def test_nothing_to_compact_is_reported_as_that() -> None:
    found = verdict(Shape(), Shape(), RunWork(), PRICES)
    assert found.lines() == ("nothing would be compacted, so nothing is spent and nothing saved",)


def test_a_region_and_a_class_without_prices_are_reported() -> None:
    held = Shape.alike(10, 10, storage_class="OUTPOSTS")
    lines = verdict(held, Shape.alike(1, 100), RunWork(), prices_for("eu-nowhere-9")).lines()
    assert lines[-2:] == (
        "no prices of eu-nowhere-9 are known here: costs are those of us-east-1",
        "no prices of OUTPOSTS are known here: taken for STANDARD",
    )


def test_every_figure_can_be_followed_to_its_price_and_the_price_to_its_source() -> None:
    found = judged(target_class="GLACIER_IR")
    text = "\n".join(found.explain())
    assert "  GET = GET requests x price = 10,000,000 x $0.0004 / 1,000 = $4.00" in text
    assert "saved by a scan = scan of the sources - scan of the outputs = $4.05 - $0.29" in text
    for _, figures in found.figures():
        for one in figures:
            assert one.explained in text
            for price in one.prices:
                assert f"{price.unit}, us-east-1: ${price.dollars:g}" in text
                assert price.source in text


def test_of_explained_figures_the_numbers_give_the_amount() -> None:
    for _, figures in judged(target_class="DEEP_ARCHIVE").figures():
        for one in figures:
            if len(one.prices) == 1 and one.numbers.count(" x ") == 1:
                count, each = one.numbers.replace(",", "").replace("$", "").split(" x ")
                dollars, _, units = each.partition(" / ")
                expected = float(count) * float(dollars) / float(units or 1)
                if not one.name.startswith("both copies"):
                    assert one.dollars == pytest.approx(expected, rel=1e-4)


def test_the_table_and_the_document_say_the_same() -> None:
    found = judged()
    rows = {name: cells for name, *cells in found.rows()}
    month = total(found.left.month) + 30 * total(found.left.scan)
    assert rows["Sources as they are"] == ["$0", "$4.0", rounded(month)]
    assert rows["Compacted"][:2] == ["$4.3", "$0.000037"]
    assert rows["Saved"] == ["-$4.3", "$4.0", rounded(found.saved_by_month)]
    document = json.loads(json.dumps(found.to_dict()))
    assert document["once_dollars"] == pytest.approx(found.once)
    assert document["payback_scans"] == 2
    assert document["lines"] == list(found.lines())
    run = [one["dollars"] for one in document["figures"] if one["of"] == "once, with compaction"]
    assert sum(run) == pytest.approx(found.once)


def test_the_headline_says_after_how_many_scans_it_pays_and_the_amounts() -> None:
    pays = judged()
    assert pays.headline == (
        "PAYS after 2 scans (1 day at 30 scans a month): costs $4.3 once, saves $4.0 per scan"
        " and $120 per month"
    )
    never = judged(scans_per_month=0)
    assert never.headline == (
        "DOES NOT PAY at 0 scans a month: costs $4.3 once, saves $4.0 per scan and $0 per month;"
        " scans alone pay from scan 2 on"
    )
    assert (pays.pays, never.pays) == (True, False)
    few = verdict(Shape.alike(10, 1 << 30), Shape.alike(5, 1 << 31), RUN, PRICES)
    assert few.headline.startswith("DOES NOT PAY at 30 scans a month: costs $")


def test_the_basis_is_a_deployed_run_where_functions_are_priced() -> None:
    assert judged().basis.startswith("priced as a run on this machine")
    functions = RunWork(requests=RUN.requests, gb_seconds=1e6, invocations=9, transitions=1_000)
    found = verdict(SMALL, OUTPUTS, functions, PRICES)
    assert found.basis.startswith("priced as a deployed run")
    assert found.machine_dollars == pytest.approx(total(judged().run))
    assert "on this machine it costs $4.1," in found.basis


def test_athena_s_own_price_is_named_beside_the_figures() -> None:
    bill = rounded(SMALL.bytes / 2**40 * 5)
    assert f"besides, it bills {bill} for the bytes" in judged().athena
    half = verdict(SMALL, Shape.alike(40, 128_000_000), RUN, PRICES).athena
    assert f"instead of {bill} for" in half


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (1_234.5, "$1,200"),
        (99.6, "$100"),
        (4.05, "$4.0"),
        (0.1, "$0.10"),
        (-0.0018234, "-$0.0018"),
        (2e-7, "<$0.000001"),
        (0.0, "$0"),
    ],
)
def test_amounts_of_the_table_have_two_significant_digits(dollars, text) -> None:
    assert rounded(dollars) == text


def test_dearer_prices_make_everything_dearer() -> None:
    twice = {name: replace_dollars(one) for name, one in PRICES.by_name.items()}
    dear = verdict(SMALL, OUTPUTS, RUN, Prices("far", "far", twice))
    assert dear.once == pytest.approx(2 * judged().once)
    assert dear.payback_days == pytest.approx(judged().payback_days)


def replace_dollars(one: Price) -> Price:
    return msgspec.structs.replace(one, dollars=2 * one.dollars)


@pytest.mark.parametrize(
    ("dollars", "text"),
    [
        (1234.5, "$1,234.50"),
        (0.1, "$0.10"),
        (0.0951, "$0.095"),
        (-0.00002, "-$0.00002"),
        (0.000005, "$0.000005"),
        (1e-9, "less than $0.000001"),
        (-1e-9, "next to nothing"),
        (0.0, "$0"),
    ],
)
def test_dollars_are_shown_as_a_person_reads_them(dollars, text) -> None:
    assert shown(dollars) == text


def test_shapes_add_up_by_class() -> None:
    both = Shape.of([1, 200_000]) + Shape.alike(3, 10, storage_class="GLACIER_IR")
    assert both.holdings == (
        Holding("GLACIER_IR", 3, 30, 3, 30),
        Holding("STANDARD", 2, 200_001, 1, 1),
    )
    assert (both.objects, both.bytes, both.parts) == (5, 200_031, 5)
    assert both.moved("STANDARD").holdings == (Holding("STANDARD", 5, 200_031, 4, 31),)
    assert replace(both, parts=9).stored.parts == 9


def test_the_example_of_the_package_is_true() -> None:
    assert doctest.testmod(compactor.money).failed == 0
    assert doctest.testmod(compactor.money).attempted > 5
