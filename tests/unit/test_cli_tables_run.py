"""What ``compactor tables`` asks of a deployed stack, and of S3 Tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from compactor.settings.uris import parse_location
from compactor_cli import commands as cli
from compactor_cli.commands import tables_managed, tables_run, tables_status
from compactor_cli.deployed import executions
from compactor_cli.deployed.executions import Execution
from compactor_cli.deployed.stack import Stack
from compactor_tables.report import TablesReport, report_on
from tests.support.memory_store import ManualClock, MemoryStore

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:s3-compactor-tables"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
OWN = {
    "s3_state_uri": "s3://lake/state/",
    "glue_tables": ["bronze.*"],
    "policies": [{"match": ["bronze.audit"], "leave": True}],
}


def stack(**outputs: str) -> Stack:
    given = {"TablesStateMachineArn": MACHINE, "TablesInput": json.dumps(OWN), **outputs}
    return Stack("lake", "CREATE_COMPLETE", given)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """The inputs of executions that were started."""
    inputs: list[Mapping[str, Any]] = []

    def start(aws: Any, arn: str, given: Mapping[str, Any], run_id: str) -> Execution:
        assert arn == MACHINE
        inputs.append(given)
        return Execution(f"{MACHINE}:{run_id}", "RUNNING", NOON, None, given)

    monkeypatch.setattr(tables_run, "find_stack", lambda aws, name: stack())
    monkeypatch.setattr(executions, "start", start)
    return inputs


def test_a_stack_is_started_with_its_own_input(
    started: list[Mapping[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["tables", "run", "--stack", "lake", "--name", "r1"]) == 0

    assert started == [OWN]
    assert "compactor tables status r1 --stack lake" in capsys.readouterr().out


def test_named_tables_take_the_place_of_the_stacks_own(started: list[Mapping[str, Any]]) -> None:
    words = ["tables", "run", "glue:gold.orders", "--stack", "lake", "--dry-run", "--json"]
    assert cli.main(words) == 0

    (given,) = started
    assert given == {
        "s3_state_uri": OWN["s3_state_uri"],
        "policies": OWN["policies"],
        "tables": ["glue:gold.orders"],
        "dry_run": True,
    }


def test_a_stack_without_maintenance_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = Stack("lake", "CREATE_COMPLETE", {"TablesInput": json.dumps(OWN)})
    monkeypatch.setattr(tables_run, "find_stack", lambda aws, name: bare)

    assert cli.main(["tables", "run", "--stack", "lake"]) == 2
    assert "the stack lake maintains no tables" in capsys.readouterr().err


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> TablesReport:
    """A deployed run that failed, and the report that it left."""
    store = MemoryStore(ManualClock())
    store.add_bucket("lake")
    store.put("lake", "state/runs/r1/tables.json", b'[{"table": "glue:bronze.a"}]')
    state = parse_location("s3://lake/state/")
    report = report_on("r1", "noon", "", state=state, store=store)
    execution = Execution(f"{MACHINE}:r1", "FAILED", NOON, NOON, OWN, "TablesFailed", report.cause)
    monkeypatch.setattr(tables_status, "open_store", lambda *_: store)
    monkeypatch.setattr(tables_status, "find_stack", lambda aws, name: stack())
    monkeypatch.setattr(executions, "chosen", lambda aws, arn, run: execution)
    return report


def test_a_deployed_run_is_shown_with_its_report_and_its_failure(
    reported: TablesReport, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["tables", "status", "--stack", "lake", "--json"]) == 1

    told = capsys.readouterr()
    document = json.loads(told.out)
    assert (document["run_id"], document["execution"]["status"]) == ("r1", "FAILED")
    assert document["report"]["totals"]["failed"] == 1
    assert "TablesFailed: glue:bronze.a: failed by none" in told.err


def test_a_deployed_run_is_shown_to_a_person(
    reported: TablesReport, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["tables", "status", "--stack", "lake"]) == 1

    out = capsys.readouterr().out
    assert "run r1: failed" in out
    assert "1 table: 0 done, 0 left, 0 with more to do, 1 failed" in out


class FakeTables:
    """Stands for :class:`compactor.stores.s3_tables.S3Tables`."""

    changes: list[tuple[Any, ...]]

    def __init__(self, bucket_arn: str) -> None:
        FakeTables.changes = []

    def set_table(self, *given: Any) -> None:
        self.changes.append(given)

    def set_bucket(self, value: Any) -> None:
        self.changes.append(("bucket", value))

    def of_table(self, namespace: str, name: str) -> dict[str, Any]:
        settings = {"icebergCompaction": {"targetFileSizeMB": 256}}
        last = {"status": "Failed", "failureMessage": "no schema"}
        return {"icebergCompaction": {"status": "enabled", "settings": settings, "last": last}}

    def of_bucket(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def managed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_managed, "S3Tables", FakeTables)


def test_what_s3_tables_do_is_shown_and_set(
    managed: None, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--target-mb", "256", "--keep-hours", "200", "--strategy", "sort"]
    assert cli.main(["tables", "managed", "arn:b", "bronze.events", *words]) == 0

    compaction = {"icebergCompaction": {"targetFileSizeMB": 256, "strategy": "sort"}}
    snapshots = {"icebergSnapshotManagement": {"maxSnapshotAgeHours": 200}}
    assert FakeTables.changes == [
        ("bronze", "events", kind, {"status": "enabled", "settings": settings})
        for kind, settings in (
            ("icebergCompaction", compaction),
            ("icebergSnapshotManagement", snapshots),
        )
    ]
    line = "icebergCompaction: enabled targetFileSizeMB 256; last: Failed (no schema)"
    assert line in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "accepted"),
    [
        (["arn:b", "bronze.events", "--keep-hours", "24"], "at least 168"),
        (["arn:b", "--unreferenced-days", "1"], "at least 3"),
        (["arn:b", "--target-mb", "256"], "a table, for what is set of one"),
        (["arn:b", "bronze.events", "--unreferenced-days", "7"], "none of a table"),
        (["arn:b", "events", "--target-mb", "256"], "such as bronze.events"),
    ],
)
def test_what_is_below_the_floor_or_of_something_else_is_refused(
    managed: None, capsys: pytest.CaptureFixture[str], words: list[str], accepted: str
) -> None:
    assert cli.main(["tables", "managed", *words]) == 2
    assert accepted in capsys.readouterr().err
    assert FakeTables.changes == []


def test_below_the_floor_is_set_where_it_is_said_twice(managed: None) -> None:
    words = ["arn:b", "--unreferenced-days", "1", "--below-floor"]
    assert cli.main(["tables", "managed", *words]) == 0

    ((_, value),) = FakeTables.changes
    assert value["settings"] == {"icebergUnreferencedFileRemoval": {"unreferencedDays": 1}}
