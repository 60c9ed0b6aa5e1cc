"""Prices stand in one file, each with its source; nowhere else in the program is one."""

from __future__ import annotations

import ast
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from compactor.maintenance import costs
from compactor.maintenance.packing import Rewrite
from compactor.prices import DEFAULT_REGION, Price, Prices, every_price, prices_for

_ROOT = Path(__file__).parents[2]
# These stand for other things, too.
_COMMON = {5.0, 0.3, 0.1, 0.025, 0.005}


@pytest.mark.parametrize("one", every_price(), ids=lambda one: f"{one.region} {one.name}")
def test_each_price_says_of_what_since_when_and_from_where_it_is(one: Price) -> None:
    assert one.dollars > 0
    assert one.units > 0
    assert one.service
    assert one.unit
    assert one.source.startswith("https://aws.amazon.com/")
    assert date.fromisoformat(one.date).isoformat() == one.date
    # Whoever is not sure says why.
    assert one.sure or one.note


def test_a_region_has_each_price_once() -> None:
    counts = Counter((one.region, one.name) for one in every_price())
    assert set(counts.values()) == {1}


def test_what_this_program_asks_for_is_there_in_us_east_1() -> None:
    usual = {one.name for one in every_price() if one.region == DEFAULT_REGION}
    names = (costs.GET, costs.PUT, costs.SPARK_VCPU_HOUR, costs.SPARK_GB_HOUR)
    assert usual >= {*names, costs.ATHENA_TIB, costs.GLUE_DPU_HOUR}


def test_a_region_that_is_not_there_is_told_and_us_east_1_is_taken() -> None:
    found = prices_for("eu-nowhere-9")
    assert found.told == ("no prices of eu-nowhere-9 are known here: costs are those of us-east-1")
    assert found.of(costs.GET) == prices_for().of(costs.GET) == pytest.approx(4e-7)
    assert (prices_for("").region, prices_for(None).told) == (DEFAULT_REGION, "")


def test_what_a_region_has_no_price_of_its_own_for_is_that_of_us_east_1() -> None:
    oregon = prices_for("us-west-2")
    assert (oregon.region, oregon.told) == ("us-west-2", "")
    assert oregon.of("s3.metadata.change") == pytest.approx(3e-7)
    assert oregon.of(costs.PUT) == prices_for().of(costs.PUT)
    with pytest.raises(KeyError):
        prices_for().of("s3.metadata.change")


@pytest.mark.parametrize("engine", costs.ENGINES)
def test_costs_follow_the_prices(engine: str) -> None:
    usual, rewrite = prices_for(), Rewrite(1_000, 10**10, 10)
    dear = Prices("far", "far", {name: _twice(one) for name, one in usual.by_name.items()})
    assert costs.cost(engine, rewrite, 1, dear) == pytest.approx(
        2 * costs.cost(engine, rewrite, 1, usual)
    )
    assert costs.savings(rewrite, dear).dollars == pytest.approx(
        2 * costs.savings(rewrite, usual).dollars
    )


def _twice(one: Price) -> Price:
    return Price(
        region="far",
        service=one.service,
        name=one.name,
        dollars=2 * one.dollars,
        units=one.units,
        unit=one.unit,
        source=one.source,
        date=one.date,
        sure=one.sure,
    )


def test_no_price_stands_in_the_code() -> None:
    known = {number for one in every_price() for number in (one.dollars, one.each)} - _COMMON
    found = [
        f"{path.relative_to(_ROOT)}:{node.lineno}: {node.value}"
        for folder in ("functions", "scripts", "spark", "cdk")
        for path in sorted((_ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value in known
    ]
    assert found == []
