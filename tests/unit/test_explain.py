"""``compactor explain``: five lines about an object, compared with what the store has."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest

from compactor_cli.commands import explain, main
from tests.support.cleaning import DAY, commits, old_world, output_key
from tests.support.examples import NOW, PARTITION, settings
from tests.support.world import World

DEST = "s3://lake/compacted/"
KEY = PARTITION.prefix
LINE = b'{"id": 1}\n'
QUESTIONS = ["object", "candidate", "commit", "published", "clean-up"]
Command = Callable[..., dict[str, Any]]


def with_report(world: World) -> World:
    """A report of a run with these settings, as each run leaves one."""
    body = {
        "version": 1,
        "settings": world.settings.to_dict(),
        "started_at": "2027-01-15T00:00:00+00:00",
    }
    key = f"{world.settings.state.prefix}runs/20270115T000000Z-1a2b3c/report.json"
    world.store.add_bucket("source")
    world.store.seed("lake", key, json.dumps(body).encode(), last_modified=NOW)
    return world


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """What the command says of a key in a world, as JSON; nothing in the store is changed."""

    def run(world: World, key: str) -> dict[str, Any]:
        monkeypatch.setattr(explain, "open_store", lambda *_: world.store)
        monkeypatch.setattr("time.time", world.clock.now)
        before = {name: world.store.contents(name) for name in ("lake", "source")}
        capsys.readouterr()
        code = main(["explain", DEST, key, "--json"])
        out, err = capsys.readouterr()
        assert {name: world.store.contents(name) for name in ("lake", "source")} == before
        return json.loads(out) if not code else {"code": code, "out": out, "err": err}

    return run


def put(world: World, name: str, body: bytes, age: float) -> str:
    world.store.seed("source", KEY + name, body, last_modified=NOW - age)
    return KEY + name


@pytest.mark.parametrize("age", [10, 599, 3_601])
def test_a_young_source_is_no_candidate_until_it_has_settled(asked: Command, age: int) -> None:
    world = with_report(World(depth=3, settle_seconds=600, min_objects=1))
    found = asked(world, put(world, "a.json", LINE, age))
    assert list(found["lines"]) == QUESTIONS
    assert found["candidate"] is (age > 600)
    if age < 600:
        assert found["reason"] == "too_young"
        assert "settle_seconds (600)" in found["lines"]["candidate"]
        assert "a run from " in found["lines"]["candidate"]
    assert found["lines"]["commit"] == "none"


@pytest.mark.parametrize(
    ("given", "name", "reason", "decides"),
    [
        ({"min_objects": 3}, "a.json", "too_few_objects", "min_objects (3)"),
        ({"exclude": ["*.json"]}, "a.json", "excluded", "exclude (*.json)"),
        ({"settle_seconds": 20_000}, "a.json", "open_partition", "six times settle_seconds"),
        ({}, "_a.json", "hidden_from_query_engines", "include"),
        ({}, "dt=1/a.json", "in_a_named_level_below_its_partition", "depth"),
        ({"min_objects": 1}, "empty.json", "empty", "empty"),
    ],
)
def test_the_setting_that_decides_is_named(
    asked: Command, given: dict[str, Any], name: str, reason: str, decides: str
) -> None:
    world = with_report(World(**{"min_objects": 1, "depth": 3, **given}))
    found = asked(world, put(world, name, b"" if reason == "empty" else LINE, DAY))
    assert (found["candidate"], found["reason"]) == (False, reason)
    assert decides in found["lines"]["candidate"]


def test_a_partition_that_no_worker_may_take_leaves_its_sources(asked: Command) -> None:
    fields = {"depth": 3, "min_objects": 1, "lambda_max_bytes": 0}
    for engine, reason in (("none", "oversized"), ("emr_serverless", None)):
        world = with_report(World(**fields, spark_engine=engine))
        found = asked(world, put(world, "a.json", LINE, DAY))
        assert (found["candidate"], found["reason"]) == (reason is None, reason)
        assert ("spark_engine is none" in found["lines"]["candidate"]) is (reason is not None)


def test_a_candidate_is_what_the_next_run_compacts(asked: Command) -> None:
    world = with_report(World(min_objects=1, depth=3))
    key = put(world, "a.json", LINE, DAY)
    before = asked(world, f"s3://source/{key}")
    assert (before["candidate"], before["reason"]) == (True, None)
    assert world.run().status == "done"
    after = asked(world, f"s3://source/{key}")
    assert (after["candidate"], after["reason"]) == (False, "already_committed")
    assert after["sequence"] == 1


def test_a_key_outside_of_the_window_is_named_with_the_window(asked: Command) -> None:
    fields = {"date_format": "%Y/%m/%d", "depth": 0, "window": "2d"}
    world = World()
    world.settings = settings(**fields)
    with_report(world)
    found = asked(world, put(world, "a.json", LINE, 90 * DAY))
    assert found["reason"] == "outside_of_the_window"
    assert PARTITION.path in found["lines"]["candidate"]


def test_the_position_of_a_source_is_where_its_bytes_are(asked: Command) -> None:
    world = with_report(World())
    names = ("a.json", "b.json", "c.json")
    bodies = {name: b'{"of": "%s"}\n' % name.encode() * (n + 2) for n, name in enumerate(names)}
    for name, body in bodies.items():
        put(world, name, body, DAY)
    world.run()
    output = world.store.contents("lake")[output_key(world)]
    plain = gzip.decompress(output) if output[:2] == b"\x1f\x8b" else output
    for number, name in enumerate(names, 1):
        line = asked(world, KEY + name)["lines"]["commit"]
        assert f"source {number} of 3 in {output_key(world)}" in line
        start = int(line.rpartition("from byte ")[2].split()[0].replace(",", ""))
        assert plain[start : start + len(bodies[name])] == bodies[name]


@pytest.mark.parametrize(
    "given", ["s3://source/logs/2026/01/02/a.json", "logs/2026/01/02/a.json", "2026/01/02/a.json"]
)
def test_a_source_is_found_by_its_uri_its_key_and_its_key_below_the_source(
    asked: Command, given: str
) -> None:
    world = with_report(old_world())
    assert asked(world, given)["uri"] == "s3://source/logs/2026/01/02/a.json"


def test_an_output_is_found_by_its_uri_its_key_and_its_key_below_the_destination(
    asked: Command,
) -> None:
    world = with_report(old_world())
    key = output_key(world)
    found = asked(world, f"s3://lake/{key}")
    for given in (key, key.removeprefix("compacted/")):
        assert asked(world, given) == found
    assert (found["kind"], found["uri"]) == ("output", f"s3://lake/{key}")
    assert list(found["lines"]) == ["object", "commit", "sources", "verified", "clean-up"]
    assert found["lines"]["sources"].startswith("2 sources, ")
    assert found["verified"] is True


def test_an_output_that_was_changed_is_not_verified(asked: Command) -> None:
    world = with_report(old_world())
    key = output_key(world)
    body = world.store.contents("lake")[key]
    world.store.seed("lake", key, b"x" * len(body), last_modified=NOW)
    found = asked(world, key)
    assert found["verified"] is False
    assert found["lines"]["verified"].startswith("no: ")
    assert "kept: " in found["lines"]["clean-up"]


def test_retention_says_from_when_on_a_source_is_deleted(asked: Command) -> None:
    world = with_report(old_world())
    world.clock.advance(-7 * DAY)
    young = asked(world, KEY + "a.json")["lines"]["clean-up"]
    assert young.startswith("due from ")
    assert "delete_after (7d)" in young
    world.clock.advance(7 * DAY)
    due = asked(world, KEY + "a.json")["lines"]["clean-up"]
    assert due.startswith("due since ")
    assert due.endswith("the next clean-up deletes its sources")
    world.clean_up()
    done = asked(world, KEY + "a.json")
    assert done["lines"]["object"] == "gone"
    assert done["lines"]["clean-up"].startswith("done at ")
    assert "2 sources deleted" in done["lines"]["clean-up"]
    assert done["reason"] == "gone"


def test_sources_that_are_kept_say_which_setting_keeps_them(asked: Command) -> None:
    world = with_report(old_world(delete_after=None))
    assert asked(world, KEY + "a.json")["lines"]["clean-up"] == (
        "never: delete_after is null, so sources stay"
    )


def test_a_commit_that_was_not_published_says_so(asked: Command) -> None:
    world = with_report(old_world())
    world.store.remove("lake", output_key(world))
    for key in world.store.contents("lake", world.settings.state.prefix):
        if key.endswith(".checkpoint.json.gz"):
            world.store.remove("lake", key)
    line = asked(world, KEY + "a.json")["lines"]["published"]
    assert line.startswith("not yet: ")


def test_an_output_that_is_gone_after_it_was_published_says_that(asked: Command) -> None:
    world = with_report(old_world())
    assert commits(world)
    world.store.remove("lake", output_key(world))
    line = asked(world, KEY + "a.json")["lines"]["published"]
    assert line.startswith("it was: ")


def test_a_quarantined_source_says_why_and_what_would_decide_it(asked: Command) -> None:
    world = with_report(World(min_objects=1, depth=3))
    key = put(world, "a.log.gz", gzip.compress(b"never read " * 50, mtime=0)[:-9], DAY)
    world.run()
    found = asked(world, key)
    assert found["reason"] == "quarantined"
    assert found["lines"]["candidate"].startswith("no, quarantined: truncated")
    assert found["lines"]["commit"].startswith("none; quarantined by entry ")
    assert found["output"] is None


def test_what_is_put_over_a_compacted_source_is_no_candidate(asked: Command) -> None:
    world = with_report(old_world(depth=3, min_objects=1))
    key = put(world, "a.json", LINE * 9, DAY)
    found = asked(world, key)
    assert found["candidate"] is False
    assert "put over an object that was compacted already" in found["lines"]["candidate"]
    assert "the object has changed since" in found["lines"]["commit"]


def test_a_key_that_nothing_knows_is_one_line(asked: Command) -> None:
    world = with_report(old_world())
    for key in ("2026/01/02/z", "s3://source/logs/z", "s3://elsewhere/z", "compacted/z"):
        found = asked(world, key)
        assert (found["code"], found["out"]) == (2, "")
        assert found["err"].count("\n") == 1
        assert f"names {key}" in found["err"]


def test_without_a_report_what_the_log_knows_is_said_all_the_same(asked: Command) -> None:
    world = old_world()
    found = asked(world, KEY + "a.json")
    assert found["sequence"] == 1
    assert found["lines"]["candidate"].startswith("unknown: ")
    assert found["lines"]["published"].startswith("yes: ")


def test_the_lines_are_printed_one_for_each_question(
    asked: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    world = with_report(old_world())
    asked(world, KEY + "a.json")
    capsys.readouterr()
    assert main(["explain", DEST, KEY + "a.json"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == f"source s3://source/{KEY}a.json"
    assert [line.split()[0] for line in lines] == QUESTIONS
