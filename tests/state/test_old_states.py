"""What earlier versions left on S3 is worked with for ever: each command, checked by content."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from compactor.log.stored import all_logs
from compactor.report.report import RunIdentity, report
from compactor.settings.settings import Settings
from compactor_cli.commands import clean_up, ls, main, plan, repair, restore, verify
from compactor_cli.commands.report import show_report
from compactor_cli.deployed.reports import report_below
from tests.support.old_states import STATE, WHERE, OldState, load, plain, written_by

DAY = 86_400
Command = Callable[..., tuple[int, str, str]]
# What the version before identities cannot have.
SECOND = "dda4ecf"
UNPUBLISHED = ("crash/", "lost/")


@pytest.fixture(params=written_by())
def old(request: pytest.FixtureRequest) -> OldState:
    return load(request.param)


@pytest.fixture
def command(
    old: OldState, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs a command; returns exit code, standard output and standard error."""
    for module in (clean_up, ls, plan, repair, restore, verify):
        monkeypatch.setattr(module, "open_store", lambda *_: old.store)
    monkeypatch.setattr(clean_up, "SystemClock", lambda: old.clock)

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


def add_sources(old: OldState) -> None:
    """One more for each kind of partition, and a new one; headers as before."""
    old.add("json/new.json", b'{"id": "record-900001"}\n{"id": "record-900002"}')
    old.add("json/new-2.json", b'{"id": "record-900003"}\n')
    old.add("csv/new.csv", b"id,name,value\n1,record-900004,2.5\n")
    old.add("csv/new-2.csv", b"id,name,value\n2,record-900005,2.5\n")
    old.add("new/a.json", b'{"id": "record-900006"}\n')
    old.add("new/b.json", b'{"id": "record-900007"}\n')
    for number in (8, 9):
        line = f"2025-06-09T12:00:00Z INFO record-90000{number}\n".encode()
        old.add(f"gzip/new-{number}.log.gz", gzip.compress(line, mtime=0))


def test_there_is_a_state_of_each_version_that_is_out_there() -> None:
    assert written_by() == ["033e335", SECOND]
    kinds = {key.removeprefix(STATE).split("/")[0] for key in load(SECOND).store.contents("lake")}
    assert {"identity.json", "schemes", "partitions", "runs", "probes", "parquet-schemas"} <= kinds
    below = {key.split("/")[-2] for key in load(SECOND).store.contents("lake", STATE)}
    kept = {"commits", "cleaned", "passed", "rejects", "receipts", "clean-ups"}
    assert kept <= below
    assert any("/withdrawn/" in key for key in load(SECOND).store.contents("lake", STATE))


def test_logs_say_of_their_sources_what_their_checkpoints_say(old: OldState) -> None:
    logs = all_logs(old.settings.state, old.store)
    assert {"json/", "csv/", "gzip/", "trail/", "copies/", "rows/", *UNPUBLISHED} <= {
        log.path for log in logs
    }
    assert any(log.checkpoints for log in logs)
    for log in logs:
        valid = list(log.newest_first(old.store))
        named = {source.identity for commit in valid for source in commit.sources}
        state = old.log(log.path).load()
        assert (set(state.committed), state.last) == (named, max(log.entries))


def test_a_plan_has_nothing_to_do_but_with_what_is_new(old: OldState, command: Command) -> None:
    # What may not be read is asked for by every run.
    # More settings decide now what is left alone, so that it is tried once more.
    denied = {"denied/": 1, "odd/": 3} if old.store.unreadable else {}
    found = document(command("plan", "--depth", "1", "--json"))
    assert found["totals"]["objects"] == sum(denied.values())
    add_sources(old)
    found = document(command("plan", "--depth", "1", "--json"))
    planned = {one["path"]: one["objects"] for one in found["partitions"] if one["objects"]}
    assert planned == {"csv/": 2, "gzip/": 2, "json/": 2, "new/": 2} | denied
    assert not old.store.count("create", "put")


def test_a_run_publishes_what_was_committed_and_compacts_what_is_new(old: OldState) -> None:
    add_sources(old)
    before = old.store.contents("lake", "compacted/")
    found = old.run()
    assert (found.status, found.cause) == ("succeeded", "")
    assert found.totals.objects_in == 8 + 2  # one output of two sources was lost
    assert old.records() == old.expected()
    now = old.store.contents("lake", "compacted/")
    assert now | before == now
    for path in UNPUBLISHED:
        assert [key for key in now if key.startswith(f"compacted/{path}")]
    again = old.run()
    assert (again.totals.objects_in, old.store.contents("lake", "compacted/")) == (0, now)


def test_verify_finds_nothing_wrong_but_what_was_not_published(
    old: OldState, command: Command
) -> None:
    code, _, err = command("verify", "--deep")
    told = [line for line in err.splitlines() if " commit " in line]
    assert code == 1
    assert [line.partition(" ")[0] for line in told] == list(UNPUBLISHED)
    assert "IntegrityError: 2 findings" in err
    old.run()
    found = document(command("verify", "--sources", "--json"))
    entries = {row for log in all_logs(old.settings.state, old.store) for row in rows_of(old, log)}
    assert (found["findings"], found["sources"]) == ([], len(entries))
    assert found["outputs"] == len(old.store.contents("lake", "compacted/"))
    deep = document(command("verify", "--deep", "--json"))
    assert (deep["findings"], deep["deep"]) == ([], [])


def rows_of(old: OldState, log: Any) -> set[bytes]:
    return {row.source.identity for one in log.newest_first(old.store) for row in one.rows}


def test_verify_finds_what_is_wrong_in_an_output_of_theirs(old: OldState, command: Command) -> None:
    old.run()
    key = next(iter(old.store.contents("lake", "compacted/json/")))
    body = old.store.contents("lake", key)[key]
    old.store.seed("lake", key, body.replace(b"record", b"drocer"))
    code, _, err = command("verify")
    assert (code, key in err) == (1, True)


def test_ls_names_every_source_whose_content_is_in_an_output(
    old: OldState, command: Command
) -> None:
    found = document(command("ls", "--json"))
    assert {(one["key"], one["etag"]) for one in found} == old.compacted()
    rows_only = {one["key"] for one in found if not one["restorable"]}
    assert rows_only == {"logs/rows/a.json", "logs/rows/b.json"}


def test_restore_gives_every_source_back_that_was_compacted(
    old: OldState, command: Command, tmp_path: Path
) -> None:
    old.run()
    for key, etag in sorted(old.compacted()):
        if key.startswith("logs/rows/"):
            continue
        answer = command("restore", key, "--etag", etag, "-o", str(tmp_path), "--json")
        (one,) = document(answer)
        assert Path(one["path"]).read_bytes() == plain(old.originals[key, etag]), key
        Path(one["path"]).unlink()
    code, _, err = command("restore", "logs/rows/a.json", "-o", str(tmp_path))
    assert code != 0
    assert "rows" in err


def test_restore_gives_back_all_below_a_prefix(
    old: OldState, command: Command, tmp_path: Path
) -> None:
    old.run()
    code, out, err = command("restore", "--prefix", "logs/", "-o", str(tmp_path), "--json")
    assert (code, "2 sources cannot be restored" in err) == (1, True)
    found = json.loads(out)
    keys = {key for key, _ in old.compacted() if not key.startswith("logs/rows/")}
    assert {one["key"] for one in found} == keys
    for one in found:
        body = Path(one["path"]).read_bytes()
        assert body == plain(old.originals[one["key"], one["etag"]])


def test_clean_up_deletes_what_is_past_retention_and_nothing_else(
    old: OldState, command: Command
) -> None:
    add_sources(old)
    old.run()
    old.clock.advance(60 * DAY)
    if not old.store.contents("lake", f"{STATE}partitions/csv/passed/"):
        refuse_until_repaired(old, command)
    code, out, err = command("clean-up", "--yes", "--retention-days", "7")
    assert code == 0, err
    assert "deleted" in out
    left = old.store.contents("source")
    # What is neither in an output nor the content of one, and what nobody could read.
    compacted = {key for key, _ in old.compacted()}
    assert left.keys() == {key for key, _ in old.originals} - compacted
    assert old.records() == old.expected()
    assert document(command("verify", "--deep", "--json"))["findings"] == []
    again = command("clean-up", "--yes", "--retention-days", "7")
    assert (again[0], "deleted" in again[1]) == (0, False)


def refuse_until_repaired(old: OldState, command: Command) -> None:
    """Headers of older rules hold sources back until somebody has examined them."""
    held = {"logs/csv/d.csv", "logs/csv/e.csv"}
    code, _, err = command("clean-up", "--dry-run", "--retention-days", "7")
    assert code == 1
    assert "run compactor repair" in err
    assert held <= old.store.contents("source").keys()
    assert command("repair", "--yes")[0] == 0
    assert old.store.contents("lake", f"{STATE}partitions/csv/passed/")


def test_what_nobody_could_read_is_compacted_once_it_can_be_read() -> None:
    old = load(SECOND)
    assert old.run().totals.quarantined == 1 + 3
    old.store.unreadable.clear()
    found = old.run()
    assert (found.totals.objects_in, found.totals.quarantined) == (1, 0)
    assert any(b"nobody may read this" in body for body in old.store.contents("lake").values())


def test_reports_of_their_runs_are_shown_and_can_be_made_again(
    old: OldState, capsys: pytest.CaptureFixture[str]
) -> None:
    for run_id in old.runs:
        found = report_below(old.settings.s3_state_uri, run_id, old.store)
        assert found is not None
        show_report(found)
        out = " ".join(capsys.readouterr().out.split())
        assert f"report: s3://lake/{STATE}runs/{run_id}/report.json" in out
        given = json.loads(old.store.get("lake", f"{STATE}runs/{run_id}/settings.json"))
        again = report(
            RunIdentity(run_id, found.document["started_at"]),
            Settings.from_input(given),
            old.store,
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
