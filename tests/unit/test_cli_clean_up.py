"""``compactor clean-up``: the decision first, then what was decided, and how it ends."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from compactor.errors import TransientStoreError
from compactor.ports import Deletion, Refused
from compactor_cli import commands as cli
from compactor_cli.commands import clean_up
from tests.support.cleaning import DAY, compact_more, left, old_world, output_key, records
from tests.support.examples import PARTITION
from tests.support.memory_store import Call
from tests.support.moto_server import moto_server
from tests.support.world import LOG_LINE, World

Command = Callable[..., tuple[int, str, str]]
WHERE = ["s3://source/logs/", "s3://lake/compacted/"]


@pytest.fixture
def world() -> World:
    return old_world()


@pytest.fixture
def command(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Runs the command on the world; returns exit code, standard output and standard error."""
    monkeypatch.setattr(clean_up, "open_store", lambda *_: world.store)
    monkeypatch.setattr(clean_up, "SystemClock", lambda: world.clock)

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main(["clean-up", *WHERE, "--delete-after", "7d", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


class Terminal(io.StringIO):
    """Somebody who answers."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def answer(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", Terminal(text))
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    return answer


def tamper(world: World) -> str:
    key = output_key(world)
    world.store.seed("lake", key, b"x" * len(world.store.contents("lake")[key]))
    return key


def test_a_dry_run_shows_the_decision_and_writes_nothing(world: World, command: Command) -> None:
    before = world.store.contents("lake")
    code, out, err = command("--dry-run")
    assert (code, err) == (0, "")
    assert "commits older than 7d" in out
    (row,) = (line for line in out.splitlines() if PARTITION.path in line)
    assert row.split()[1:3] == ["1", "2"]
    assert "1 partition " in out
    assert (len(left(world)), world.store.contents("lake")) == (2, before)


def test_with_yes_it_deletes_and_ends_with_figures(world: World, command: Command) -> None:
    code, out, err = command("--yes")
    assert (code, err) == (0, "")
    assert left(world) == []
    assert out.splitlines()[-1].startswith("deleted 2 sources (")
    assert "of 1 commit; kept 0 that changed since and 0 that the store refused" in out
    assert list(records(world)) == [1]
    code, out, _ = command("--yes")
    state = "s3://lake/_compactor/compacted/"
    assert (code, out) == (0, f"no commit in {state} is older than 7d and not cleaned up\n")


def test_where_there_is_no_terminal_it_wants_yes(world: World, command: Command) -> None:
    requests = len(world.store.calls)
    for words in ((), ("--json",)):
        code, out, err = command(*words)
        assert (code, out) == (2, "")
        assert err.startswith(
            "compactor: confirmation is needed, and there is no terminal to ask on\n"
            "  give --yes, or --dry-run"
        )
    assert len(world.store.calls) == requests


@pytest.mark.parametrize(
    ("text", "deleted"),
    [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("", False)],
)
def test_on_a_terminal_it_asks(
    world: World, command: Command, answers: Callable[[str], None], text: str, deleted: bool
) -> None:
    answers(text)
    code, _, err = command()
    assert "delete 2 sources permanently? [y/N] " in err
    assert (code == 0) is deleted
    assert (left(world) == []) is deleted
    assert ("nothing was deleted" in err) is not deleted


@pytest.mark.parametrize("words", [("--dry-run",), ("--yes",), ("--yes", "--json")])
def test_a_tampered_output_is_one_clear_line_and_a_failure(
    world: World, command: Command, words: tuple[str, ...]
) -> None:
    key = tamper(world)
    compact_more(world, "z.log", template=LOG_LINE)
    code, out, err = command(*words)
    assert code == 1
    assert "1 finding\n  the sources concerned are kept" in err
    if "--json" in words:
        (partition,) = json.loads(out)["partitions"]
        (line,) = partition["unsafe"]
    else:
        (line,) = (one for one in err.splitlines() if key in one)
    assert f"s3://lake/{key} is damaged: it has" in line
    assert "and CRC32" in line
    assert line.endswith("its sources stay")
    assert left(world) == ["a.json", "b.json"] + ["z.log"] * ("--dry-run" in words)


def test_a_damaged_log_keeps_its_partition_and_no_other(world: World, command: Command) -> None:
    where = "_compactor/compacted/partitions/other/commits/"
    for end in ("json.gz", "checkpoint.json.gz"):
        world.store.seed("lake", f"{where}{1:020d}.{end}", b"damage", last_modified=0.0)
    code, _, err = command("--yes")
    assert code == 1
    assert "other/: s3://lake/" in err
    assert "is damaged" in err
    assert "nothing in it is deleted" in err
    assert left(world) == []


def test_what_the_store_refuses_is_reported_and_fails_the_command(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(sources: Any) -> Deletion:
        return Deletion(tuple(Refused(one.key, "AccessDenied: no\nmore") for one in sources))

    monkeypatch.setattr(world.store, "delete_sources", refuse)
    code, out, err = command("--yes")
    assert code == 1
    assert f"{PARTITION.prefix}a.json: AccessDenied: no more\n" in err
    assert "2 sources could not be deleted\n  run it again" in err
    assert "deleted 0 sources" in out
    assert "2 that the store refused to delete" in out


def test_an_output_that_is_tampered_with_after_the_decision_keeps_its_sources(
    world: World, command: Command
) -> None:
    heads = 0

    def harm(call: Call) -> None:
        nonlocal heads
        of_output = call.name == "head" and call.key.startswith("compacted/")
        heads += of_output
        # The first is the decision's.
        if of_output and heads == 2:
            tamper(world)

    world.store.hooks.before.append(harm)
    code, out, err = command("--yes")
    assert code == 1
    assert "its sources stay" in err
    assert "deleted 0 sources" in out
    assert len(left(world)) == 2


def test_a_table_that_is_made_of_the_sources_while_a_user_is_asked_keeps_them(
    world: World,
    command: Command,
    answers: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer_late() -> str:
        world.store.seed("source", "_delta_log/0.json", b"{}")
        return "y\n"

    answers("")
    monkeypatch.setattr(sys.stdin, "readline", answer_late)
    code, _, err = command()
    assert code == 1
    assert "lies in a table or registry that was made since" in err
    assert {"a.json", "b.json"} <= set(left(world))


def test_a_commit_that_comes_of_age_after_the_decision_is_left_alone(
    world: World, command: Command
) -> None:
    world.clock.advance(-8 * DAY + 1)
    world.add("young.log", LOG_LINE)
    world.run()
    world.clock.advance(7 * DAY - 1)

    def pass_time(call: Call) -> None:
        if call.name == "list_uploads":
            world.clock.advance(DAY)

    world.store.hooks.before.append(pass_time)
    code, out, _ = command("--yes")
    assert code == 0
    assert left(world) == ["young.log"]
    assert "deleted 2 sources" in out


def test_one_partition_in_trouble_does_not_end_the_others(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trouble(call: Call) -> None:
        if call.name == "delete_source" and call.key.endswith("b.json"):
            raise TransientStoreError("no answer")

    world.store.hooks.before.append(trouble)
    code, out, err = command("--yes")
    assert code == 1
    assert f"{PARTITION.path}: TransientStoreError: no answer" in err
    assert out.splitlines()[-1].startswith("deleted ")


def test_json_is_one_document_with_the_decision_and_what_was_done(
    world: World, command: Command
) -> None:
    world.clock.advance(-8 * DAY)
    world.store.create_upload("lake", f"compacted/2026/01/02/compacted-{'0' * 32}.json")
    world.clock.advance(8 * DAY)
    code, out, err = command("--dry-run", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["done"] is None
    totals = document["totals"]
    assert (totals["partitions"], totals["commits"], totals["sources"]) == (1, 1, 2)
    assert (totals["unsafe"], totals["uploads"]) == (0, 1)
    assert [one["sequence"] for one in document["partitions"][0]["due"]] == [1]
    code, out, _ = command("--yes", "--json")
    done = json.loads(out)["done"]
    assert (code, done["deleted"], done["commits"], done["uploads_aborted"]) == (0, 2, 1, 1)
    assert done["deleted_bytes"] == totals["bytes"]


def test_sources_of_another_source_are_counted_and_left(
    world: World, command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    code = cli.main(["clean-up", "s3://source/other/", WHERE[1], "--delete-after", "7d", "-y"])
    out, _ = capsys.readouterr()
    assert code == 0
    assert "none of 1 commit past retention is of s3://source/other/" in out
    assert len(left(world)) == 2


def test_cloudtrail_is_warned_of_before_anything_is_deleted(command: Command, world: World) -> None:
    world.clock.advance(-8 * DAY)
    world.put("1_CloudTrail_x.json", b'{"Records":[{"id":"x"}]}')
    world.run()
    world.clock.advance(8 * DAY)
    code, out, _ = command("--yes")
    assert code == 0
    lines = out.splitlines()
    (warned,) = (n for n, line in enumerate(lines) if "aws cloudtrail validate-logs" in line)
    (deleted,) = (n for n, line in enumerate(lines) if line.startswith("deleted "))
    assert warned < deleted
    assert PARTITION.path in lines[warned]


def test_without_any_state_there_is_nothing_to_do(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with moto_server() as url:
        client = boto3.client("s3", endpoint_url=url)
        for bucket in ("source", "lake"):
            client.create_bucket(Bucket=bucket)
        code = cli.main(["clean-up", *WHERE, "--dry-run", "--endpoint-url", url])
    assert code == 0
    assert capsys.readouterr().out.startswith(
        "nothing to delete: there is no state of a run at s3://lake/_compactor/compacted/"
    )
