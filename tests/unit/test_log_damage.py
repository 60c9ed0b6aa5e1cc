"""A commit log that cannot be read is never taken for an empty one."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest

from compactor.errors import AlreadyExists, IntegrityError, TransientStoreError
from compactor.limits import WorkerLimits
from compactor.log.log import CommitLog
from tests.support.cleaning import LINE
from tests.support.examples import PARTITION
from tests.support.world import World


def json_of(document: object) -> bytes:
    return gzip.compress(msgspec.json.encode(document))


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda body: b"",
    "cut": lambda body: body[:-9],
    "a flipped bit": lambda body: body[:20] + bytes([body[20] ^ 1]) + body[21:],
    "no gzip": gzip.decompress,
    "no JSON": lambda body: gzip.compress(b"{", mtime=0),
    "no document": lambda body: json_of([1]),
    "a number": lambda body: json_of(1),
    "fields missing": lambda body: json_of({"version": 1}),
}


def finished_world(*, checkpoint: bool) -> tuple[World, CommitLog, str]:
    """A log of one entry, with or without its checkpoint; and the key that is read."""
    world = World()
    world.add("a.json", LINE)
    world.run()
    log = CommitLog(world.store, world.settings, PARTITION)
    entries = {
        key.endswith(".checkpoint.json.gz"): key
        for key in world.store.contents("lake", "_compactor/")
        if "/commits/" in key and key.endswith(".gz")
    }
    if not checkpoint:
        world.store.remove("lake", entries[True])
    return world, log, entries[checkpoint]


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_log_that_cannot_be_decoded_is_an_integrity_error_that_names_the_object(
    damage: Callable[[bytes], bytes], checkpoint: bool
) -> None:
    world, log, key = finished_world(checkpoint=checkpoint)
    world.store.seed("lake", key, damage(world.store.contents("lake")[key]))
    with pytest.raises(IntegrityError, match=f"s3://lake/{key} is damaged"):
        log.load()


def test_a_damaged_entry_is_found_when_the_log_is_read_on() -> None:
    world, log, _ = finished_world(checkpoint=True)
    state = log.load()
    world.add("b.json", LINE)
    world.run()
    (key,) = (key for key in world.store.contents("lake") if key.endswith(f"{2:020}.json.gz"))
    world.store.seed("lake", key, b"")
    with pytest.raises(IntegrityError, match=r"0+2\.json\.gz is damaged"):
        log.refresh(state)


def test_an_entry_that_says_another_number_is_damage() -> None:
    world, log, key = finished_world(checkpoint=False)
    body = world.store.contents("lake")[key]
    world.store.seed("lake", key.replace(f"{1:020}", f"{2:020}"), body)
    with pytest.raises(IntegrityError, match="it says that it is entry 1"):
        log.load()


def test_a_writer_that_loses_every_race_gives_up_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, _, _ = finished_world(checkpoint=True)
    few = replace(world.settings, limits=WorkerLimits(races=5))
    log = CommitLog(world.store, few, PARTITION)
    state = log.load()
    (commit,) = log.every_commit()
    draft = commit.voided("run-2")

    def taken(bucket: str, key: str, body: bytes, *, content_type: str = "") -> None:
        raise AlreadyExists(key)

    monkeypatch.setattr(world.store, "create", taken)
    state.unpublished[1] = commit
    logs = {"prefix": "_compactor/compacted/partitions/"}
    lists = world.store.count("list_objects", **logs)
    with pytest.raises(TransientStoreError, match="others were first 5 times"):
        log.append(state, draft)
    assert world.store.count("list_objects", **logs) - lists == 5
