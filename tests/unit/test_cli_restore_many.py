"""`restore` of many sources: which, to where, and never anywhere else."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable
from glob import escape
from pathlib import Path

import pytest

from compactor.errors import InvalidInput
from compactor_cli import api, restore_files, restore_targets
from compactor_cli.commands import main
from compactor_cli.commands import restore as restore_command
from tests.hostile.names import NAMES
from tests.support.cleaning import DAY, old_world
from tests.support.examples import PARTITION
from tests.support.memory_store import Call
from tests.support.world import World
from tests.unit.test_cli_restore import make_columnar

LINE = b'{"id": 1}\n'
DEST = "s3://lake/compacted/"
KEY = PARTITION.prefix
Command = Callable[..., tuple[int, str, str]]


HIDDEN = re.compile(r"(?:^|/)[_.]")


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    # Hidden names are taken where they are spelled out.
    hidden = [f"*/{escape(name)}" for name in (*LEADING_ELSEWHERE, *NAMES) if HIDDEN.search(name)]
    return use(World(include=["*", *hidden]), monkeypatch)


def use(made: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Let the command work with the store of this world."""
    monkeypatch.setattr(restore_command, "open_store", lambda *_: made.store)
    monkeypatch.setattr("time.time", lambda: made.clock.time)
    made.store.add_bucket("other")
    return made


@pytest.fixture
def restore(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["restore", DEST, *map(str, words)])
        return code, *capsys.readouterr()

    return run


def files_below(directory: Path) -> dict[str, bytes]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


def line(value: str) -> bytes:
    """A source of one record."""
    return b'{"v": "%b"}\n' % value.encode()


def put(world: World, **values: str) -> None:
    """Write sources of one record each and compact them, a day after the ones before."""
    world.clock.time += DAY
    for name, value in values.items():
        world.put(name, line(value))
    assert world.run().status == "done"


# Which sources.


@pytest.fixture
def days(world: World) -> World:
    """Three commits on three days."""
    put(world, a="a1", b="b1")
    put(world, d="d2")
    put(world, c="c3")
    return world


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--all"], "a1 b1 c3 d2"),
        (["--prefix", KEY + "a"], "a1"),
        (["--glob", "logs/*/[bc]"], "b1 c3"),
        (["--glob", "*/[bc]", "--prefix", KEY + "c"], "c3"),
        (["--since", "2027-01-17"], "c3 d2"),
        (["--since", "23h"], "c3"),
        (["--until", "2027-01-16"], "a1 b1"),
        (["--until", "2027-01-17T00:00:00Z"], "a1 b1"),
        (["--since", "2027-01-17", "--until", "2027-01-17"], "d2"),
    ],
)
def test_what_is_wanted_comes_back_of_that_time(
    days: World, restore: Command, tmp_path: Path, words: list[str], found: str
) -> None:
    code, _, err = restore(*words, "-o", tmp_path)
    assert (code, err) == (0, "")
    values = [json.loads(body)["v"] for body in files_below(tmp_path).values()]
    assert " ".join(sorted(values)) == found


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--glob", "nothing*"], "--glob: 'nothing*'"),
        (["--since", "2027-01-20"], "--since: '2027-01-20T00:00:00Z'"),
        (["--all", "--prefix", "logs/"], "KEY: ['--prefix', '--all']"),
        ([KEY + "a", "--all"], "KEY:"),
        ([], "KEY: no value"),
        (["--until", "yesterday"], "--until: 'yesterday'"),
    ],
)
def test_what_nothing_fits_and_what_contradicts_itself_is_reported_in_one_line(
    days: World, restore: Command, tmp_path: Path, words: list[str], told: str
) -> None:
    code, _, err = restore(*words, "-o", tmp_path)
    assert (code, err.count("\n")) == (2, 1)
    assert told in err
    assert not files_below(tmp_path)


def test_each_output_is_read_once_for_all_keys_that_are_in_it(
    world: World, restore: Command, tmp_path: Path
) -> None:
    put(world, **{f"{level}/{name}": f"{level}{name}" for level in "xyz" for name in "ab"})
    keys = [f"{KEY}{level}/{name}" for level in "zxy" for name in "ba"]
    before = world.store.count("get_range")
    assert restore(*keys, "-o", tmp_path)[0] == 0
    assert world.store.count("get_range") == before + 1
    assert files_below(tmp_path) == {key: line(f"{key[-3]}{key[-1]}") for key in keys}


# Names that cannot be any.

LEADING_ELSEWHERE = (
    "../../../../../../../../../../tmp/escaped",
    "../sibling",
    "/etc/escaped",
    "a/./b",
    "a//b",
    "..",
    "below/",
    "nul\0nul",
    "n" * 300,
    "ü" * 200 + ".gz",
)


def every_name(world: World) -> dict[str, bytes]:
    """Keys that nobody expects, each with a content of its own."""
    # Of "file" and "file/below" one cannot have its name.
    beside = ("file", "file/below", "f" * 255, "f" * 255 + "/below")
    names = dict.fromkeys((*LEADING_ELSEWHERE, *NAMES, "back\\..\\slash", *beside))
    contents = {name: b'{"id": %d}\n' % n for n, name in enumerate(names) if len(name) < 900}
    for name, content in contents.items():
        world.put(name, content)
    assert world.run().status == "done"
    return contents


@pytest.mark.parametrize("name", LEADING_ELSEWHERE)
def test_a_key_that_would_lead_elsewhere_is_named_before_anything_is_written(
    world: World, restore: Command, tmp_path: Path, name: str
) -> None:
    put(world, **{"good": "good", name: "x"})
    inside = tmp_path / "here" / "inside"
    code, _, err = restore("--all", "-o", inside)
    assert (code, err.count("\n")) == (2, 1)
    assert "restore to an S3 URI, where any key is allowed, or a single KEY to standard" in err
    assert not [*tmp_path.iterdir()]


def test_on_a_system_where_backslashes_part_names_they_are_no_names(
    world: World, restore: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compactor_cli.restore_files._SEPARATORS", frozenset("\\:"))
    put(world, **{"a\\..\\b": "x", "c:d": "y"})
    code, _, err = restore("--all", "-o", tmp_path)
    assert code == 2
    assert err.count("is not a valid file name") == 2
    assert not files_below(tmp_path)


def test_the_file_system_says_how_long_names_may_be(
    world: World, restore: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pathconf", lambda *_: 100)
    put(world, **{"n" * 100: "x", "m" * 101: "y", "m" * 102: "z"})
    code, _, err = restore("--all", "-o", tmp_path)
    assert code == 2
    assert "name of 101 bytes; the limit is 100" in err
    assert not files_below(tmp_path)


def test_a_link_below_the_directory_leads_nowhere(
    world: World, restore: Command, tmp_path: Path
) -> None:
    put(world, a="x")
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "logs").symlink_to(outside)
    code, _, err = restore("--all", "-o", inside)
    assert (code, err.count("\n")) == (2, 1)
    assert f"{str(inside / 'logs')!r} is a link" in err
    assert not files_below(outside)


def test_a_directory_that_becomes_a_link_meanwhile_leads_nowhere(
    world: World, restore: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(world, a="x")
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    honest = restore_files.FileTargets.check

    def late(targets: restore_files.FileTargets) -> None:
        honest(targets)
        (inside / "logs").symlink_to(outside)

    monkeypatch.setattr(restore_files.FileTargets, "check", late)
    code, _, err = restore("--all", "-o", inside)
    assert (code, "has become one" in err) == (2, True)
    assert not files_below(outside)


def test_a_directory_that_is_a_link_itself_may_be_given(
    world: World, restore: Command, tmp_path: Path
) -> None:
    put(world, a="x")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert restore("--all", "-o", tmp_path / "link")[0] == 0
    assert files_below(tmp_path / "real") == {KEY + "a": line("x")}


# To an S3 URI.

BACK = "s3://other/back/"


def objects(world: World, bucket: str = "other") -> dict[str, bytes]:
    return dict(world.store.contents(bucket))


def test_sources_become_objects_under_their_keys_whatever_these_are(
    world: World, restore: Command
) -> None:
    contents = every_name(world)
    world.put("packed.gz", gzip.compress(LINE, mtime=0))
    world.run()
    code, out, err = restore("--all", "-o", BACK, "--json")
    assert (code, err) == (0, "")
    expected = {f"back/{KEY}{name}": body for name, body in contents.items()}
    expected[f"back/{KEY}packed.gz"] = LINE
    restored = {
        name: gzip.decompress(body) if name.endswith(".gz") else body
        for name, body in objects(world).items()
    }
    assert restored == expected
    assert {one["path"] for one in json.loads(out)} == {
        f"s3://other/{key}" for key in objects(world)
    }


def test_objects_that_are_there_stay_unless_they_may_be_replaced(
    days: World, restore: Command
) -> None:
    days.store.seed("other", f"back/{KEY}b", b"mine")
    code, _, err = restore("--all", "-o", BACK)
    assert (code, err.count("\n")) == (2, 1)
    assert f"'s3://other/back/{KEY}b' exists (--overwrite replaces it)" in err
    assert objects(days) == {f"back/{KEY}b": b"mine"}
    assert restore("--all", "-o", BACK, "--overwrite")[0] == 0
    assert sorted(objects(days).values()) == [line("a1"), line("b1"), line("c3"), line("d2")]


@pytest.mark.parametrize("before", [None, b"mine"])
@pytest.mark.parametrize("part_bytes", [8, 8 << 20])
def test_an_object_that_is_put_meanwhile_stays(
    world: World,
    restore: Command,
    monkeypatch: pytest.MonkeyPatch,
    before: bytes | None,
    part_bytes: int,
) -> None:
    monkeypatch.setattr(restore_targets, "_PART_BYTES", part_bytes)
    small_parts(world)
    put(world, a="more than eight bytes")
    place = f"back/{KEY}a"
    if before is not None:
        world.store.seed("other", place, before)

    def late(call: Call) -> None:
        if call.bucket == "other" and call.name in ("create", "replace", "create_upload"):
            world.store.seed("other", place, b"theirs")

    world.store.hooks.before.append(late)
    code, _, err = restore("--all", "-o", BACK, "--overwrite")
    assert (code, err.count("\n")) == (2, 1)
    assert "a key that no other writer takes at the same time" in err
    assert objects(world) == {place: b"theirs"}
    assert not [*world.store.list_uploads("other", "")]


@pytest.mark.parametrize("part_bytes", [8, 8 << 20])
def test_a_lost_answer_to_a_put_is_no_foreign_object(
    world: World, restore: Command, monkeypatch: pytest.MonkeyPatch, part_bytes: int
) -> None:
    monkeypatch.setattr(restore_targets, "_PART_BYTES", part_bytes)
    small_parts(world)
    put(world, a="more than eight bytes")

    def first_try(call: Call) -> None:
        if call.bucket == "other" and call.name in ("create", "complete_upload"):
            world.store.seed("other", f"back/{KEY}a", line("more than eight bytes"))

    world.store.hooks.before.append(first_try)
    assert restore("--all", "-o", BACK)[0] == 0
    assert objects(world) == {f"back/{KEY}a": line("more than eight bytes")}


def small_parts(world: World) -> None:
    """The store takes parts of a few bytes."""
    world.store._min_part_bytes = 1


def test_a_large_source_is_uploaded_in_parts_and_seen_only_once_it_is_checked(
    world: World, restore: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore_targets, "_PART_BYTES", 8)
    small_parts(world)
    world.store._chunk_bytes = 5
    put(world, a="0123456789" * 7)
    puts = world.store.count("create")
    assert restore("--all", "-o", BACK)[0] == 0
    assert world.store.count("create") == puts
    assert objects(world)[f"back/{KEY}a"] == line("0123456789" * 7)
    damage(world)
    before = objects(world)
    assert restore("--all", "-o", "s3://other/again/")[0] == 1
    assert objects(world) == before
    assert not [*world.store.list_uploads("other", "")]


def damage(world: World) -> None:
    """One byte of the output is another one."""
    ((key, body),) = world.store.contents("lake", "compacted/").items()
    world.store.seed("lake", key, b"X" + body[1:])


@pytest.mark.parametrize("place", [DEST, f"{DEST}deeper/", "s3://lake/_compactor/"])
def test_nothing_is_restored_among_outputs_or_state(
    days: World, restore: Command, place: str
) -> None:
    before = objects(days, "lake")
    code, _, err = restore("--all", "-o", place)
    assert (code, err.count("\n")) == (2, 1)
    assert "a place outside of s3://lake/" in err
    assert objects(days, "lake") == before


def test_a_source_goes_back_to_where_it_was_and_is_not_compacted_again(
    restore: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = use(old_world("abc"), monkeypatch)
    before = objects(world, "source")
    assert world.clean_up().counts.deleted == 3
    assert restore("--all", "-o", "s3://source/")[0] == 0
    assert objects(world, "source") == before
    world.must_be_finished()


def test_under_another_key_nothing_is_restored_into_the_source(
    world: World, restore: Command
) -> None:
    world.put("a.gz", gzip.compress(LINE, mtime=0))
    world.run()
    world.store.remove("source", KEY + "a.gz")
    code, _, err = restore("--all", "-o", "s3://source/logs/2026/")
    assert (code, "would be a new source in s3://source/logs/" in err) == (2, True)
    assert "(-o s3://source/ puts it back under its own key)" in err
    assert not objects(world, "source")
    assert restore("--all", "-o", "s3://source/")[0] == 0
    assert gzip.decompress(objects(world, "source")[KEY + "a.gz"]) == LINE
    assert world.run().counts.objects_in == 0


def test_a_key_that_gets_too_long_is_named_before_anything_is_written(
    world: World, restore: Command
) -> None:
    put(world, **{"a": "x", "k" * (1_024 - len(KEY)): "y"})
    code, _, err = restore("--all", "-o", BACK)
    assert (code, "would have a key of over 1,024 bytes" in err) == (2, True)
    assert not objects(world)


def test_only_what_lies_around_the_keys_is_listed(days: World, restore: Command) -> None:
    for n in range(2_000):
        days.store.seed("other", f"elsewhere/{n}", b"x")
        days.store.seed("other", f"zzz/{n}", b"x")
    before = days.store.count("list_objects")
    assert restore("--all", "-o", "s3://other/")[0] == 0
    # The logs, and one page of what is there.
    assert days.store.count("list_objects") == before + 2


def test_where_outputs_hold_rows_alone_nothing_becomes_an_object(
    world: World, restore: Command
) -> None:
    put(world, a="x")
    make_columnar(world, "a")
    before = world.store.count("list_objects")
    code, _, err = restore("--all", "-o", BACK)
    assert (code, "1 source cannot be restored" in err) == (1, True)
    assert world.store.count("list_objects") == before + 1
    assert not objects(world)


def test_what_is_too_large_to_be_replaced_under_a_condition_is_reported_before_anything_is_written(
    days: World, restore: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore_targets, "_MOST_REPLACED_BYTES", 4)
    days.store.seed("other", f"back/{KEY}b", b"mine")
    code, _, err = restore("--all", "-o", BACK, "--overwrite")
    assert (code, f"back/{KEY}b' exists, and is too large to be replaced" in err) == (
        2,
        True,
    )
    assert objects(days) == {f"back/{KEY}b": b"mine"}


def test_python_restores_to_a_bucket_as_well_and_by_a_glob(
    days: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(api, "open_store", lambda *_: days.store)
    done = api.restore(DEST, glob="*/[bc]", to=BACK)
    assert {one.path for one in done} == {f"{BACK}{KEY}b", f"{BACK}{KEY}c"}
    assert sorted(objects(days).values()) == [line("b1"), line("c3")]
    with pytest.raises(InvalidInput, match="a place outside"):
        api.restore(DEST, prefix=KEY, to=DEST)
    api.restore(DEST, glob="*", prefix=KEY + "a", to=tmp_path)
    assert files_below(tmp_path) == {KEY + "a": line("a1")}


def test_what_s3_refuses_ends_it(days: World, restore: Command) -> None:
    def refuse(call: Call) -> None:
        if (call.bucket, call.name) == ("other", "create"):
            raise InvalidInput("permission", "put: AccessDenied", "a role that allows it")

    days.store.hooks.before.append(refuse)
    code, _, err = restore("--all", "-o", BACK)
    assert (code, "AccessDenied" in err) == (2, True)
