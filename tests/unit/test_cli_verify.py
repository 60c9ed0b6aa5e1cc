"""``compactor verify`` goes through everything and names each case."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from compactor.errors import InvalidInput
from compactor.model import QuarantineReason
from compactor_cli import commands as cli
from compactor_cli.commands import verify
from tests.support.cleaning import DAY
from tests.support.cleaning import commits as commits_of
from tests.support.examples import PARTITION
from tests.support.memory_store import Call
from tests.support.world import World

Command = Callable[..., tuple[int, str, str]]
OUTPUTS = 4


@pytest.fixture
def world() -> World:
    made = World()
    for day in range(OUTPUTS):
        made.add(f"{day}.json", '{{"id": "{}"}}')
        made.run()
    return made


@pytest.fixture
def command(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    monkeypatch.setattr(verify, "open_store", lambda *_: world.store)

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main(["verify", "s3://source/logs/", "s3://lake/compacted/", *words])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def output_keys(world: World) -> list[str]:
    """Keys of the outputs, in the order of their commits."""
    ordered = sorted(commits_of(world), key=lambda one: one.sequence)
    return [one.output.key for one in ordered if one.output is not None]


def archive(world: World, key: str, body: bytes | None = None) -> None:
    """What a lifecycle rule does."""
    found = world.store.head("lake", key)
    assert found is not None
    kept = world.store.contents("lake")[key] if body is None else body
    world.store.seed("lake", key, kept, storage_class="DEEP_ARCHIVE", etag=found.etag)


def test_archived_outputs_are_named_and_nothing_is_wrong_with_them(
    world: World, command: Command
) -> None:
    first, _, third, _ = output_keys(world)
    for key in (first, third):
        archive(world, key)
    code, out, err = command()
    assert (code, err) == (0, "")
    for number, key in ((1, first), (3, third)):
        line = f"{PARTITION.path} commit {number}: not read: archived: s3://lake/{key}"
        assert f"{line} (DEEP_ARCHIVE; size and CRC32 agree)" in out
    assert "sound, but 2 archived outputs could not be read: 4 commits" in out


def test_what_follows_an_archived_output_is_looked_at_too(world: World, command: Command) -> None:
    first, second, third, fourth = output_keys(world)
    archive(world, first)
    world.store.remove("lake", second)
    world.store.unreadable["lake", third] = QuarantineReason.ACCESS_DENIED
    world.store.seed("lake", fourth, b"x" * len(world.store.contents("lake")[fourth]))
    code, out, err = command()
    assert code == 1
    told = {line.partition(": ")[0]: line for line in err.splitlines() if "commit" in line}
    assert f"s3://lake/{second} is gone" in told[f"{PARTITION.path} commit 2"]
    assert "not read: permission: 'get s3://lake/" in told[f"{PARTITION.path} commit 3"]
    assert f"s3://lake/{fourth}" in told[f"{PARTITION.path} commit 4"]
    assert f"{PARTITION.path} commit 1: not read: archived" in out
    assert "IntegrityError: 3 findings" in err


@pytest.mark.parametrize("body", [b"short", None])
def test_an_archived_output_of_other_size_or_checksum_is_a_finding(
    world: World, command: Command, body: bytes | None
) -> None:
    first = output_keys(world)[0]
    size = len(world.store.contents("lake")[first])
    archive(world, first, b"x" * size if body is None else body)
    code, _, err = command()
    assert code == 1
    stored = size if body is None else len(body)
    assert f"it has {stored} bytes and CRC32" in err
    assert f"its commit says {size} bytes and CRC32" in err


def test_json_shows_what_was_not_read(world: World, command: Command) -> None:
    archive(world, output_keys(world)[0])
    code, out, _ = command("--json")
    document = json.loads(out)
    assert (code, document["findings"], len(document["not_read"])) == (0, [], 1)


def test_what_is_wrong_with_every_object_ends_it(world: World, command: Command) -> None:
    def refuse(call: Call) -> None:
        if call.name == "open":
            raise InvalidInput("credentials", "ExpiredToken", "valid AWS credentials")

    world.store.hooks.before.append(refuse)
    code, _, err = command()
    assert (code, "ExpiredToken" in err) == (2, True)


def test_sources_that_cannot_be_read_are_reported_by_name(world: World, command: Command) -> None:
    keys = [f"{PARTITION.prefix}{number}.json" for number in (0, 1)]
    world.store.unreadable["source", keys[0]] = QuarantineReason.ARCHIVED
    world.store.unreadable["source", keys[1]] = QuarantineReason.ENCRYPTED
    code, out, _ = command("--sources")
    assert code == 0
    assert "2 equal, 0 changed, 0 deleted by clean-up, 0 missing, 1 archived, 1 denied\n" in out
    assert all(f"source {key}: not read" in out for key in keys)


# Clean-up.


def test_the_head_of_an_archived_output_is_proof_where_it_has_a_checksum(world: World) -> None:
    made = World(delete_after="7d")
    made.store, made.clock = world.store, world.clock
    for key in output_keys(world):
        archive(world, key)
    made.clock.advance(8 * DAY)
    receipt = made.clean_up()
    assert (receipt.counts.deleted, receipt.unsafe) == (OUTPUTS, [])
