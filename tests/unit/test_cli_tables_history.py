"""``compactor tables history``: what a person sees."""

from __future__ import annotations

import json

import pytest

from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_cli import commands as cli
from compactor_tables.maintenance_receipts import (
    DONE,
    LEFT,
    MaintenanceReceipt,
    RewrittenPartition,
    write_receipt,
)
from compactor_tables.observation_history import keep_look
from compactor_tables.observations import Look
from compactor_tables.observing import Watched, note_maintenance
from tests.support.memory_store import ManualClock, MemoryStore

STATE = parse_location("s3://lake/_maintenance/")
NAME = "delta:s3://lake/gold/orders/"
TABLE = parse_table(NAME)
NOW, DAY = 1_795_000_000.0, 86_400.0
WHERE = (NAME, "--state-uri", STATE.uri)


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    opened = "compactor_cli.commands.tables_history.open_store"
    monkeypatch.setattr(opened, lambda endpoint_url, bucket: store)
    monkeypatch.setattr("time.time", lambda: NOW)
    return store


def told(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert cli.main(["tables", *words]) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def receipt(run_id: str = "r1", **given: object) -> MaintenanceReceipt:
    done = RewrittenPartition(name="day=1", status=DONE, files=40, bytes=4_096, into=2)
    left = RewrittenPartition(name="day=2", status=LEFT, files=7)
    found = MaintenanceReceipt(
        table=NAME,
        run_id=run_id,
        engine="spark",
        status="done",
        partitions=[done, left],
        undo="17",
        undo_until=NOW + DAY,
    )
    for name, value in given.items():
        setattr(found, name, value)
    return found


def leave(store: MemoryStore, one: MaintenanceReceipt, at: float = NOW - DAY) -> None:
    write_receipt(one, STATE, store)
    note_maintenance(Watched(STATE, TABLE, store), one, at)


def seen(store: MemoryStore, days: float, latency: float) -> None:
    one = Look(
        at=NOW - days * DAY,
        run_id=f"d{days:g}",
        files=9,
        bytes=2_048,
        latency=latency,
        samples=1,
        source="athena:primary",
    )
    keep_look(one, STATE, TABLE, store)


@pytest.fixture
def three_weeks(store: MemoryStore) -> None:
    for week in range(3):
        leave(store, receipt(f"m{week}"), NOW - (21 - 7 * week) * DAY)
        for day in range(6):
            seen(store, 20.9 - 7 * week - day, 10.0 + day)


@pytest.mark.usefixtures("three_weeks")
def test_a_history_is_drawn_with_its_compactions_and_a_schedule_is_recommended(capsys):
    out = told(capsys, "history", *WHERE)
    assert "latency by athena:primary; ┊ is a compaction" in out
    bars = [line.partition(" s │")[2] for line in out.splitlines() if " s │┊" in line]
    assert [bars[0], bars[1], *{*bars[3:]}] == ["┊    ▄█" * 3, "┊  ▃▇██" * 3, "┊██████" * 3]
    assert len(bars) == 8
    assert "spark: done, 40 files into 2" in out
    assert "recommended: cron(0 3 1/3 * ? *) (it was 25% slower 3.0 days after" in out


@pytest.mark.usefixtures("three_weeks")
def test_a_history_is_reported_as_json(capsys):
    found = json.loads(told(capsys, "history", *WHERE, "--slower-by", "0.05", "--json"))
    assert (found["table"], found["latency"]) == (NAME, "athena:primary")
    assert len(found["looks"]) == 21
    assert found["looks"][2]["average"] == 10.5
    assert found["looks"][0]["maintained"]["files"] == 40
    assert found["cron"] == "cron(0 3 * * ? *)"


def test_a_table_without_a_look_has_no_history(capsys):
    assert "there is no history of delta:s3://lake/gold/orders/" in told(capsys, "history", *WHERE)
    assert json.loads(told(capsys, "history", *WHERE, "--json"))["cron"] is None


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("history", "gold.orders", "--state-uri", STATE.uri), "TABLE"),
        (("history", NAME, "--state-uri", "lake"), "s3_state_uri"),
        (("history", *WHERE, "--latency", "spark"), "latency"),
        (("history", *WHERE, "--slower-by", "-1"), "slower_by"),
    ],
)
def test_a_mistake_is_reported_in_one_line(capsys, words, field):
    assert f": {field}: " in told(capsys, *words, code=2)
