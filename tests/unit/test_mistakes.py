"""What people give wrong: one line with what was given and what is right, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compactor.errors import InvalidInput
from compactor.settings.settings import Settings
from compactor_cli.commands import (
    clean_up,
    explain,
    ls,
    main,
    maintain,
    restore,
    verify,
)
from compactor_cli.restore_search import named
from tests.support.examples import PARTITION
from tests.support.world import World

SOURCE, DEST = "s3://source/logs/", "s3://lake/compacted/"
NOWHERE = "s3://lake/compcated/"
KEY = f"{PARTITION.prefix}a.json"
LINE = b'{"id": 1}\n'
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Two sources in one output."""
    made = World()
    monkeypatch.setattr("time.time", lambda: made.clock.time)
    for module in (clean_up, explain, ls, restore, verify):
        monkeypatch.setattr(module, "open_store", lambda *_: made.store)
    made.put("a.json", LINE)
    made.put("b.json", LINE * 2)
    assert made.run().status == "done"
    return made


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main([*map(str, words)])
        return code, *capfd.readouterr()

    return run


@pytest.mark.parametrize(
    "words",
    [
        ("verify", SOURCE, NOWHERE),
        ("ls", NOWHERE),
        ("restore", NOWHERE, "--all", "-o", "back"),
        ("restore", NOWHERE, KEY),
        ("explain", NOWHERE, KEY),
        ("explain", NOWHERE, f"{NOWHERE}a.json", "--record", "1"),
    ],
    ids=lambda words: " ".join(words[::2]),
)
def test_a_destination_without_a_run_is_reported_as_that(world, command, words):
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert err == (
        "compactor: there is no state of a run at s3://lake/_compactor/compcated/\n"
        "  check that it is the destination of a run; a run with its own s3_state_uri needs the"
        " same --state-uri here\n"
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("restore", DEST), "KEY: no value; expected keys, as ls shows them"),
        (("restore", DEST, "--all"), "--output: no value; expected a directory or an S3 URI"),
        (("run", SOURCE), "s3_destination_uri: no value; expected an S3 URI such as"),
    ],
    ids=["restore", "restore --all", "run"],
)
def test_what_is_missing_is_said_to_be_and_not_called_none(world, command, words, told):
    code, out, err = command(*words)
    assert (code, out) == (2, "")
    assert told in err
    assert "None" not in err


def test_a_field_that_is_null_is_reported_with_what_it_takes():
    given = {"s3_source_uri": SOURCE, "s3_destination_uri": DEST, "settle_seconds": None}
    with pytest.raises(InvalidInput, match="settle_seconds: no value; expected a whole number"):
        Settings.from_input(given)


def test_where_there_is_no_terminal_the_options_that_go_on_are_reported(command):
    code, out, err = command("clean-up", SOURCE, DEST)
    assert (code, out) == (2, "")
    assert err == (
        "compactor: confirmation is needed, and there is no terminal to ask on\n"
        "  give --yes, or --dry-run to see what would be done\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("--retry-quarantined", "true"),
        ("--retry-quarantined=true",),
        ("--no-retry-quarantined", "false"),
        ("--retry-quarantined", "false", SOURCE, DEST),
    ],
    ids=" ".join,
)
def test_a_switch_with_a_value_gets_an_error_that_says_how_it_is_switched(command, words):
    code, out, err = command("plan", SOURCE, DEST, *words)
    assert (code, out) == (2, "")
    option = words[0].partition("=")[0]
    assert err == (
        f"compactor plan: {option} takes no value: --retry-quarantined is true,"
        " --no-retry-quarantined is false (try compactor plan --help)\n"
    )


def test_the_uri_that_explain_prints_is_a_key_for_restore(world, command, tmp_path: Path):
    (output,) = world.store.contents("lake", "compacted/")
    code, located, _ = command("explain", DEST, output, "--record", 3)
    uri = located.partition(": ")[0]
    assert (code, uri) == (0, f"s3://source/{PARTITION.prefix}b.json")
    assert command("restore", DEST, uri)[1].encode() == LINE * 2
    assert command("restore", DEST, uri, f"s3://source/{KEY}", "-o", tmp_path)[0] == 0
    assert (tmp_path / KEY).read_bytes() == LINE


@pytest.mark.parametrize(
    "words", [["s3://a/k", "k"], ["s3://a/k", "s3://b/k"], ["s3://a/"], ["s3://a"]]
)
def test_keys_that_may_be_meant_in_two_ways_are_refused(words):
    with pytest.raises(InvalidInput, match="URIs s3://BUCKET/KEY of one bucket"):
        named(words)


def test_a_key_of_another_bucket_than_its_uri_says_is_not_given_back(world, command):
    code, out, err = command("restore", DEST, f"s3://elsewhere/{KEY}")
    assert (code, out) == (2, "")
    assert f"KEY: '{KEY}' is not accepted" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((PARTITION.prefix,), "names; compactor restore --prefix takes all below one"),
        (
            ("logs/nope.json",),
            "KEY: 'logs/nope.json' is not accepted; expected the key of a source",
        ),
    ],
    ids=["a prefix", "another key"],
)
def test_what_no_commit_names_is_reported_by_what_was_asked_for(world, command, words, told):
    code, out, err = command("restore", DEST, *words)
    assert (code, out) == (2, "")
    assert told in err


def test_ls_of_nothing_says_so_and_is_no_failure(world, command):
    code, out, err = command("ls", DEST, "lgos/")
    assert (code, out) == (0, "")
    assert "no commit below s3://lake/_compactor/compacted/ names a matching source" in err
    assert command("ls", DEST, "lgos/", "--json")[1:] == ("[]\n", "")


def test_what_was_restored_is_summed_up_where_it_is_more_than_one(world, command, tmp_path: Path):
    code, out, _ = command("restore", DEST, "--all", "-o", tmp_path)
    assert (code, out.splitlines()[-1]) == (0, "2 sources restored, 30 B")


def test_where_no_table_is_like_a_pattern_the_pattern_is_reported(world, command, monkeypatch):
    monkeypatch.setattr(maintain, "open_store", lambda *_: world.store)
    code, out, _ = command("maintain", "plan", "--delta-prefixes", "s3://lake/gold/")
    assert (code, out) == (0, "no table matches s3://lake/gold/\n")


def test_an_output_that_was_deleted_is_named_with_the_way_out(world, command, tmp_path: Path):
    (output,) = world.store.contents("lake", "compacted/")
    world.store.remove("lake", output)
    code, out, err = command("restore", DEST, "--all", "-o", tmp_path)
    assert (code, out) == (1, "")
    assert f"the output of commit 1, s3://lake/{output}, is gone: bring it back" in err
    assert "compactor verify --sources shows which of its sources still stand" in err


def test_verify_of_another_source_asks_whether_it_is_the_right_one(world, command):
    code, _, err = command("verify", "s3://source/lgos/*/", DEST)
    assert code == 2
    assert "s3_source_uri: 's3://source/lgos/*/' is not accepted; expected the source of" in err
    assert "1 commit of other sources not verified, such as that of s3://source/logs/" in err
    assert command("verify", SOURCE, DEST)[0] == 0


@pytest.mark.parametrize(
    ("places", "told"),
    [
        (
            ("s3://source/lgos/", DEST),
            "none of 1 commit past retention is of s3://source/lgos/; check that it is the source",
        ),
        ((SOURCE, NOWHERE), "there is no state of a run at s3://lake/_compactor/compcated/"),
    ],
    ids=["another source", "another destination"],
)
def test_clean_up_at_a_wrong_place_deletes_nothing_and_asks_whether_it_is_right(
    world, command, places, told
):
    before = world.store.contents("source")
    code, out, _ = command("clean-up", *places, "--yes", "--delete-after", "0d")
    assert (code, out.count("\n")) == (0, 1)
    assert out.startswith(f"nothing to delete: {told}")
    assert world.store.contents("source") == before
