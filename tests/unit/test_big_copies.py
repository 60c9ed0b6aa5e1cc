"""A source of many copied parts: several run concurrently, in any order, or none is left."""

from __future__ import annotations

import threading

import pytest

from compactor.errors import TransientStoreError
from compactor.limits import USUAL, WorkerLimits
from compactor.outputs.copies import copy_ranges
from compactor.outputs.verify import check_commit
from tests.support.memory_store import Call
from tests.support.records import lines_of_json
from tests.support.sources import Sources, of

PARTS = 12
_WAIT_SECONDS = 60.0


@pytest.fixture
def world() -> Sources:
    """One source that twelve parts copy."""
    body = lines_of_json(100)
    limits = WorkerLimits(copy_part_bytes=-(-len(body) // PARTS))
    store = {"min_part_bytes": 1}
    return Sources([of(".json", body)], store, small_object_bytes=1, limits=limits)


class Turns:
    """Holds every copy back until all are under way; then they end, the last one first."""

    def __init__(self, world: Sources) -> None:
        self._arrived = 0
        self._lock = threading.Lock()
        self._all = threading.Barrier(PARTS)
        self._ended = [threading.Event() for _ in range(PARTS + 1)]
        self._ended[PARTS].set()
        self._mine = threading.local()
        world.store.hooks.before.append(self.begin)
        world.store.hooks.after.append(self.end)

    def begin(self, call: Call) -> None:
        if call.name == "copy_part":
            with self._lock:
                self._mine.number = self._arrived
                self._arrived += 1
            self._all.wait(_WAIT_SECONDS)
            assert self._ended[self._mine.number + 1].wait(_WAIT_SECONDS)

    def end(self, call: Call) -> None:
        if call.name == "copy_part":
            self._ended[self._mine.number].set()


def test_many_parts_are_copied_concurrently_and_may_end_in_any_order(world: Sources) -> None:
    Turns(world)
    world.run()
    assert list(world.outputs.values()) == [one.stored for one in world.made.values()]
    (commit,) = world.commits()
    assert commit.output is not None
    assert [part.number for part in commit.output.parts] == list(range(1, PARTS + 1))
    world.store.hooks.clear()
    check_commit(commit, world.store)
    world.check_idle_again()


def test_an_error_of_one_copy_aborts_them_all_once_none_is_under_way(world: Sources) -> None:
    asked: list[str] = []
    copies = threading.Semaphore(0)

    def refuse(call: Call) -> None:
        asked.append(call.name)
        if call.name != "copy_part":
            return
        if asked.count("copy_part") == 1:
            # All the others are under way, or done.
            for _ in range(PARTS - 1):
                assert copies.acquire(timeout=_WAIT_SECONDS)
            raise TransientStoreError("no answer")
        copies.release()

    world.store.hooks.before.append(refuse)
    with pytest.raises(TransientStoreError):
        world.run()
    assert not world.store.unfinished_uploads("lake")
    assert asked.index("abort_upload") > max(
        at for at, name in enumerate(asked) if name == "copy_part"
    )
    world.store.hooks.clear()
    world.run()
    assert list(world.outputs.values()) == [one.stored for one in world.made.values()]


def test_a_source_that_changes_while_it_is_copied_is_planned_again(world: Sources) -> None:
    (key,) = world.made
    new = lines_of_json(100, seed=1)
    seen = threading.Semaphore(PARTS // 2)

    def overwrite(call: Call) -> None:
        if call.name == "copy_part" and not seen.acquire(blocking=False):
            world.store.seed("source", key, new, last_modified=world.clock.now() - 86_400)

    world.store.hooks.before.append(overwrite)
    assert world.run().counts.changed >= 1
    world.store.hooks.clear()
    assert list(world.outputs.values()) == [new]
    assert not world.store.unfinished_uploads("lake")


@pytest.mark.parametrize("size", [5 * 10**12, 50 * 10**12])
def test_the_largest_objects_take_no_more_and_no_larger_parts_than_s3_does(size: int) -> None:
    lengths = [length for _, length in copy_ranges(size, USUAL)]
    assert sum(lengths) == size
    assert len(lengths) <= 10_000
    assert max(lengths) <= 5 * 1024**3


def test_sixty_gigabytes_are_copied_in_parts_that_go_side_by_side() -> None:
    # S3 copies a part at the speed of one connection; twelve parts of 5 GiB took ten minutes.
    lengths = [length for _, length in copy_ranges(60 * 10**9, USUAL)]
    assert max(lengths) <= 512 * 1024**2


@pytest.mark.parametrize(
    "size", [1, USUAL.copy_part_bytes, USUAL.copy_part_bytes + 1, 3 * USUAL.copy_part_bytes - 1]
)
def test_copy_ranges_cover_everything_once(size: int) -> None:
    end = 0
    for start, length in copy_ranges(size, USUAL):
        assert start == end
        assert length <= USUAL.copy_part_bytes
        end += length
    assert end == size
