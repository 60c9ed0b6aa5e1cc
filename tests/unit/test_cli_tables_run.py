"""What ``compactor maintain run`` asks of a deployed stack."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from compactor.settings.uris import parse_location
from compactor_cli import commands as cli
from compactor_cli.commands import maintain
from compactor_cli.executions import Execution
from compactor_cli.run_status import Follower
from compactor_cli.stack import Stack
from compactor_tables.maintenance_report import report_on
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
    """The inputs of executions that were started; each failed, and left its report."""
    inputs: list[Mapping[str, Any]] = []
    store = MemoryStore(ManualClock())
    store.add_bucket("lake")
    store.put("lake", "state/runs/r1/tables.json", b'[{"table": "glue:bronze.a"}]')
    state = parse_location("s3://lake/state/")
    report = report_on("r1", "noon", "", state=state, store=store)

    def start(aws: Any, arn: str, given: Mapping[str, Any], run_id: str) -> Execution:
        assert arn == MACHINE
        inputs.append(given)
        return Execution(f"{MACHINE}:{run_id}", "RUNNING", NOON, None, given)

    def wait(self: Follower, show: Any) -> Execution:
        arn = f"{MACHINE}:r1"
        return Execution(arn, "FAILED", NOON, NOON, inputs[-1], "TablesFailed", report.cause)

    monkeypatch.setattr(maintain, "find_stack", lambda aws, name: stack())
    monkeypatch.setattr(maintain, "start", start)
    monkeypatch.setattr(maintain, "open_store", lambda *_: store)
    monkeypatch.setattr(Follower, "wait", wait)
    return inputs


RUN = ["maintain", "run", "--stack", "lake", "--name", "r1"]


def test_a_stack_is_started_with_its_own_input_and_followed_to_its_end(
    started: list[Mapping[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(RUN) == 1
    assert started == [OWN]
    out, err = capsys.readouterr()
    assert "1 table: 0 done, 0 left, 0 with more to do, 1 failed" in out
    assert "TablesFailed: glue:bronze.a: failed by none" in err


def test_named_tables_take_the_place_of_the_stacks_own(
    started: list[Mapping[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*RUN, "glue:gold.orders", "--dry-run", "--json"]) == 1

    (given,) = started
    assert given == {
        "s3_state_uri": OWN["s3_state_uri"],
        "policies": OWN["policies"],
        "tables": ["glue:gold.orders"],
        "dry_run": True,
    }
    document = json.loads(capsys.readouterr().out)
    assert (document["run_id"], document["execution"]["status"]) == ("r1", "FAILED")
    assert document["report"]["totals"]["failed"] == 1


def test_an_interrupt_while_waiting_says_that_the_run_goes_on(
    started: list[Mapping[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Follower, "wait", interrupted)
    assert cli.main(RUN) == 130
    err = capsys.readouterr().err
    assert "stopped waiting; run r1 continues\n  its report will be in s3://lake/state/" in err


def test_a_stack_without_maintenance_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = Stack("lake", "CREATE_COMPLETE", {"TablesInput": json.dumps(OWN)})
    monkeypatch.setattr(maintain, "find_stack", lambda aws, name: bare)

    assert cli.main(["maintain", "run", "--stack", "lake"]) == 2
    assert "the stack lake does not maintain tables" in capsys.readouterr().err
