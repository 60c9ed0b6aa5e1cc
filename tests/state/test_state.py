"""What a version left on S3 is worked with by every later one: each command, checked by content."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compactor.log.log_reader import all_logs
from compactor.report.report import RunIdentity, report
from compactor.settings.settings import Settings
from compactor_cli.commands import clean_up, ls, main, plan, restore, verify
from compactor_cli.commands.runs import show_report
from compactor_cli.stored_reports import report_below
from tests.support.stored_state import STATE, WHERE, StoredState, load, plain, versions

DAY = 86_400
Command = Callable[..., tuple[int, str, str]]
UNPUBLISHED = ("crash/", "lost/")


# As the runs declared, so that nothing is tried again.
DECLARED = ("--formats", '[{"match": "*.csv", "format": "csv", "header": true}]')


@pytest.fixture(params=versions())
def stored(request: pytest.FixtureRequest) -> StoredState:
    return load(request.param)


@pytest.fixture
def command(
    stored: StoredState, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs a command; returns exit code, standard output and standard error."""
    for module in (clean_up, ls, plan, restore, verify):
        monkeypatch.setattr(module, "open_store", lambda *_: stored.store)
    monkeypatch.setattr(clean_up, "SystemClock", lambda: stored.clock)

    def run(name: str, *words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        places = WHERE[1:] if name in {"ls", "restore"} else WHERE
        code = main([name, *places, *words])
        return code, *capsys.readouterr()

    return run


def document(answer: tuple[int, str, str]) -> Any:
    code, out, err = answer
    assert code == 0, err
    return json.loads(out)


def add_sources(stored: StoredState) -> None:
    """One more for each kind of partition, and a new one; headers as before."""
    stored.add("json/new.json", b'{"id": "record-900001"}\n{"id": "record-900002"}')
    stored.add("json/new-2.json", b'{"id": "record-900003"}\n')
    stored.add("csv/new.csv", b"id,name,value\n1,record-900004,2.5\n")
    stored.add("csv/new-2.csv", b"id,name,value\n2,record-900005,2.5\n")
    stored.add("new/a.json", b'{"id": "record-900006"}\n')
    stored.add("new/b.json", b'{"id": "record-900007"}\n')
    for number in (8, 9):
        line = f"2025-06-09T12:00:00Z INFO record-90000{number}\n".encode()
        stored.add(f"gzip/new-{number}.log.gz", gzip.compress(line, mtime=0))


def test_there_is_a_state_of_each_version() -> None:
    assert versions() == ["1"]
    kinds = {key.removeprefix(STATE).split("/")[0] for key in load().store.contents("lake")}
    assert {"identity.json", "partitions", "runs", "probes", "parquet-schemas"} <= kinds
    below = {key.split("/")[-2] for key in load().store.contents("lake", STATE)}
    kept = {"commits", "cleaned", "dead-letters", "receipts", "clean-ups"}
    assert kept <= below


def test_logs_say_of_their_sources_what_their_checkpoints_say(stored: StoredState) -> None:
    logs = all_logs(stored.settings.state, stored.store)
    assert {"json/", "csv/", "gzip/", "trail/", "copies/", "rows/", *UNPUBLISHED} <= {
        log.path for log in logs
    }
    assert any(log.checkpoints for log in logs)
    for log in logs:
        valid = list(log.newest_first(stored.store))
        named = {source.identity for commit in valid for source in commit.sources}
        found = stored.log(log.path).load()
        assert (set(found.committed), found.last) == (named, max(log.entries))


def test_a_plan_has_nothing_to_do_but_with_what_is_new(
    stored: StoredState, command: Command
) -> None:
    # What may not be read is asked for by every run.
    denied = {"denied/": 1}
    found = document(command("plan", "--depth", "1", *DECLARED, "--json"))
    assert found["totals"]["objects"] == sum(denied.values())
    add_sources(stored)
    found = document(command("plan", "--depth", "1", *DECLARED, "--json"))
    planned = {one["path"]: one["objects"] for one in found["partitions"] if one["objects"]}
    assert planned == {"csv/": 2, "gzip/": 2, "json/": 2, "new/": 2} | denied
    assert not stored.store.count("create", "put")


def test_a_run_publishes_what_was_committed_and_compacts_what_is_new(stored: StoredState) -> None:
    add_sources(stored)
    before = stored.store.contents("lake", "compacted/")
    found = stored.run()
    assert (found.status, found.cause) == ("succeeded", "")
    assert found.totals.objects_in == 8 + 2  # one output of two sources was lost
    assert stored.records() == stored.expected()
    now = stored.store.contents("lake", "compacted/")
    assert now | before == now
    for path in UNPUBLISHED:
        assert [key for key in now if key.startswith(f"compacted/{path}")]
    again = stored.run()
    assert (again.totals.objects_in, stored.store.contents("lake", "compacted/")) == (0, now)


def test_verify_finds_nothing_wrong_but_what_was_not_published(
    stored: StoredState, command: Command
) -> None:
    code, _, err = command("verify", "--deep")
    told = [line for line in err.splitlines() if " commit " in line]
    assert code == 1
    assert [line.partition(" ")[0] for line in told] == list(UNPUBLISHED)
    assert "IntegrityError: 2 findings" in err
    stored.run()
    found = document(command("verify", "--sources", "--json"))
    entries = {
        row for log in all_logs(stored.settings.state, stored.store) for row in rows_of(stored, log)
    }
    assert (found["findings"], found["sources"]) == ([], len(entries))
    assert found["outputs"] == len(stored.store.contents("lake", "compacted/"))
    deep = document(command("verify", "--deep", "--json"))
    assert (deep["findings"], deep["deep"]) == ([], [])


def rows_of(stored: StoredState, log: Any) -> set[bytes]:
    return {row.source.identity for one in log.newest_first(stored.store) for row in one.rows}


def test_verify_finds_what_is_wrong_in_an_output_of_theirs(
    stored: StoredState, command: Command
) -> None:
    stored.run()
    key = next(iter(stored.store.contents("lake", "compacted/json/")))
    body = stored.store.contents("lake", key)[key]
    stored.store.seed("lake", key, body.replace(b"record", b"drocer"))
    code, _, err = command("verify")
    assert (code, key in err) == (1, True)


def test_ls_names_every_source_whose_content_is_in_an_output(
    stored: StoredState, command: Command
) -> None:
    found = document(command("ls", "--json"))
    assert {(one["key"], one["etag"]) for one in found} == stored.compacted()
    rows_only = {one["key"] for one in found if not one["restorable"]}
    assert rows_only == {"logs/rows/a.json", "logs/rows/b.json"}


def test_restore_gives_every_source_back_that_was_compacted(
    stored: StoredState, command: Command, tmp_path: Path
) -> None:
    stored.run()
    for key, etag in sorted(stored.compacted()):
        if key.startswith("logs/rows/"):
            continue
        answer = command("restore", key, "-o", str(tmp_path), "--json")
        (one,) = document(answer)
        assert plain(Path(one["path"]).read_bytes()) == plain(stored.originals[key, etag]), key
        Path(one["path"]).unlink()
    code, _, err = command("restore", "logs/rows/a.json", "-o", str(tmp_path))
    assert code != 0
    assert "rows" in err


def test_restore_gives_back_all_below_a_prefix(
    stored: StoredState, command: Command, tmp_path: Path
) -> None:
    stored.run()
    code, out, err = command("restore", "--prefix", "logs/", "-o", str(tmp_path), "--json")
    assert (code, "2 sources cannot be restored" in err) == (1, True)
    found = json.loads(out)
    keys = {key for key, _ in stored.compacted() if not key.startswith("logs/rows/")}
    assert {one["key"] for one in found} == keys
    for one in found:
        body = plain(Path(one["path"]).read_bytes())
        assert body == plain(stored.originals[one["key"], one["etag"]])


def test_clean_up_deletes_what_is_past_retention_and_nothing_else(
    stored: StoredState, command: Command
) -> None:
    add_sources(stored)
    stored.run()
    stored.clock.advance(60 * DAY)
    code, out, err = command("clean-up", "--yes", "--delete-after", "7d")
    assert code == 0, err
    assert "deleted" in out
    left = stored.store.contents("source")
    # What is in no output, what was put over a compacted source, and what has a dead-letter record.
    kept = {"logs/rows/b.json", "logs/json/a.json", "logs/csv/b.csv"}
    deleted = {key for key, _ in stored.compacted()} - kept
    assert left.keys() == {key for key, _ in stored.originals} - deleted
    assert stored.records() == stored.expected()
    assert document(command("verify", "--deep", "--json"))["findings"] == []
    again = command("clean-up", "--yes", "--delete-after", "7d")
    assert (again[0], "deleted" in again[1]) == (0, False)


def test_what_could_not_be_read_is_compacted_once_it_can_be_read() -> None:
    stored = load()
    assert stored.run().totals.quarantined == 1
    stored.store.unreadable.clear()
    found = stored.run()
    assert (found.totals.objects_in, found.totals.quarantined) == (1, 0)
    assert any(b"nobody may read this" in body for body in stored.store.contents("lake").values())


def test_reports_of_their_runs_are_shown_and_can_be_made_again(
    stored: StoredState, capsys: pytest.CaptureFixture[str]
) -> None:
    for run_id in stored.runs:
        found = report_below(stored.settings.s3_state_uri, run_id, stored.store)
        assert found is not None
        show_report(found)
        out = " ".join(capsys.readouterr().out.split())
        assert f"report: s3://lake/{STATE}runs/{run_id}/report.json" in out
        given = json.loads(stored.store.get("lake", f"{STATE}runs/{run_id}/settings.json"))
        again = report(
            RunIdentity(run_id, found.document["started_at"]),
            Settings.from_input(given),
            stored.store,
        )
        made = msgspec.to_builtins(again)
        for name in ("totals", "partitions", "clean_up"):
            assert within(found.document[name], made[name]), name


def within(one: Any, other: Any) -> bool:
    """True when an account says what another one says, which may have more fields."""
    if isinstance(one, dict):
        return all(name in other and within(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(within, one, other))
    return bool(one == other)
