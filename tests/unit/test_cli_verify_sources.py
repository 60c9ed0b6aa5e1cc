"""``compactor verify --sources``: what became of every source, and by whom."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from compactor.errors import InvalidInput
from compactor.log.entries import Commit
from compactor.model import QuarantineReason, StoredPart
from compactor.partition.receipts import Receipt
from compactor_cli import commands as cli
from compactor_cli.commands import verify
from tests.support.cleaning import (
    DAY,
    LINE,
    RECORDS,
    commits,
    compact_more,
    left,
    old_world,
    other_parts,
    refusing,
    rewrite,
)
from tests.support.examples import PARTITION
from tests.support.world import World

Verify = Callable[[World], dict[str, Any]]
KINDS = ("equal", "changed", "deleted_by_clean_up", "missing", "not_compared", "differs")


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verify:
    """The command's exit code, and what it says of the sources; kinds that are 0 left out."""

    def run(world: World) -> dict[str, Any]:
        monkeypatch.setattr(verify, "open_store", lambda *_: world.store)
        capsys.readouterr()
        words = ("s3://source/logs/", "s3://lake/compacted/", "--sources", "--json")
        code = cli.main(["verify", *words])
        current = json.loads(capsys.readouterr().out)["current"]
        found = {kind: current[kind] for kind in (*KINDS, "archived", "denied") if current[kind]}
        return {"code": code, **found}

    return run


def key(name: str) -> str:
    return f"{PARTITION.prefix}{name}.json"


def remove(world: World, *names: str) -> None:
    """Somebody else deletes sources."""
    for name in names:
        world.store.remove("source", key(name))


def only_commit(world: World) -> Commit:
    (commit,) = commits(world)
    return commit


def test_what_clean_up_deleted_is_distinguished_from_what_others_deleted(
    verified: Verify, capsys: pytest.CaptureFixture[str]
) -> None:
    world = old_world("ab")
    assert world.clean_up().counts.deleted == 2
    compact_more(world, "c.json", "d.json", "e.json", "f.json")
    remove(world, "c")
    world.store.seed("source", key("d"), b'{"id": "another"}')
    told = {"equal": 2, "changed": 1, "deleted_by_clean_up": 2, "missing": 1}
    assert verified(world) == {"code": 0, **told}
    cli.main(["verify", "s3://source/logs/", "s3://lake/compacted/", "--sources"])
    out = capsys.readouterr().out
    assert "sources now: 2 equal, 1 changed, 2 deleted by clean-up, 1 missing\n" in out
    assert f"commit 2: 1 missing and not deleted by clean-up, such as {key('c')}\n" in out


def test_sources_that_went_after_a_refused_clean_up_are_its_doing(verified: Verify) -> None:
    world = old_world("abc")
    refusing(world, a="AccessDenied: denied")
    assert world.clean_up().counts.refused == 1
    assert left(world) == ["a.json"]
    assert verified(world) == {"code": 0, "equal": 1, "deleted_by_clean_up": 2}


def test_what_clean_up_left_because_it_had_changed_and_is_gone_since_is_missing(
    verified: Verify,
) -> None:
    world = old_world("abc")
    world.store.seed("source", key("a"), b'{"id": "another"}')
    counts = world.clean_up().counts
    assert (counts.deleted, counts.changed) == (2, 1)
    assert verified(world) == {"code": 0, "changed": 1, "deleted_by_clean_up": 2}
    remove(world, "a")
    assert verified(world) == {"code": 0, "deleted_by_clean_up": 2, "missing": 1}


def test_without_any_clean_up_what_is_gone_is_missing(verified: Verify) -> None:
    world = old_world("abc")
    remove(world, "a", "b")
    assert verified(world) == {"code": 0, "equal": 1, "missing": 2}


def test_a_record_about_another_commit_excuses_nothing_and_is_a_finding(verified: Verify) -> None:
    world = old_world("ab")
    world.clean_up()
    ((record, body),) = (
        one for one in world.store.contents("lake", RECORDS).items() if "/cleaned/" in one[0]
    )
    forged = {**json.loads(body), "commit_id": "0" * 32}
    world.store.seed("lake", record, json.dumps(forged).encode())
    assert verified(world) == {"code": 1, "missing": 2}


# Sources without a byte.


def empty_world() -> World:
    world = World()
    world.add("a.json", LINE)
    for name in "xyz":
        world.put(f"{name}.json", b"")
    assert world.run().status == "done"
    named = [source.key for commit in commits(world) for source in commit.sources]
    assert {key(name) for name in "axyz"} == set(named)
    return world


def test_empty_sources_are_asked_for_before_they_count_as_equal(verified: Verify) -> None:
    world = empty_world()
    remove(world, "x")
    world.store.seed("source", key("y"), b'{"id": "no longer empty"}')
    assert verified(world) == {"code": 0, "equal": 2, "changed": 1, "missing": 1}


def test_empty_sources_that_may_not_be_asked_for_are_denied(verified: Verify) -> None:
    world = empty_world()
    world.store.hooks.before.append(_deny_heads_of(key("z")))
    assert verified(world) == {"code": 0, "equal": 3, "denied": 1}


def _deny_heads_of(denied: str) -> Callable[[Any], None]:
    def deny(call: Any) -> None:
        if (call.name, call.key) == ("head", denied):
            raise InvalidInput("permission", "head: AccessDenied", "a role that allows it")

    return deny


# Sources that come in pieces.


def large_world() -> World:
    world = old_world("a")
    world.store._whole_bytes = 8
    return world


def test_a_large_source_that_is_gone_ends_nothing(verified: Verify) -> None:
    world = large_world()
    remove(world, "a")
    assert verified(world) == {"code": 0, "missing": 1}


def test_a_large_source_in_an_archive_tier_is_no_fault_of_its_bytes(verified: Verify) -> None:
    world = large_world()
    world.store.unreadable["source", key("a")] = QuarantineReason.ARCHIVED
    assert verified(world) == {"code": 0, "archived": 1}


# Sources that S3 copied.


def copied_world() -> World:
    world = World(small_object_bytes=1)
    world.store._whole_bytes = 8
    world.add("a.json", LINE)
    receipt: Receipt = world.run()
    assert receipt.status == "done"
    output = only_commit(world).output
    assert output is not None
    assert output.copied
    return world


def other_bytes_under_the_same_etag(world: World) -> None:
    body = world.store.contents("source")[key("a")]
    etag = only_commit(world).rows[0].source.etag
    world.store.seed("source", key("a"), b"x" * len(body), etag=etag)


def test_a_copied_source_is_read_before_it_counts_as_equal(verified: Verify) -> None:
    world = copied_world()
    assert verified(world) == {"code": 0, "equal": 1}
    remove(world, "a")
    assert verified(world) == {"code": 0, "missing": 1}


def test_a_copied_source_is_compared_with_its_md5_sum(verified: Verify) -> None:
    world = copied_world()
    other_bytes_under_the_same_etag(world)
    assert verified(world) == {"code": 1, "differs": 1}


def test_a_copied_source_whose_etag_is_no_sum_is_compared_with_its_copy(verified: Verify) -> None:
    world = copied_world()
    without_sums(world)
    assert verified(world) == {"code": 0, "equal": 1}
    other_bytes_under_the_same_etag(world)
    assert verified(world) == {"code": 1, "differs": 1}


def test_a_copied_source_whose_copy_cannot_be_read_does_not_count_as_equal(
    verified: Verify,
) -> None:
    world = copied_world()
    without_sums(world)
    output = only_commit(world).output
    assert output is not None
    body = world.store.contents("lake")[output.key]
    head = world.store.head("lake", output.key)
    assert head is not None
    world.store.seed("lake", output.key, body, storage_class="DEEP_ARCHIVE", etag=head.etag)
    assert verified(world) == {"code": 0, "not_compared": 1}


@pytest.mark.parametrize("etag", ["0" * 32 + "-2", "0" * 32], ids=["multipart", "SSE-KMS"])
def test_a_merged_source_of_parquet_whose_etag_is_no_sum_does_not_differ(
    verified: Verify, etag: str
) -> None:
    world = World(format="parquet")
    for number, name in enumerate(("a.parquet", "b.parquet")):
        body = io.BytesIO()
        pq.write_table(pa.table({"id": [number]}), body)
        path = f"{PARTITION.prefix}{name}"
        world.store.seed("source", path, body.getvalue(), etag=etag if number else "")
    world.clock.advance(2 * DAY)
    assert world.run().status == "done"
    assert verified(world) == {"code": 0, "equal": 1, "not_compared": 1}


def without_sums(world: World) -> None:
    """The parts' ETags say nothing of the bytes, as with SSE-KMS."""
    commit = only_commit(world)
    assert commit.output is not None
    parts: tuple[StoredPart, ...] = other_parts(commit)
    rewrite(world, commit, output=replace(commit.output, parts=parts))
    world.clock.advance(DAY)
