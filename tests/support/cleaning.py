"""Worlds whose commits are past retention, and helpers for tests of clean-up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from compactor.log.encoding import encode_commit
from compactor.log.entries import Commit
from compactor.log.log_reader import one_log
from compactor.model import SourceObject, StoredPart
from compactor.ports import Deletion, Refused
from tests.support.examples import PARTITION
from tests.support.world import World

DAY = 86_400
LINE = '{{"id": "{}"}}'
RECORDS = "_compactor/compacted/partitions/"


def old_world(names: str = "ab", **given: Any) -> World:
    """Return a world that was compacted eight days ago, with a week of retention."""
    world = World(**{"delete_after": "7d", **given})
    world.store.add_bucket("source")
    for name in names:
        world.add(f"{name}.json", LINE)
    world.run()
    world.clock.advance(8 * DAY)
    return world


def compact_more(world: World, *names: str, template: str = LINE) -> None:
    """Add another commit, eight days old as well."""
    world.clock.advance(-8 * DAY)
    for name in names:
        world.add(name, template)
    world.run()
    world.clock.advance(8 * DAY)


def left(world: World) -> list[str]:
    """Return the names of the sources that are left."""
    return [key.rpartition("/")[2] for key in world.store.contents("source")]


def records(world: World) -> dict[int, dict[str, Any]]:
    """Return the records that clean-up wrote, by sequence number."""
    found = {
        int(key.rpartition("/")[2].removesuffix(".json")): json.loads(body)
        for key, body in world.store.contents("lake", RECORDS).items()
        if "/cleaned/" in key
    }
    for record in found.values():
        del record["commit_id"]
    return found


def commits(world: World) -> list[Commit]:
    """Return the valid entries, newest first."""
    log = one_log(world.settings.state, PARTITION.path, world.store)
    return list(log.newest_first(world.store))


def rewrite(world: World, commit: Commit, **changed: Any) -> None:
    """Change an entry of the log, which the product never does."""
    log = one_log(world.settings.state, PARTITION.path, world.store)
    entry = encode_commit(replace(commit, **changed))
    written = log.entries[commit.sequence]
    world.store.seed("lake", log.key_of(commit.sequence), entry, last_modified=written)


def output_key(world: World) -> str:
    """Return the key of the only output."""
    (key,) = world.store.contents("lake", "compacted/")
    return key


def forget_checksums(world: World) -> None:
    """Remove all CRC32s from the store, as if it returned none; all else stays."""
    bucket = world.store._buckets["lake"]
    for key, one in bucket.objects.items():
        bucket.objects[key] = replace(one, crc32=None)


def other_parts(commit: Commit) -> tuple[StoredPart, ...]:
    """Return parts that prove nothing: other ETags, and no checksums."""
    assert commit.output is not None
    return tuple(replace(part, etag="0" * 32, crc32=None) for part in commit.output.parts)


def one_key(sequence: int) -> str:
    """Return the key of an entry of the log."""
    return f"_compactor/compacted/partitions/{PARTITION.path}commits/{sequence:020d}.json.gz"


def other_bytes(world: World, key: str) -> None:
    """Overwrite an object with other bytes of the same length."""
    body = world.store.contents("lake")[key]
    world.store.seed("lake", key, b"x" * len(body))


def other_bytes_without_checksum(world: World, key: str) -> None:
    other_bytes(world, key)
    forget_checksums(world)


def longer_without_checksum(world: World, key: str) -> None:
    world.store.seed("lake", key, world.store.contents("lake")[key] + b"x")
    forget_checksums(world)


def truncated(world: World, key: str) -> None:
    world.store.seed("lake", key, world.store.contents("lake")[key][:-1])


def gone(world: World, key: str) -> None:
    world.store.remove("lake", key)


def refusing(world: World, **reasons: Any) -> None:
    """Make the store refuse to delete sources, by name, with a reason; True is final."""
    real = world.store.delete_sources

    def delete(sources: Sequence[SourceObject]) -> Deletion:
        names = {source.key.rpartition("/")[2].partition(".")[0]: source for source in sources}
        refused = {names[name].key: why for name, why in reasons.items() if name in names}
        deletion = real([source for source in sources if source.key not in refused])
        told = [Refused(key, str(why), why is True) for key, why in refused.items()]
        return Deletion((*deletion.refused, *told), deletion.markers)

    world.store.delete_sources = delete  # type: ignore[method-assign] # a refusing store
