"""Whatever instant a worker dies at, or another one comes between: nothing lost or doubled."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from compactor.errors import IntegrityError, TransientStoreError
from compactor.limits import WorkerLimits
from tests.simulation.processes import without_threads
from tests.support.examples import PARTITION
from tests.support.memory_store import Call, Crashed, MemoryStore
from tests.support.world import LOG_LINE, World

DAY = 86_400


def world(**given: object) -> World:
    made = World(**given)
    made.add_variety()
    return made


def at_call(number: int, action: Callable[[], object]) -> Callable[[Call], None]:
    """A hook that acts once, at the given request."""
    seen = 0

    def hook(call: Call) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            action()

    return hook


@pytest.fixture(autouse=True)
def one_request_at_a_time() -> Iterator[None]:
    """So that the number of a request says which it is, and nobody adds while another one looks."""
    with without_threads():
        yield


@contextmanager
def death(made: World, number: int, moment: str = "before") -> Iterator[None]:
    """The process dies before or after this request; a dead process asks for nothing more."""
    dead = False
    seen = 0

    def die_when_due(call: Call) -> None:
        nonlocal dead, seen
        seen += 1
        if seen == number:
            dead = True
            raise Crashed(f"{moment} {call}")

    def stay_dead(call: Call) -> None:
        if dead:
            raise Crashed(f"already dead at {call}")

    before, hooks = made.store.hooks.before, getattr(made.store.hooks, moment)
    before.append(stay_dead)
    hooks.append(die_when_due)
    try:
        yield
    except Crashed:
        made.check()
    finally:
        before.remove(stay_dead)
        hooks.remove(die_when_due)


def calls_of_a_run() -> tuple[int, int]:
    """Requests of a run, and those that succeed: one looks for an object that is not there yet."""
    made = world()
    succeeded: list[Call] = []
    made.store.hooks.after.append(succeeded.append)
    with without_threads():
        made.run()
    return len(made.store.calls), len(succeeded)


CALLS, SUCCEEDED = calls_of_a_run()
DEATHS = [(number, "before") for number in range(1, CALLS + 1)]
DEATHS += [(number, "after") for number in range(1, SUCCEEDED + 1)]
PAGES = MemoryStore.__init__.__kwdefaults__ or {}


def test_a_run_that_nothing_disturbs_is_finished():
    made = world()
    made.store.hooks.after.append(made.check)
    receipt = made.run()
    assert receipt.counts.quarantined == 1
    assert receipt.counts.objects_in == 8
    made.must_be_finished()


@pytest.mark.parametrize(("number", "moment"), DEATHS)
def test_a_worker_that_dies_at_any_request_is_made_good_by_the_next(number, moment):
    made = world()
    finished = False
    with death(made, number, moment):
        made.run()
        finished = True
    assert not finished
    made.store.hooks.after.append(made.check)
    made.run()
    made.must_be_finished()


SMALL_WINDOWS = WorkerLimits(window_objects=2)


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(MemoryStore.__init__, "__kwdefaults__", {**PAGES, "page_size": 1})


@pytest.mark.usefixtures("small_pages")
def test_a_partition_larger_than_one_window_is_done_window_by_window():
    made = world(limits=SMALL_WINDOWS)
    made.store.hooks.after.append(made.check)
    receipt = made.run()
    assert receipt.counts.objects_in == 7, "the empty one is alone in its window"
    assert receipt.counts.objects_out > 4
    assert {reason: one.objects for reason, one in receipt.skipped.items()} == {"empty": 1}
    made.must_be_finished()


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("number", range(1, CALLS + 10))
def test_a_worker_may_die_in_any_window(number):
    made = world(limits=SMALL_WINDOWS)
    with death(made, number):
        made.run()
    made.store.hooks.after.append(made.check)
    made.run()
    made.must_be_finished()


@pytest.mark.parametrize("seed", range(60))
def test_workers_that_keep_dying_and_losing_uploads_finish_in_the_end(seed):
    chance = random.Random(seed)
    made = world()
    made.store.hooks.after.append(made.check)
    for _ in range(chance.randint(2, 8)):
        with death(made, chance.randint(1, CALLS), chance.choice(["before", "after"])):
            made.run()
        if chance.random() < 0.5:
            # What AbortIncompleteMultipartUpload of a lifecycle rule does.
            for upload_id, key in made.store.unfinished_uploads("lake").items():
                made.store.abort_upload("lake", key, upload_id)
    made.run()
    made.must_be_finished()
    assert not _committed_uploads(made)


def _committed_uploads(made: World) -> set[str]:
    outputs = set(made.store.contents("lake", "compacted/"))
    return {key for key in made.store.unfinished_uploads("lake").values() if key not in outputs}


@pytest.mark.parametrize("late", [(), ("aa.json", "z.log.gz")])
@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_a_second_worker_may_do_everything_at_any_request_of_the_first(number, late):
    made = world()
    made.store.hooks.after.append(made.check)

    def intrude() -> None:
        # With late arrivals the second worker's groups overlap the first one's.
        for name in late:
            made.add(name, LOG_LINE, packed=name.endswith(".gz"))
        made.run()

    made.store.hooks.before.append(at_call(number, intrude))
    made.run()
    made.must_be_finished()


@pytest.mark.parametrize("first", range(1, CALLS, 3))
@pytest.mark.parametrize("second", range(1, CALLS, 5))
def test_a_second_worker_that_dies_in_between_does_no_harm(first, second):
    made = world()
    made.store.hooks.after.append(made.check)

    def intrude() -> None:
        made.add("aa.json", LOG_LINE)
        made.add("z.log.gz", LOG_LINE, packed=True)
        with death(made, second):
            made.run()

    made.store.hooks.before.append(at_call(first, intrude))
    made.run()
    # What arrived after the first worker's listing is the next run's.
    made.run()
    made.must_be_finished()


@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_a_source_overwritten_at_any_request_is_compacted_as_it_was_before_or_after(number):
    made = world()

    def overwrite() -> None:
        made.put("a.json", b'{"id": "record-5000"}\n')

    made.store.hooks.before.append(at_call(number, overwrite))
    made.run()
    made.run()
    readable = made.destination()
    assert set(readable.values()) == {1}
    before, after = made.records, made.records - {0, 1, 2} | {5000}
    assert set(readable) in (before, after)


@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_a_lost_answer_to_any_request_is_made_good(number):
    made = world()
    made.store.hooks.after.append(made.check)

    def lose() -> None:
        raise TransientStoreError("the answer was lost")

    made.store.hooks.after.append(at_call(number, lose))
    try:
        made.run()
    except TransientStoreError:
        made.check()
    made.run()
    made.must_be_finished()


@pytest.mark.parametrize("number", range(1, CALLS + 1))
def test_an_upload_dropped_at_any_request_is_built_again_by_the_same_run(number):
    made = world()
    made.store.hooks.after.append(made.check)

    def drop() -> None:
        for upload_id, key in made.store.unfinished_uploads("lake").items():
            made.store.abort_upload("lake", key, upload_id)

    made.store.hooks.before.append(at_call(number, drop))
    assert made.run().status == "done"
    made.must_be_finished()


def test_clean_up_deletes_only_past_retention_and_may_die_half_way():
    made = world(delete_after="7d")
    made.run()
    assert made.clean_up().counts.deleted == 0
    made.clock.advance(8 * DAY)
    total = len(made.store.contents("source"))
    for number in range(1, 30):
        with death(made, number):
            made.clean_up()
    assert made.clean_up().unsafe == []
    made.check()
    left = made.store.contents("source")
    assert [key.rsplit("/", 1)[-1] for key in left] == ["g.log.gz"], "quarantined: never deleted"
    assert total > 1


def test_clean_up_keeps_the_sources_of_an_output_that_is_missing_or_different():
    made = world(delete_after="7d")
    made.run()
    made.clock.advance(8 * DAY)
    outputs = list(made.store.contents("lake", "compacted/"))
    made.store.remove("lake", outputs[0])
    made.store.seed("lake", outputs[1], b"something else")
    result = made.clean_up()
    assert len(result.unsafe) == 2
    kept = set(made.store.contents("source"))
    assert len(kept) > 1


def test_clean_up_spares_a_source_that_changed_after_its_commit():
    made = world(delete_after="7d")
    made.run()
    made.put("a.json", b'{"id": "record-7000"}\n')
    made.clock.advance(8 * DAY)
    result = made.clean_up()
    assert (result.counts.changed, result.counts.refused) == (1, 0)
    assert PARTITION.prefix + "a.json" in made.store.contents("source")


def test_a_commit_removed_by_hand_stops_the_run_before_it_touches_anything():
    made = world()
    made.run()
    log = made.store.contents("lake", "_compactor/")
    for key in log:
        if key.endswith(("checkpoint.json.gz", "00001.json.gz")):
            made.store.remove("lake", key)
    before = made.store.contents("lake", "compacted/")
    with pytest.raises(IntegrityError, match="changed by hand"):
        made.run()
    assert made.store.contents("lake", "compacted/") == before
