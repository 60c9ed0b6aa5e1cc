"""Prices stand in one file, each with its source; nowhere else in the program is one."""

from __future__ import annotations

import ast
import json
from collections import Counter
from datetime import date
from pathlib import Path

import msgspec
import pytest

from compactor.errors import InvalidInput
from compactor.prices import DEFAULT_REGION, Price, Prices, every_price, prices_for, prices_from
from compactor_tables import costs

_ROOT = Path(__file__).parents[2]
# These stand for other things, too, as any figure with one digit does.
_COMMON = {0.025, 0.12}


def test_each_price_says_of_what_since_when_and_from_where_it_is() -> None:
    for one in every_price():
        assert one.dollars > 0, one
        assert one.units > 0, one
        assert one.service, one
        assert one.unit, one
        assert one.source.startswith("https://aws.amazon.com/"), one
        assert date.fromisoformat(one.date).isoformat() == one.date, one
        # A price that is not sure says why.
        assert one.sure or one.note, one


def test_a_region_has_each_price_once() -> None:
    counts = Counter((one.region, one.name) for one in every_price())
    assert set(counts.values()) == {1}


def test_what_this_program_asks_for_is_there_in_us_east_1() -> None:
    usual = {one.name for one in every_price() if one.region == DEFAULT_REGION}
    names = (costs.GET, costs.GET, costs.SPARK_VCPU_HOUR, costs.SPARK_GB_HOUR)
    assert usual >= {*names, costs.ATHENA_TIB}


def test_a_region_that_is_not_there_is_reported_and_us_east_1_is_taken() -> None:
    found = prices_for("eu-nowhere-9")
    assert found.warning == (
        "no prices of eu-nowhere-9 are known here: costs are those of us-east-1"
    )
    assert found.of(costs.GET) == prices_for().of(costs.GET) == pytest.approx(4e-7)
    assert (prices_for("").region, prices_for(None).warning) == (DEFAULT_REGION, "")


REGIONS = ("us-east-1", "us-west-2", "eu-west-1", "eu-central-1", "ap-northeast-1")


def test_five_regions_have_every_price_of_a_run_and_of_storage() -> None:
    names = {
        region: {one.name for one in every_price() if one.region == region} for region in REGIONS
    }
    beside = ("athena.", "glue.")
    wanted = {name for name in names["us-east-1"] if not name.startswith(beside)}
    assert len(wanted) >= 31
    for region in REGIONS:
        assert prices_for(region).warning == ""
        assert wanted <= names[region]


def test_prices_of_regions_differ_where_aws_takes_more() -> None:
    assert prices_for("eu-central-1").of("s3.storage.standard") == 0.0245
    assert prices_for("ap-northeast-1").of("s3.put") == pytest.approx(4.7e-6)
    assert prices_for("eu-west-1").of("s3.transition.deep_archive") == pytest.approx(5.5e-5)
    assert prices_for("ap-northeast-1").of("emr_serverless.vcpu_hour.x86_64") == 0.065728


def _file(tmp_path: Path, **changed: object) -> Path:
    usual = next(one for one in every_price() if one.name == "s3.get")
    price = {**msgspec.to_builtins(usual), **changed}
    version = price.pop("version", 1)
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"version": version, "currency": "USD", "prices": [price]}))
    return path


def test_a_file_of_prices_replaces_those_that_are_shipped(tmp_path: Path) -> None:
    own = prices_from(_file(tmp_path, dollars=0.0003), "us-east-1")
    assert own.of("s3.get") == pytest.approx(3e-7)
    assert own.of("s3.put") == prices_for().of("s3.put")
    far = prices_from(_file(tmp_path, region="eu-nowhere-9"), "eu-nowhere-9")
    assert (far.region, far.warning) == ("eu-nowhere-9", "")


@pytest.mark.parametrize(
    ("changed", "accepted"),
    [
        ({"dollars": "much"}, "a file like functions/compactor/prices.json"),
        ({"dollars": -1}, "dollars of 0 or more for 1 unit or more (us-east-1 s3.get)"),
        ({"units": 0}, "dollars of 0 or more for 1 unit or more (us-east-1 s3.get)"),
        ({"price": 1}, "a file like functions/compactor/prices.json"),
        ({"version": 2}, "a file of version 1"),
    ],
)
def test_a_file_of_another_form_is_refused(changed, accepted, tmp_path: Path) -> None:
    path = _file(tmp_path, **changed)
    with pytest.raises(InvalidInput) as refused:
        prices_from(path)
    assert str(path) in str(refused.value)
    assert accepted in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"prices: .*nowhere\.json"):
        prices_from(tmp_path / "nowhere.json")


def test_what_a_region_has_no_price_of_its_own_for_is_that_of_us_east_1() -> None:
    oregon = prices_for("us-west-2")
    assert (oregon.region, oregon.warning) == ("us-west-2", "")
    assert oregon.of("athena.scanned_tib") == 5.0
    assert oregon.of(costs.GET) == prices_for().of(costs.GET)


@pytest.mark.parametrize("engine", costs.ENGINES)
def test_costs_follow_the_prices(engine: str) -> None:
    usual, rewrite = prices_for(), costs.Rewrite(1_000, 10**10)
    dear = Prices("far", "far", {name: _twice(one) for name, one in usual.by_name.items()})
    assert costs.cost(engine, rewrite, 1, dear) == pytest.approx(
        2 * costs.cost(engine, rewrite, 1, usual)
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


def _is_round(number: float) -> bool:
    return float(f"{number:.1g}") == number


def test_no_price_stands_in_the_code() -> None:
    figures = {number for one in every_price() for number in (one.dollars, one.each)}
    known = {number for number in figures - _COMMON if not _is_round(number)}
    assert {0.023, 0.0125, 1.33334e-05} < known
    found = [
        f"{path.relative_to(_ROOT)}:{node.lineno}: {node.value}"
        for folder in ("functions", "scripts", "spark", "cdk")
        for path in sorted((_ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value in known
    ]
    assert found == []
