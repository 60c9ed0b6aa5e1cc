"""Maintenance by the command line: real list, plan, lease and report; a stand-in for Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake")

from compactor.s3.store import S3Store, make_client
from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_cli import commands as cli
from compactor_cli.commands import maintain
from compactor_local.embedded import EmbeddedS3, SeedObject
from compactor_tables.lease import Leases
from tests.statemachine.fake_tables import stand_ins
from tests.support.embedded import find_embedded
from tests.support.maintained_tables import DeltaLines, added
from tests.support.memory_store import ManualClock, MemoryStore

BUCKET = "lake"
STATE = f"s3://{BUCKET}/state/"
ORDERS, FAILS = f"delta:s3://{BUCKET}/gold/orders/", f"delta:s3://{BUCKET}/gold/fails/"
SMALL = f"delta:s3://{BUCKET}/gold/small/"


class StandIn:
    """Takes the place of Spark."""

    def __init__(self, environment: Mapping[str, str], log: object) -> None:
        assert "delta-spark" in environment["COMPACTOR_SPARK_PACKAGES"]

    def submit(self, arguments: Sequence[str], on_line: Callable[[str], None]) -> str:
        option, uri = arguments[-2:]
        assert option == "--order"
        return "" if stand_ins.carry_out(uri) else "exit status 1"


@pytest.fixture(scope="module")
def store(s3: EmbeddedS3) -> Iterator[S3Store]:
    with pytest.MonkeyPatch.context() as patch:
        find_embedded(s3, patch)
        patch.setattr(maintain, "LocalSpark", StandIn)
        s3.create_bucket(BUCKET)
        memory = MemoryStore(ManualClock())
        memory.add_bucket(BUCKET)
        for name, count in (("orders", 30), ("fails", 30), ("small", 2)):
            lines = DeltaLines(memory, f"gold/{name}/", ["day"])
            for day in "12":
                values = {"day": day}
                lines.commit(
                    *(added(f"{day}-{n}", 100_000, partitionValues=values) for n in range(count))
                )
        kept = memory.contents(BUCKET).items()
        s3.seed(BUCKET, (SeedObject(key, body, 1_700_000_000.0) for key, body in kept))
        yield S3Store(make_client())


@pytest.fixture
def by_spark(tmp_path: Path) -> Sequence[str]:
    path = tmp_path / "spark.json"
    path.write_text(json.dumps([{"match": ["*"], "engine": "spark"}]), encoding="utf-8")
    return "--policies", str(path)


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int) -> Any:
    capsys.readouterr()
    assert cli.main(["maintain", *words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_tables_are_found_planned_maintained_and_reported(
    store: S3Store, capsys: pytest.CaptureFixture[str], by_spark: Sequence[str]
) -> None:
    prefixes = ("--delta-prefixes", f"s3://{BUCKET}/gold/", "--state-uri", STATE, *by_spark)
    ran = told(capsys, "run", *prefixes, code=1)

    assert ran["status"] == "failed"
    tables = {one["table"]: one for one in ran["report"]["tables"]}
    assert {name: one["status"] for name, one in tables.items()} == {
        ORDERS: "done",
        FAILS: "failed",
        SMALL: "left",
    }
    assert tables[ORDERS]["estimate"]["files"] == 60
    assert tables[ORDERS]["engine"] == "spark"


def test_a_table_that_was_just_maintained_is_not_due_by_the_date(
    store: S3Store, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    policies = tmp_path / "policies.json"
    rule = {"match": ["*"], "every": 7, "engine": "spark"}
    policies.write_text(json.dumps([rule]), encoding="utf-8")
    state = f"s3://{BUCKET}/due/"
    words = ("run", ORDERS, "--state-uri", state, "--policies", str(policies))
    first = told(capsys, *words, "--only-when-due", code=0)
    again = told(capsys, *words, "--only-when-due", code=0)

    assert first["report"]["tables"][0]["status"] == "done"
    (left,) = again["report"]["tables"]
    assert (left["status"], left["engine"]) == ("left", "none")
    assert left["why"].startswith("not due: ")


def test_a_table_that_cannot_be_planned_ends_no_other(
    store: S3Store, capsys: pytest.CaptureFixture[str], by_spark: Sequence[str]
) -> None:
    missing = f"delta:s3://{BUCKET}/gold/missing/"
    words = ("run", missing, ORDERS, "--state-uri", f"s3://{BUCKET}/missing/", *by_spark)
    tables = told(capsys, *words, code=1)["report"]["tables"]

    assert {one["table"]: one["status"] for one in tables} == {missing: "failed", ORDERS: "done"}
    assert tables[0]["why"].startswith("InvalidInput: ")


def test_a_dry_run_takes_no_lease(store: S3Store, capsys: pytest.CaptureFixture[str]) -> None:
    state = f"s3://{BUCKET}/dry/"
    (table,) = told(capsys, "run", ORDERS, "--state-uri", state, "--dry-run", code=0)["report"][
        "tables"
    ]

    assert table["why"].startswith("a dry run; worker would do it")
    leases = Leases(store, parse_location(state), ManualClock(1.0))
    assert leases.look(parse_table(ORDERS)) is None


def test_what_is_wrong_is_reported_before_anything_starts(
    store: S3Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["maintain", "run", ORDERS]) == 2
    assert "s3_state_uri" in capsys.readouterr().err
