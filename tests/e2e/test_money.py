"""What a plan estimates, and what its run then asks: requests within 2 %, dollars within 5 %."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import time
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from compactor.clock import NoDeadline, SystemClock
from compactor.money import RunWork, charged_requests, cost_of
from compactor.money.estimate import expected
from compactor.orchestration.in_process import ThisProcess
from compactor.orchestration.messages import Desk
from compactor.orchestration.run import Ended, Given, run_whole
from compactor.prices import every_price, prices_for
from compactor.probe.probe import traits_for
from compactor.report.cost import RunCost
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_cli.commands import main
from compactor_cli.commands.plan import find, forecast
from compactor_local.embedded import EmbeddedS3, SeedObject

DAY = 86_400
LATER = "2026/11/30"
_names = itertools.count(1)
Sources = Mapping[str, bytes]


def line(number: int) -> str:
    return json.dumps({"id": number, "text": "x" * 80}) + "\n"


def lines(number: int, count: int = 10) -> bytes:
    return "".join(line(number * count + one) for one in range(count)).encode()


def json_lines(count: int, days: int = 1) -> Sources:
    return {f"logs/2026/11/{1 + n % days:02}/a-{n:05}.json": lines(n) for n in range(count)}


def gzipped(count: int) -> Sources:
    return {f"logs/2026/11/01/b-{n:05}.json.gz": gzip.compress(lines(n)) for n in range(count)}


def trail(count: int) -> Sources:
    def body(number: int) -> bytes:
        records = [{"eventID": f"{number}-{one}", "eventName": "GetObject"} for one in range(5)]
        return gzip.compress(json.dumps({"Records": records}).encode())

    name = "111122223333_CloudTrail_us-east-1_20261101T{:02}{:02}Z_abcdefgh{:08}.json.gz"
    return {f"logs/2026/11/01/{name.format(n // 60, n % 60, n)}": body(n) for n in range(count)}


def table_of(count: int) -> Sources:
    def body(number: int) -> bytes:
        return ("id,value\n" + "".join(f"{number * 10 + one},v\n" for one in range(10))).encode()

    return {f"logs/2026/11/01/c-{n:05}.csv": body(n) for n in range(count)}


def large_among_small(count: int) -> Sources:
    # Large sources take several GETs, and the output several parts.
    large = {f"logs/2026/11/01/z-{n}.json": lines(n, 200_000) for n in range(2)}
    return {**json_lines(count), **large}


class Lake:
    """Sources in a bucket of their own, planned and compacted by one process."""

    def __init__(self, s3: EmbeddedS3, sources: Sources, **given: Any) -> None:
        name = f"money-{next(_names)}"
        self._s3 = s3
        self._source = f"{name}-source"
        for bucket in (self._source, f"{name}-lake"):
            s3.create_bucket(bucket)
        self.put(sources)
        self.settings = Settings.from_input(
            {
                "s3_source_uri": f"s3://{self._source}/logs/",
                "s3_destination_uri": f"s3://{name}-lake/compacted/",
                "depth": 3,
                "settle_seconds": 0,
                "spark_engine": "none",
                "formats": [{"match": "*.csv", "format": "csv", "header": True}],
                **given,
            }
        )
        # What a store other than AWS is asked once a day is in no plan.
        traits_for(self.settings.state, S3Store(make_client(s3.endpoint_url)), time.time())

    def put(self, sources: Sources) -> None:
        long_ago = time.time() - 7 * DAY
        self._s3.seed(self._source, (SeedObject(k, v, long_ago) for k, v in sources.items()))

    def plan(self, *words: str, verb: str = "plan") -> int:
        uris = (self.settings.s3_source_uri, self.settings.s3_destination_uri)
        where = ("--depth", "3", "--endpoint-url", self._s3.endpoint_url)
        return main([verb, *uris, *where, *words])

    def planned(self) -> RunWork:
        store = S3Store(make_client(self._s3.endpoint_url))
        found = find(self.settings, store)
        foretold = forecast(found.partitions, self.settings, store)
        looked = store.requests.snapshot()
        plans = [each.plan for each in foretold]
        return expected(plans, self.settings, looked, deployed=False)

    def run(self) -> tuple[Ended, RunWork]:
        store = S3Store(make_client(self._s3.endpoint_url))
        settings, clock, run_id = self.settings, SystemClock(), f"run-{next(_names)}"
        ended = run_whole(
            Given(
                settings=settings,
                run_id=run_id,
                started_at="2026-11-30T00:00:00Z",
                store=store,
                clock=clock,
                deadline=NoDeadline(),
                workers=lambda safe: ThisProcess(Desk(settings, safe, clock, run_id), NoDeadline()),
            )
        )
        return ended, RunWork(dict(store.requests.snapshot()))


@pytest.fixture
def s3_here(s3: EmbeddedS3, monkeypatch: pytest.MonkeyPatch) -> EmbeddedS3:
    for name, value in s3.environment.items():
        if value:
            monkeypatch.setenv(name, value)
        elif name in os.environ:
            monkeypatch.delenv(name)
    return s3


@pytest.mark.parametrize(
    ("sources", "later", "given"),
    [
        pytest.param(json_lines(500), json_lines(60, 2), {}, id="JSON lines"),
        pytest.param(gzipped(400), gzipped(30), {}, id="gzip"),
        pytest.param(trail(300), trail(40), {}, id="CloudTrail"),
        pytest.param(table_of(300), table_of(120), {"min_objects": 2}, id="CSV"),
        pytest.param(json_lines(400, 20), json_lines(45, 9), {}, id="many partitions"),
        pytest.param(large_among_small(80), json_lines(30), {}, id="large among small"),
    ],
)
def test_a_run_asks_what_its_plan_estimated_and_so_does_one_over_leftovers(
    s3_here: EmbeddedS3, sources: Sources, later: Sources, given: dict[str, Any]
) -> None:
    lake = Lake(s3_here, sources, **given)
    for _ in range(2):
        planned = lake.planned()
        ended, real = lake.run()
        assert ended.report is not None
        assert ended.report.status == "succeeded"
        assert ended.report.totals.objects_in > 0
        asked, reckoned = (sum(charged_requests(one.requests).values()) for one in (real, planned))
        # HEADs of large sources are not planned.
        assert reckoned == pytest.approx(asked, rel=0.08), (planned.requests, real.requests)
        cost = ended.report.cost
        assert cost is not None
        assert sum(cost.requests.values()) == pytest.approx(asked, rel=0.02)
        prices = prices_for("us-east-1")
        assert cost.dollars == pytest.approx(sum(cost_of(real, prices).values()), rel=0.05)
        assert sum(cost_of(planned, prices).values()) == pytest.approx(
            sum(cost_of(real, prices).values()), rel=0.08
        ), (planned.requests, real.requests)
        lake.put({key.replace("/11/", "/12/"): body for key, body in later.items()})


# What the command shows.


def test_plan_begins_with_the_verdict_and_its_table(s3_here, capsys) -> None:
    lake = Lake(s3_here, {**gzipped(40), **json_lines(60, 3)})
    assert lake.plan("--delete-after", "7d") == 0
    first, title, *shown = capsys.readouterr().out.splitlines()
    assert re.match(r"PAYS after \d+ days at 30 scans a month: costs \$0\.00", first)
    assert title == "US dollars at the prices of us-east-1"
    text = " ".join(shown)
    assert "each full scan saves 96 requests" in text
    assert "the run costs $0.00" in text
    assert "the sources are stored for 7 days more: <$0.000001" in text


def test_plan_counts_by_prices_and_in_the_class_of_its_caller(s3_here, capsys, tmp_path) -> None:
    lake = Lake(s3_here, json_lines(50))
    usual = next(one for one in every_price() if one.name == "s3.get")
    dear = {**msgspec.to_builtins(usual), "dollars": 400.0}
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"version": 1, "currency": "USD", "prices": [dear]}))
    words = ("--prices", str(path), "--scans-per-month", "2", "--target-class", "GLACIER_IR")
    assert lake.plan(*words, "--json") == 0
    money = json.loads(capsys.readouterr().out)["money"]
    gets = money["run"]["requests"]["GET"]
    assert money["run_dollars_by_kind"]["GET"] == pytest.approx(gets * 0.4)
    assert (money["scans_per_month"], money["target_class"]) == (2, "GLACIER_IR")
    assert len(money["stored"]) == 4


def test_a_region_without_prices_is_reported_and_us_east_1_shown(
    s3_here, capsys, monkeypatch
) -> None:
    lake = Lake(s3_here, json_lines(5))
    monkeypatch.setenv("AWS_REGION", "ap-south-2")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "ap-south-2")
    assert lake.plan() == 0
    told = capsys.readouterr().out
    assert "\nUS dollars at the prices of us-east-1\n" in told
    assert "\nno prices of ap-south-2 are known here: costs are those of us-east-1\n" in told


def test_plan_names_the_cost_on_this_machine_and_a_run_repeats_it(s3_here, capsys) -> None:
    lake = Lake(s3_here, json_lines(300))
    assert lake.plan("--json") == 0
    money = json.loads(capsys.readouterr().out)["money"]
    assert lake.plan("--json", verb="run") == 0
    cost = json.loads(capsys.readouterr().out)["summary"]["cost"]
    assert money["run_dollars_on_a_machine"] == pytest.approx(cost["dollars"], rel=0.1)
    assert RunCost(**cost).line.startswith("cost about $0.000")
    assert " on this machine: " in RunCost(**cost).line


def test_as_json_the_verdict_is_part_of_the_document(s3_here, capsys) -> None:
    lake = Lake(s3_here, json_lines(50))
    assert lake.plan("--json") == 0
    money = json.loads(capsys.readouterr().out)["money"]
    assert money["run"]["requests"]["GET"] >= 50
    assert money["run"]["transitions"] == 18
    assert money["retention_days"] is None


def test_a_file_of_prices_that_is_invalid_is_reported_in_a_line(s3_here, capsys, tmp_path) -> None:
    lake = Lake(s3_here, json_lines(5))
    path = tmp_path / "prices.json"
    path.write_text("{}")
    assert lake.plan("--prices", str(path)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"prices: {str(path)!r} is not accepted; expected a file like" in line
