"""The commands of events, on moto: plan, run, repair."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from compactor.invocation import kept_store
from compactor.orchestration.reconcile import Reconciliation
from compactor_cli.commands import main
from compactor_handlers import events
from tests.support.moto_server import moto_server
from tests.unit.test_event_handlers import Deployed


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


@pytest.fixture
def deployed(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployed]:
    events.forget()
    kept_store.cache_clear()
    yield Deployed(endpoint, monkeypatch, objects=1_000)
    events.forget()
    kept_store.cache_clear()


def words(deployed: Deployed, command: str, *more: str) -> list[str]:
    source, destination = f"s3://{deployed.source}/logs/", f"s3://{deployed.lake}/compacted/"
    told = [
        "--listing",
        f"events:{deployed.table}/logs",
        "--depth",
        "1",
        "--endpoint-url",
        deployed.url,
    ]
    return [*command.split(), source, destination, *told, "--json", *more]


def answer(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


AT_ONCE = ["--settle-seconds", "0"]


def test_a_plan_shows_what_is_pending_and_writes_nothing(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.registered(deployed.put("a/1.json"), deployed.put("b/1.json"))
    deployed.put("a/untold.json")
    capsys.readouterr()
    before = deployed.dynamodb.scan(TableName=deployed.table)["Items"]
    assert main(words(deployed, "plan", *AT_ONCE)) == 0
    found = answer(capsys)
    assert found["totals"]["objects"] == 2
    assert [one["path"] for one in found["partitions"]] == ["a/", "b/"]
    assert deployed.dynamodb.scan(TableName=deployed.table)["Items"] == before


def test_a_run_on_this_machine_takes_what_is_pending_and_marks_it(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.registered(*[deployed.put(f"a/{n}.json") for n in range(3)])
    capsys.readouterr()
    assert main(words(deployed, "run", *AT_ONCE, "--workers", "1")) == 0
    assert answer(capsys)["summary"]["objects_before"] == 3
    assert {one["state"] for one in deployed.items()} == {"COMPACTED"}


def test_reconcile_shows_what_no_event_named(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.registered(deployed.put("a/1.json"))
    deployed.put("a/untold.json")
    capsys.readouterr()
    assert main(words(deployed, "repair events")) == 0
    found = answer(capsys)
    # Both are too recent to decide.
    assert (found["objects"], found["registered"], found["younger"]) == (2, 0, 2)
    assert found["streams"][0]["stream"] == "logs"
    assert main(["repair", "events", *words(deployed, "repair events")[2:4]]) == 2
    assert "events:TABLE/STREAM" in capsys.readouterr().err


def test_reconcile_stops_at_its_limit_and_says_where_to_go_on(
    deployed: Deployed, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        deployed.put(f"{name}/1.json")
    slow = partial(Reconciliation, grace_seconds=-60.0, workers=1)
    monkeypatch.setattr("compactor_cli.commands.repair.Reconciliation", slow)
    capsys.readouterr()
    assert main(words(deployed, "repair events", "--time-limit", "0.0001")) == 3
    found = answer(capsys)
    assert (found["registered"], found["complete"]) == (1, False)
    assert found["start_after"] == "logs/a/1.json"
    more = ["--start-after", found["start_after"]]
    assert main([one for one in words(deployed, "repair events", *more) if one != "--json"]) == 0
    assert "registered without an event: 2 objects" in capsys.readouterr().out
    assert len(deployed.items()) == 3
    assert main(words(deployed, "repair events", "--time-limit", "0")) == 2
    assert "is not in the range 0<x" in capsys.readouterr().err
