"""A log that is gone, rebuilt: what is proven, what is known to be older, and what is left."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compactor.clock import NoDeadline
from compactor.errors import IntegrityError, InvalidInput
from compactor.log.log import CommitLog
from compactor.log.manifest import identities
from compactor.outputs.verify import check_commit
from compactor.runs.partition_run import PartitionRun
from compactor.verification.adopt import Adoption, adopt, begin, find_outputs
from compactor_cli import commands as cli
from compactor_cli.commands import adopt as command_module
from tests.support.cleaning import DAY, LINE
from tests.support.examples import NOW, PARTITION, columns
from tests.support.world import World

STATE = "_compactor/compacted/"
MARKER = f"{STATE}identity.json"


def arrive(world: World, name: str, template: str = LINE, **given: Any) -> None:
    """A source arrives now, and not a day ago."""
    world.add(name, template, **given)
    key = PARTITION.prefix + name
    world.store.seed("source", key, world.store.contents("source")[key])


def grown(**given: Any) -> World:
    """A partition that three runs compacted, a day apart, with what came between; not in order."""
    world = World(depth=3, **given)
    world.store.add_bucket("source")
    world.add_variety()
    world.run()
    for day in range(2):
        world.clock.advance(DAY)
        for name in (f"b{day}.json", f"a{day}.json", f"z{day}.log.gz"):
            arrive(world, name, LINE, packed=name.endswith(".gz"))
        world.clock.advance(3 * DAY)
        world.run()
    return world


def lose(world: World, *parts: str) -> None:
    for key in world.store.contents("lake", "_compactor/"):
        if any(part in key for part in parts):
            world.store.remove("lake", key)


def adopted(world: World, *, dry_run: bool = False) -> Adoption:
    found = find_outputs(world.settings, world.store)
    assert [*found] == [PARTITION.path]
    if not dry_run:
        begin(world.settings, world.store, found)
    run = PartitionRun(
        PARTITION, world.settings, world.store, world.clock, NoDeadline(), "adopting"
    )
    return adopt(run, dry_run=dry_run)


def named(world: World) -> set[bytes]:
    log = CommitLog(world.store, world.settings, PARTITION)
    return {one for commit in log.every_commit() for one in identities(commit.rows)}


@pytest.mark.parametrize(
    "given",
    [{}, {"compression": "gzip"}, {"small_object_bytes": 60}, {"settle_seconds": 0}],
    ids=str,
)
def test_a_log_of_several_runs_is_rebuilt_from_outputs_and_sources(given: Any) -> None:
    world = grown(**given)
    before, marker = named(world), world.store.contents("lake")[MARKER]
    outputs = world.store.contents("lake", "compacted/")
    lose(world, "_compactor/")
    done = adopted(world)
    assert (done.left, done.older, done.error) == ([], [], "")
    assert sorted(done.proven) == [*outputs]
    assert named(world) == before
    assert done.sources == len(before)
    assert world.store.contents("lake")[MARKER] == marker, "outputs name their log"
    assert world.store.contents("lake", "compacted/") == outputs
    for commit in CommitLog(world.store, world.settings, PARTITION).every_commit():
        check_commit(commit, world.store)
    world.must_be_finished()


def test_renamed_outputs_are_proven_too() -> None:
    world = grown()
    before = named(world)
    for key in world.store.contents("lake", "compacted/"):
        world.store.rename("lake", key, key.replace("/compacted-", "/other-"))
    outputs = world.store.contents("lake", "compacted/")
    lose(world, "_compactor/")
    with pytest.raises(IntegrityError, match="does not name"):
        world.run()
    done = adopted(world)
    assert (done.left, done.older, done.error) == ([], [], "")
    assert sorted(done.proven) == [*outputs]
    assert named(world) == before
    world.must_be_finished()


def test_a_dry_run_proves_the_same_and_writes_nothing() -> None:
    world = grown()
    lose(world, "_compactor/")
    before = world.store.contents("lake")
    done = adopted(world, dry_run=True)
    assert len(done.proven) == done.outputs > 3
    assert world.store.contents("lake") == before
    assert world.store.unfinished_uploads("lake") == {}


def test_what_is_adopted_is_cleaned_up_like_anything_else() -> None:
    world = grown(clean_up="delete", retention_days=7)
    lose(world, "_compactor/")
    adopted(world)
    world.clock.advance(6 * DAY)
    assert world.clean_up().counts.deleted == 0, "retention counts from the adoption"
    world.clock.advance(2 * DAY)
    assert world.clean_up().counts.deleted > 5
    world.check()


def test_entries_that_are_missing_at_the_end_are_written_again() -> None:
    world = grown()
    log = CommitLog(world.store, world.settings, PARTITION)
    last = log.load().last
    lose(world, f"{last:020d}.")
    lose(world, f"{last - 1:020d}.")
    arrive(world, "new.json")
    world.clock.advance(3 * DAY)
    with pytest.raises(IntegrityError, match="does not name"):
        world.run()
    assert len(adopted(world).proven) == 2
    assert world.run().counts.objects_in == 1
    world.must_be_finished()


def test_a_marker_and_a_scheme_that_are_gone_are_written_again() -> None:
    world = grown()
    before = {
        key: body
        for key, body in world.store.contents("lake", "_compactor/").items()
        if key == MARKER or "/schemes/" in key
    }
    assert len(before) == 2
    lose(world, "identity.json", "/schemes/")
    assert adopted(world).outputs == 0
    assert before.items() <= world.store.contents("lake").items()
    world.must_be_finished()


def test_other_partitions_than_the_outputs_were_made_of_are_refused() -> None:
    world = grown()
    lose(world, "_compactor/")
    world.settings = replace(world.settings, depth=1)
    with pytest.raises(InvalidInput, match=r"depth: 1 .*there are some of 2026/01/02/"):
        adopted(world)
    assert not [key for key in world.store.contents("lake") if "/schemes/" in key]


def test_outputs_of_two_logs_are_adopted_by_none() -> None:
    world, other = grown(), World(depth=3)
    other.add("y.json", LINE)
    other.run()
    (key,) = other.store.contents("lake", "compacted/")
    world.store._buckets["lake"].set(key, other.store._buckets["lake"].objects[key])
    lose(world, "_compactor/")
    with pytest.raises(IntegrityError, match="was written for the logs"):
        adopted(world)


def test_an_output_older_than_all_sources_is_taken_without_a_manifest() -> None:
    world = grown()
    for key in world.store.contents("source"):
        world.store.remove("source", key)
    lose(world, "_compactor/")
    outputs = [*world.store.contents("lake", "compacted/")]
    world.clock.advance(DAY)
    arrive(world, "new.json")
    world.clock.advance(3 * DAY)
    done = adopted(world)
    assert (done.older, done.proven, done.left) == (outputs, [], [])
    for commit in CommitLog(world.store, world.settings, PARTITION).every_commit():
        check_commit(commit, world.store)
    assert world.run().counts.objects_in == 1
    world.check()


def test_what_no_plan_explains_is_left_and_keeps_its_partition_stopped() -> None:
    world = World(depth=3)
    for name in ("a.json", "b.json"):
        world.add(name, LINE)
    world.run()
    world.store.remove("source", PARTITION.prefix + "a.json")
    lose(world, "_compactor/")
    done = adopted(world)
    assert (done.proven, done.older) == ([], [])
    assert "no plan of the sources that are left has its group" in done.left[0]
    with pytest.raises(IntegrityError, match="does not name"):
        world.run()
    world.store.hooks.clear()


def test_an_output_with_other_bytes_is_left() -> None:
    world = World(depth=3)
    world.add("a.json", LINE)
    world.run()
    (key,) = world.store.contents("lake", "compacted/")
    began = world.clock.now()
    lose(world, "_compactor/")
    body = world.store.contents("lake")[key]
    world.store.seed("lake", key, body.replace(b"record-0", b"record-9"), last_modified=began)
    done = adopted(world)
    assert done.proven == []
    assert "CRC32" in done.left[0]


def test_a_log_with_a_gap_is_reported_and_left() -> None:
    world = grown()
    lose(world, f"commits/{1:020d}.json.gz")
    assert "has no entry 1" in adopted(world).error


# The command.

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def lost() -> World:
    world = grown()
    lose(world, "_compactor/")
    return world


@pytest.fixture
def command(
    lost: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setattr(command_module, "open_store", lambda *_: lost.store)
    monkeypatch.setattr(command_module, "SystemClock", lambda: lost.clock)

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        places = ("s3://source/logs/", "s3://lake/compacted/")
        declared = ("--formats", json.dumps(columns()))
        code = cli.main(["adopt", *places, *declared, *words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


DEPTH = ("--depth", "3")


def test_the_command_shows_what_is_proven_and_writes_nothing_on_a_dry_run(
    lost: World, command: Command
) -> None:
    before = lost.store.contents("lake")
    code, out, err = command(*DEPTH, "--dry-run")
    assert (code, err) == (0, "")
    assert "Outputs without a commit" in out
    assert lost.store.contents("lake") == before


def test_the_command_writes_once_it_may(lost: World, command: Command) -> None:
    code, out, _ = command(*DEPTH, "--yes")
    assert code == 0
    assert "written: " in out
    lost.must_be_finished()
    code, out, _ = command(*DEPTH, "--yes")
    assert (code, "every output is named by a commit" in out) == (0, True)


def test_scripts_get_one_document(lost: World, command: Command) -> None:
    code, out, _ = command(*DEPTH, "--yes", "--json")
    document = json.loads(out)
    assert code == 0
    assert document["done"] == document["partitions"]
    assert document["done"][0]["left"] == []


def test_what_is_left_is_a_failure_that_names_it(lost: World, command: Command) -> None:
    key = f"compacted/2026/01/02/compacted-{'0' * 32}.json.gz"
    lost.store.seed("lake", key, gzip.compress(b""), last_modified=NOW)
    code, _, err = command(*DEPTH, "--yes")
    assert code == 1
    assert key in err
    assert "1 finding" in err


def test_no_question_is_asked_where_there_is_no_terminal(lost: World, command: Command) -> None:
    code, _, err = command(*DEPTH)
    assert (code, "--yes" in err) == (2, True)
    code, _, err = command(*DEPTH, "--yes", "--output-format", "parquet")
    assert (code, "output_format" in err) == (2, True)
