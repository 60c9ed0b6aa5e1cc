"""``compactor tables history`` and ``undo``: what a person sees, and what is ordered."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_cli import commands as cli
from compactor_cli.machine.spark_submit import SparkMissing
from compactor_tables import document_keys as places
from compactor_tables.lease import Leases
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
from compactor_tables.orders import read_order
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
    there(monkeypatch, lambda: SparkMissing("no pyspark here"))
    return store


def there(monkeypatch: pytest.MonkeyPatch, found: Callable[[], object]) -> None:
    """What is found as the Spark of this machine."""

    def find() -> object:
        what = found()
        if isinstance(what, Exception):
            raise what
        return what

    monkeypatch.setattr("compactor_cli.commands.tables_undo.find_spark", find)


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


def test_where_there_is_no_terminal_an_undo_wants_yes(capsys):
    line = told(capsys, "undo", *WHERE, "--json", code=2)
    assert line.startswith(
        "compactor: confirmation is needed, and there is no terminal to ask on\n"
        "  give --yes, or --dry-run"
    )


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (("history", "gold.orders", "--state-uri", STATE.uri), "TABLE"),
        (("history", NAME, "--state-uri", "lake"), "s3_state_uri"),
        (("history", *WHERE, "--latency", "spark"), "latency"),
        (("history", *WHERE, "--slower-by", "-1"), "slower_by"),
        (("undo", *WHERE, "--yes"), "table"),
        (("undo", *WHERE, "--yes", "--run", "r9"), "run"),
    ],
)
def test_a_mistake_is_reported_in_one_line(capsys, words, field):
    assert f": {field}: " in told(capsys, *words, code=2)


def test_an_undo_shows_what_would_happen_and_orders_it_once(capsys, store):
    leave(store, receipt())
    out = told(capsys, "undo", *WHERE, "--dry-run")
    assert "back to version 17, before run r1" in out
    assert "2 files of 1 partition become 40 files of 4.0 KiB again" in out
    order_key = places.order_key(STATE, "r1.undo", TABLE)
    assert store.head(*order_key) is None
    told(capsys, "undo", *WHERE, "--yes")
    order = read_order(*order_key, store)
    assert (order.steps, order.undo_run, order.measured) == (("undo",), "r1", "17")
    assert (order.engine, order.partitions) == ("spark", ())
    # Asked once more before Spark has done it: the same order.
    again = json.loads(told(capsys, "undo", *WHERE, "--yes", "--json"))
    assert again["order"] == f"s3://{order_key[0]}/{order_key[1]}"
    write_receipt(receipt("r1.undo", undo="", partitions=[]), STATE, store)
    assert "run r1.undo did" in told(capsys, "undo", *WHERE, "--yes", code=2)


@pytest.fixture
def spark(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> list[MaintenanceReceipt]:
    """A Spark of this machine, which leaves these receipts, one a job."""
    left: list[MaintenanceReceipt] = []

    def submit(_: object, arguments: Sequence[str], on_line: object) -> str:
        script, option, uri = arguments[-3:]
        assert (Path(script).name, option) == ("maintain_tables.py", "--order")
        assert store.head("lake", uri.removeprefix("s3://lake/")) is not None
        lease = Leases(store, STATE, ManualClock(NOW)).look(TABLE)
        assert lease is not None
        assert lease.run_id == "r1.undo"
        done = left.pop(0)
        write_receipt(done, STATE, store)
        return "exit status 1" if done.error else ""

    there(monkeypatch, object)
    monkeypatch.setattr("compactor_cli.commands.tables_undo.LocalSpark.submit", submit)
    return left


def test_an_undo_is_carried_out_where_spark_is(capsys, store, spark):
    leave(store, receipt())
    spark.append(receipt("r1.undo", undo="", partitions=[], at="19"))
    out = told(capsys, "undo", *WHERE, "--yes")
    assert f"undone: {NAME} is at version 19" in out
    lease = Leases(store, STATE, ManualClock(NOW)).look(TABLE)
    assert lease is not None
    assert lease.run_id == ""
    assert "run r1.undo did" in told(capsys, "undo", *WHERE, "--yes", code=2)


def test_an_undo_that_spark_refuses_fails_with_its_reason(capsys, store, spark):
    leave(store, receipt())
    refused = receipt("r1.undo", status="failed", undo="", partitions=[])
    refused.error, refused.cause = "TableConflict", "somebody has committed version 18"
    spark.append(refused)
    line = told(capsys, "undo", *WHERE, "--yes", code=1)
    assert "not undone: TableConflict: somebody has committed version 18" in line
    # It may be asked for again.
    spark.append(receipt("r1.undo", undo="", partitions=[], at="19"))
    assert json.loads(told(capsys, "undo", *WHERE, "--yes", "--json"))["at"] == "19"


def test_a_table_that_another_run_works_on_is_not_undone(capsys, store, spark):
    leave(store, receipt())
    Leases(store, STATE, ManualClock(NOW)).take(TABLE, "r7", engine="spark")
    line = told(capsys, "undo", *WHERE, "--yes", code=1)
    assert f"run r7 works on {NAME} with spark" in line
    assert not [key for key in store.contents("lake") if key.endswith(".order.json")]


def test_without_spark_the_order_is_left_and_how_it_is_carried_out(capsys, store):
    leave(store, receipt())
    out = told(capsys, "undo", *WHERE, "--yes")
    assert "not undone yet: no pyspark here; the order is s3://lake/" in out
    assert "spark-submit maintain_tables.py --order s3://lake/" in out


def test_who_says_no_orders_nothing(capsys, store, monkeypatch):
    leave(store, receipt())
    typed = io.StringIO("n\n")
    monkeypatch.setattr(typed, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", typed)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert "nothing was changed" in told(capsys, "undo", *WHERE, code=1)
    assert not [key for key in store.contents("lake") if key.endswith(".order.json")]


def test_a_version_that_is_kept_no_longer_is_not_gone_back_to(capsys, store):
    leave(store, receipt(undo_until=NOW - 2 * DAY))
    assert "17 was until 2.0 days ago" in told(capsys, "undo", *WHERE, "--yes", code=2)


def test_the_newest_run_that_rewrote_something_is_undone_or_one_by_its_name(capsys, store):
    leave(store, receipt("old", undo="3"), NOW - 3 * DAY)
    leave(store, receipt("new", undo="9"), NOW - 2 * DAY)
    leave(store, receipt("idle", undo="", partitions=[]), NOW - DAY)
    assert json.loads(told(capsys, "undo", *WHERE, "-n", "--json"))["run"] == "new"
    named = json.loads(told(capsys, "undo", *WHERE, "-n", "--json", "--run", "old"))
    assert (named["version"], named["order"]) == ("3", None)


def test_files_that_an_undo_brings_back_are_untagged_before_it_is_ordered(
    capsys, store, tmp_path: Path
):
    pytest.importorskip("deltalake")
    from compactor_tables.metadata.delta_files import DeltaFiles
    from compactor_tables.superseded import SupersededFiles
    from tests.support.delta_lake import DeltaLake

    lake = DeltaLake(tmp_path, store)
    lake.append()
    done = lake.rewrite()
    done.undo_until = NOW + DAY
    leave(store, done)
    SupersededFiles(STATE, TABLE, store, DeltaFiles(TABLE, store)).tag(done)
    assert len(lake.tagged) == 6
    tagged_at_order = []

    def look(call: object) -> None:
        if getattr(call, "key", "").endswith(".order.json"):
            tagged_at_order.append(len(lake.tagged))

    store.hooks.before.append(look)
    assert "untagged: 6 files" in told(capsys, "undo", *WHERE, "--yes")
    assert tagged_at_order == [0]
    lake.restore(int(done.undo))
    assert lake.tagged.isdisjoint(lake.alive)
