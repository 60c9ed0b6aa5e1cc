"""``ls --long`` and ``explain --record``: where each source is, checked with other readers."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from compactor_cli.commands import explain, ls, main
from tests.support.cleaning import DAY, commits
from tests.support.examples import PARTITION
from tests.support.world import LOG_LINE, World, records_in
from tests.unit.test_cli_restore import make_columnar

DEST = "s3://lake/compacted/"
KEY = PARTITION.prefix
Command = Callable[..., tuple[int, str, str]]
JSON = '{{"id": "{}"}}'


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Sources of several formats and compressions, with headers, joints and edits of all kinds."""
    made = use(World(), monkeypatch)
    made.add_variety()
    made.put("t1.csv", b"id,value\nrecord-910,1\nrecord-911,2\n")
    made.put("t2.csv", b"id,value\nrecord-912,1")
    made.put("trail.json", b'{"Records":[{"id":"record-913"},{"id":"record-914"}]}')
    made.put("glued.json", b'{"id":"record-915"}{"id":"record-916"}{"id":"record-917"}')
    assert made.run().status == "done"
    return made


def use(made: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Let the commands work with the store of this world."""
    for module in (explain, ls):
        monkeypatch.setattr(module, "open_store", lambda *_: made.store)
    return made


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([*map(str, words)])
        return code, *capsys.readouterr()

    return run


def unpacked(body: bytes) -> bytes:
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


def outputs(world: World) -> dict[str, bytes]:
    """Decompressed content of the outputs by URI, read with nothing of the program's own."""
    found = world.store.contents("lake", "compacted/")
    return {f"s3://lake/{key}": unpacked(body) for key, body in found.items()}


def compacted_sources(world: World) -> dict[str, bytes]:
    """Decompressed content of the sources that outputs hold, by key."""
    named = {source.key for commit in commits(world) for source in commit.sources}
    found = world.store.contents("source")
    return {key: unpacked(body) for key, body in found.items() if key in named}


# ls --long


def joined(path: Path, world: World) -> list[dict[str, Any]]:
    """The export joined with the outputs' content, by DuckDB alone."""
    with duckdb.connect() as engine:
        engine.execute("CREATE TABLE outputs (uri VARCHAR, content BLOB)")
        for uri, content in outputs(world).items():
            engine.execute("INSERT INTO outputs VALUES (?, ?)", [uri, content])
        rows = engine.execute(
            "SELECT m.* REPLACE (from_base64(dropped_prefix) AS dropped_prefix,"
            " from_base64(dropped_suffix) AS dropped_suffix), o.content"
            " FROM read_json(?) m LEFT JOIN outputs o ON o.uri = m.output",
            [str(path)],
        )
        names = [one[0] for one in rows.description]
        return [dict(zip(names, row, strict=True)) for row in rows.fetchall()]


def test_a_join_with_the_outputs_gives_the_bytes_of_every_source(
    world: World, command: Command, tmp_path: Path
) -> None:
    expected = compacted_sources(world)
    code, out, _ = command("ls", DEST, "--json", "--long")
    assert code == 0
    path = tmp_path / "m.json"
    path.write_text(out)
    rows = joined(path, world)
    assert {row["key"] for row in rows} == set(expected)
    cut = {}
    for row in rows:
        start, length = row["offset"] or 0, (row["length"] or 0) - row["appended"]
        middle = (row["content"] or b"")[start : start + length]
        content = row["dropped_prefix"] + middle + row["dropped_suffix"]
        if row["exact"]:
            cut[row["key"]] = content
            assert zlib.crc32(content) == row["crc32"]
        assert row["bytes"] == len(world.store.contents("source")[row["key"]])
    assert cut == {key: body for key, body in expected.items() if key in cut}
    inexact = {row["key"] for row in rows if not row["exact"]}
    # Its values stand on lines of their own.
    assert inexact == {f"{KEY}glued.json"}
    records = {row["key"]: row["records"] for row in rows if row["length"]}
    assert records == {
        key: sum(records_in(body).values()) for key, body in expected.items() if body
    }


def test_outputs_of_rows_have_no_slices(world: World, command: Command) -> None:
    world.clock.advance(DAY)
    world.add("rows.json", JSON)
    world.run()
    make_columnar(world, "rows.json")
    rows = json.loads(command("ls", DEST, "--json", "--long")[1])
    (row,) = (row for row in rows if row["key"].endswith("rows.json"))
    assert (row["offset"], row["length"], row["exact"], row["format"]) == (
        None, None, False, "parquet",
    )  # fmt: skip
    assert row["output"] is not None


def test_places_are_shown_in_json_only(world: World, command: Command) -> None:
    code, _, err = command("ls", DEST, "--long")
    assert (code, "--json with it" in err) == (2, True)


def test_a_damaged_entry_fails(world: World, command: Command) -> None:
    entry = next(key for key in world.store.contents("lake") if "/commits/" in key)
    world.store.seed("lake", entry, b"damaged")
    code, _, err = command("ls", DEST, "--json", "--long")
    assert (code, "is damaged" in err) == (1, True)


def test_a_place_without_state_is_reported(
    world: World, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = command("ls", "s3://lake/elsewhere/", "--json", "--long")
    assert code == 2
    assert "there is no state of a run at s3://lake/_compactor/elsewhere/" in err


# explain --record


def located(command: Command, *words: object) -> dict[str, Any]:
    code, out, err = command("explain", DEST, *words, "--json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def test_every_record_of_every_output_is_found_in_the_source_that_it_came_from(
    world: World, command: Command
) -> None:
    sources = compacted_sources(world)
    checked = 0
    for uri, content in outputs(world).items():
        numbers = [*records_in(content)]
        for n, number in enumerate(numbers, start=1):
            name = uri.removeprefix(("s3://lake/", DEST)[n % 2])
            by_number = located(command, name, "--record", n)
            assert by_number == located(command, uri, "--record", n)
            body = sources[by_number["source"].removeprefix("s3://source/")]
            assert [*records_in(body)][by_number["record"] - 1] == number
            checked += 1
    assert checked == sum(len(records_in(body)) for body in sources.values()) > 20


def test_what_is_no_record_of_a_source_is_reported(world: World, command: Command) -> None:
    csv = next(uri for uri, content in outputs(world).items() if content.startswith(b"id,value"))
    for number, told in (
        (10**6, "a number from 1 to"),
        (0, "is not in the range x>=1"),
        ("-1", "is not in the range x>=1"),
        ("first", "is not a valid integer"),
    ):
        code, _, err = command("explain", DEST, csv, f"--record={number}")
        assert (code, told in err) == (2, True)


def test_an_output_that_is_unknown_is_reported(world: World, command: Command) -> None:
    for output in (f"{DEST}2026/01/02/no", "s3://other/x", "elsewhere/x", f"{DEST}no/such/x"):
        code, _, err = command("explain", DEST, output, "--record", 1)
        assert (code, "InvalidInput: KEY" in err) == (2, True)


def test_every_record_of_what_s3_copied_is_of_its_one_source(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = use(World(small_object_bytes=1), monkeypatch)
    world.add("a.log", LOG_LINE)
    world.run()
    (uri,) = outputs(world)
    assert located(command, uri, "--record", 1)["source"] == f"s3://source/{KEY}a.log"


def test_an_output_of_rows_has_no_places(world: World, command: Command) -> None:
    world.clock.advance(DAY)
    world.add("rows.json", JSON)
    world.run()
    make_columnar(world, "rows.json")
    newest = max(commits(world), key=lambda one: one.sequence)
    assert newest.output is not None
    code, _, err = command("explain", DEST, newest.output.key, "--record", 1)
    assert (code, "this one holds their rows" in err) == (2, True)
