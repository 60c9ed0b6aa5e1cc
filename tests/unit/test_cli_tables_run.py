"""What ``compactor tables`` asks of a deployed stack, and of S3 Tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from compactor.settings.uris import parse_location
from compactor_cli import commands as cli
from compactor_cli.commands import tables_run, tables_status
from compactor_cli.deployed import executions
from compactor_cli.deployed.executions import Execution
from compactor_cli.deployed.stack import Stack
from compactor_tables.maintenance_report import TablesReport, report_on
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
    assert "the stack lake does not maintain tables" in capsys.readouterr().err


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
