"""Which partitions have something to clean up, found without listing a source."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.cleaning.clean_partition import record_clean_up
from compactor.cleaning.clean_up_list import DueWork, find_due, read_due, stream_due, write_due
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.cleaning.orphans import find_orphans
from compactor.destination import Destination
from compactor.errors import InvalidInput
from compactor.log.log import CommitLog
from compactor.log.log_reader import all_logs, each_log, one_log
from tests.support.cleaning import DAY, LINE, compact_more, old_world, records
from tests.support.examples import NOW, PARTITION
from tests.support.examples import settings as settings_of
from tests.support.memory_store import Crashed, ManualClock, MemoryStore
from tests.support.world import LOG_LINE, World

STATE = "_compactor/compacted/partitions/"


def state_of(*names: str, age_days: float = 8) -> MemoryStore:
    """A state with these objects below partitions/, so old; ``@`` stands for a number.

    Each entry has its checkpoint.
    """
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    for name in names:
        key = STATE + name.replace("@", "0" * 19)
        store.seed("lake", key, b"", last_modified=NOW - age_days * DAY)
        if "/commits/" in f"/{name}":
            checkpoint = key.removesuffix(".json.gz") + ".checkpoint.json.gz"
            store.seed("lake", checkpoint, b"", last_modified=NOW - age_days * DAY)
    return store


def due_in(store: MemoryStore, **given: Any) -> dict[str, int]:
    settings = settings_of(**{"delete_after": "7d", **given})
    return dict(find_due(settings, store, NOW))


def test_every_partition_with_an_old_entry_that_has_no_record_is_due() -> None:
    store = state_of(
        "commits/@1.json.gz",
        "a/commits/@1.json.gz",
        "a/commits/@2.json.gz",
        "a/cleaned/@1.json",
        "b/commits/@1.json.gz",
        "b/cleaned/@1.json",
    )
    store.seed("lake", f"{STATE}a/commits/{3:020}.json.gz", b"", last_modified=NOW - 6 * DAY)
    store.seed("lake", f"{STATE}c/commits/{1:020}.json.gz", b"", last_modified=NOW - 6 * DAY)
    assert due_in(store) == {"": 1, "a/": 1}
    assert store.count("list_objects") == 1


SEGMENTS = st.sampled_from(["a", "b", "ab", "commits", "cleaned", "d", "zz", "é", ""])
PATHS = st.lists(SEGMENTS, max_size=3).map(lambda found: "".join(f"{one}/" for one in found))
NAMES = st.sampled_from(
    [
        "commits/@1.json.gz",
        "commits/@2.json.gz",
        "commits/@2.checkpoint.json.gz",
        "cleaned/@1.json",
    ]
)


@given(st.sets(st.tuples(PATHS, NAMES), max_size=30))
def test_logs_are_the_same_one_by_one_as_all_together(keys: set[tuple[str, str]]) -> None:
    store = state_of(*(path + name for path, name in keys))
    state = settings_of().state
    one_by_one = sorted(each_log(state, store), key=lambda log: log.path)
    assert one_by_one == all_logs(state, store)


def test_each_log_is_given_before_the_next_page_is_listed() -> None:
    store = state_of(*(f"{n:03}/commits/@1.json.gz" for n in range(100)))
    store.page_size = 10
    for number, log in enumerate(each_log(settings_of().state, store), 1):
        assert log.path == f"{number - 1:03}/"
        # Two objects each.
        assert store.snapshot()["LIST"] <= 1 + number // 5


def test_a_list_of_what_is_due_is_read_one_by_one_as_it_was_written() -> None:
    store, settings = state_of(), settings_of()
    works = [DueWork(path, n) for n, path in enumerate(["", "a/", 'x"],[{/', "line\n/", "é/"], 1)]
    for some in ([], works[:1], works):
        written = write_due(iter(some), settings, "run-1", store)
        assert written.partitions == len(some)
        assert list(stream_due(store, written.bucket, written.key)) == some
        assert list(read_due(store.get(written.bucket, written.key))) == some
        # Laid out as by others.
        rewritten = json.dumps([work.to_dict() for work in some], indent=None).encode()
        store.put(written.bucket, written.key, rewritten)
        assert list(stream_due(store, written.bucket, written.key)) == some


@pytest.mark.parametrize(
    ("name", "due"),
    [
        ("x/cleaned/commits/@1.json.gz", {"x/cleaned/": 1}),
        ("x/commits/commits/@1.json.gz", {"x/commits/": 1}),
        ("x/commits/@1.checkpoint.json.gz", {}),
        ("x/dead-letters/@1.json", {}),
        ("x/dead-letters/commits/@1.json.gz", {"x/dead-letters/": 1}),
        ("xcommits/@1.json.gz", {}),
        ("x/commits/@1.json", {}),
        ("x/cleaned/@1.json.gz", {}),
        ("x\n/commits/@1.json.gz", {"x\n/": 1}),
    ],
)
def test_a_partition_may_be_called_like_a_part_of_the_state(name: str, due: dict[str, int]) -> None:
    assert due_in(state_of(name)) == due


def test_a_record_of_one_partition_is_not_that_of_another() -> None:
    store = state_of(
        "x/commits/@1.json.gz", "x/cleaned/commits/@1.json.gz", "x/cleaned/cleaned/@1.json"
    )
    assert due_in(store) == {"x/": 1}
    log = one_log(settings_of().state, "x/cleaned/", store)
    assert (list(log.entries), log.cleaned) == ([1], {1})
    assert one_log(settings_of().state, "x/", store).cleaned == set()


def test_the_log_of_a_partition_does_not_take_a_neighbours_entries() -> None:
    world = World()
    world.add("a.json", LINE)
    world.run()
    log = CommitLog(world.store, world.settings, PARTITION)
    before = log.load()
    nested = f"{STATE}{PARTITION.path}cleaned/cleaned/{1:020}.json"
    world.store.seed("lake", nested, b"{}")
    assert log.load() == before
    (found,) = all_logs(world.settings.state, world.store)[:1]
    assert found.cleaned == set()


def test_nothing_is_due_where_sources_are_kept_or_there_is_no_state() -> None:
    assert due_in(state_of("a/commits/@1.json.gz"), delete_after=None) == {}
    assert due_in(state_of()) == {}


def test_a_state_that_cannot_be_listed_is_the_callers_mistake() -> None:
    store = state_of()
    store.denied.add("lake")
    with pytest.raises(InvalidInput, match="s3_state_uri"):
        due_in(store)


def test_entries_that_say_nothing_of_sources_do_not_stay_due_for_ever() -> None:
    world = old_world()
    compact_more(world, "b.log", template=LOG_LINE)
    assert find_due(world.settings, world.store, world.clock.now()) == ((PARTITION.path, 2),)
    world.clean_up()
    assert list(records(world)) == [1, 2]
    assert find_due(world.settings, world.store, world.clock.now()) == ()


def test_the_list_is_an_array_for_the_map() -> None:
    settings = settings_of()
    store = state_of()
    works = (DueWork("", 1), DueWork('a"b/\u00e9/', 20))
    written = write_due(works, settings, "run-1", store)
    assert written == ("lake", "_compactor/compacted/runs/run-1/clean-up.json", 2)
    body = store.contents("lake")[written.key]
    assert json.loads(body) == [{"path": one.path, "entries": one.entries} for one in works]
    assert read_due(body) == works
    nothing = write_due((), settings, "run-2", store)
    assert json.loads(store.contents("lake")[nothing.key]) == []


@pytest.mark.parametrize(
    "given", [None, {}, {"path": "a/"}, {"path": 1, "entries": 1}, {"path": "", "entries": True}]
)
def test_what_is_no_element_of_the_list_is_refused(given: object) -> None:
    with pytest.raises(InvalidInput, match="partition"):
        DueWork.from_dict(given)


# Uploads that no commit names.


def output(number: int, prefix: str = "compacted/2026/01/02/compacted-") -> str:
    return f"{prefix}{number:032x}.json"


def test_old_uploads_that_no_commit_names_are_aborted_and_no_others() -> None:
    world = old_world()
    world.clock.advance(-8 * DAY)
    world.add("c.json", LINE)
    hook = world.store.hooks
    hook.crash("before", "complete_upload")
    with pytest.raises(Crashed):
        world.run()
    hook.clear()
    (named,) = world.store.unfinished_uploads("lake")
    others = [
        "compacted/2026/01/02/other-" + "0" * 32 + ".json",
        "compacted/2026/01/02/compacted-mine.json",
        "compacted/2026/01/02/compacted-x/compacted-" + "0" * 32 + ".json",
        "compacted/2026/01/03/compacted-" + "0" * 32 + ".json",
        "elsewhere/compacted-" + "0" * 32 + ".json",
    ]
    for key in [output(1), output(2), *others]:
        world.store.create_upload("lake", key)
    world.clock.advance(8 * DAY)
    world.store.create_upload("lake", output(3))
    receipt = world.clean_up()
    assert receipt.counts.uploads_aborted == 2
    kept = world.store.unfinished_uploads("lake")
    assert named in kept
    assert output(3) in kept.values()
    assert set(others) <= set(kept.values())
    assert len(kept) == len(others) + 2


@pytest.mark.parametrize(("days", "aborted"), [(3, 1), (2.99, 0)])
def test_an_upload_is_an_orphan_after_three_days(days: float, aborted: int) -> None:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    store.create_upload("lake", output(1))
    place = Destination("lake", "compacted/2026/01/02/")
    assert len(list(find_orphans(store, place, (), NOW + days * DAY))) == aborted


def test_a_clock_that_jumped_ahead_aborts_nothing() -> None:
    world = old_world()
    world.store.create_upload("lake", output(1))
    jumped = ManualClock(world.clock.now() + 400 * DAY)
    world.settings = settings_of(delete_after="7d")
    run = world.clean_up_run(clock=jumped)
    receipt = record_clean_up(run, CleanUpReceipt(run.path, run.run_id))
    assert receipt.counts.uploads_aborted == 0


def test_uploads_that_may_not_be_listed_are_a_warning() -> None:
    world = old_world()

    def deny(call: Any) -> None:
        if call.name == "list_uploads":
            raise InvalidInput("permission", "list uploads", "a role that allows this request")

    world.store.hooks.before.append(deny)
    receipt = world.clean_up()
    assert (receipt.status, receipt.counts.deleted) == ("done", 2)
    (line,) = receipt.warnings
    assert line.startswith("uploads that no commit names stay: permission")
