"""No source goes before its output is proven to hold it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from compactor.log.entries import Commit
from tests.support.cleaning import (
    DAY,
    commits,
    compact_more,
    forget_checksums,
    gone,
    left,
    longer_without_checksum,
    old_world,
    other_bytes,
    other_bytes_without_checksum,
    other_parts,
    output_key,
    records,
    rewrite,
    truncated,
)
from tests.support.examples import PARTITION
from tests.support.world import LOG_LINE, World


@pytest.mark.parametrize(
    "harm",
    [other_bytes, other_bytes_without_checksum, longer_without_checksum, truncated, gone],
)
@pytest.mark.parametrize("long_ago", [True, False])
def test_an_output_that_is_not_as_committed_keeps_its_sources(
    harm: Callable[[World, str], None], long_ago: bool
) -> None:
    world = old_world()
    key = output_key(world)
    harm(world, key)
    if long_ago:
        world.clock.advance(8 * DAY)
    compact_more(world, "z.log", template=LOG_LINE)
    receipt = world.clean_up()
    (line,) = receipt.unsafe
    assert line.startswith(f"{PARTITION.path} commit 1: s3://lake/{key}")
    assert line.endswith("; its sources stay")
    assert "\n" not in line
    assert (receipt.status, left(world)) == ("done", ["a.json", "b.json"]), "z.log is deleted"
    assert list(records(world)) == [2]


def test_an_output_without_a_checksum_keeps_its_sources_and_is_not_read() -> None:
    world = old_world()
    forget_checksums(world)
    reads = world.store.count("open")
    (line,) = world.clean_up().unsafe
    assert "nothing proves its bytes" in line
    assert len(left(world)) == 2
    assert world.store.count("open") == reads


def copied_world() -> tuple[World, Commit]:
    """One source that S3 copied whole."""
    world = World(delete_after="7d", target_bytes=5 * 1024 * 1024)
    world.put("large.json", b'{"id": "one line of many"}\n' * 200_000)
    world.run()
    world.clock.advance(8 * DAY)
    (commit,) = commits(world)
    assert commit.output is not None
    assert commit.output.copied
    return world, commit


def test_a_copy_is_proven_by_the_checksums_of_its_parts_without_reading_it() -> None:
    world, _ = copied_world()
    reads = world.store.count("open")
    assert world.clean_up().counts.deleted == 1
    assert world.store.count("open") == reads


def test_a_copy_whose_parts_have_no_checksum_keeps_its_source() -> None:
    world, commit = copied_world()
    assert commit.output is not None
    rewrite(world, commit, output=replace(commit.output, parts=other_parts(commit)))
    (line,) = world.clean_up().unsafe
    assert "nothing proves its bytes" in line
    assert left(world) == ["large.json"]
