"""The history of a table: one small document a look, bounded, also while it is summed up."""

from __future__ import annotations

import pytest

from compactor.errors import IntegrityError
from compactor.ports import RunTime
from compactor.settings.tables import parse_table
from compactor.settings.uris import parse_location
from compactor_tables import document_keys as places
from compactor_tables.maintenance_receipts import (
    DONE,
    FAILED,
    MaintenanceReceipt,
    RewrittenPartition,
)
from compactor_tables.measures import DataFile, PartitionMeasure, TableMeasure
from compactor_tables.observation_history import (
    FOLDED_AT,
    KEPT,
    MOST_SUMMED,
    fold_history,
    keep_look,
    read_history,
)
from compactor_tables.observations import History, Look, Maintained
from compactor_tables.observing import Watched, note_maintenance, watch
from compactor_tables.policies import read_policies
from tests.support.memory_store import Crashed, ManualClock, MemoryStore

STATE = parse_location("s3://state/maintenance/")
TABLE = parse_table("glue:bronze.events")
NOW, DAY, HOUR = 1_795_000_000.0, 86_400.0, 3_600.0
PREFIX = places.history_prefix(STATE, TABLE)[1]


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("state")
    return store


def names(store: MemoryStore) -> list[str]:
    return [key.removeprefix(PREFIX) for key in store.contents("state", PREFIX)]


def look(hours: float, maintained: Maintained | None = None) -> Look:
    return Look(
        at=NOW - hours * HOUR,
        run_id=f"r{hours:g}",
        files=3,
        latency=hours,
        samples=1,
        source="x",
        maintained=maintained,
    )


def filled(store: MemoryStore, count: int) -> list[Look]:
    """As many looks, one every six hours, the last an hour ago and more."""
    looks = [look(2 + 6 * n) for n in reversed(range(count))]
    for one in looks:
        keep_look(one, STATE, TABLE, store)
    return looks


def test_looks_are_read_back_in_order_of_time(store: MemoryStore) -> None:
    later, earlier = look(1), look(5, maintained=Maintained(engine="spark", status="done", files=2))
    for one in (later, earlier):
        keep_look(one, STATE, TABLE, store)
    assert read_history(STATE, TABLE, store) == History((earlier, later))
    assert names(store) == [
        "20261118T060640Z-r5+maintained.json",
        "20261118T100640Z-r1+measured.json",
    ]
    assert read_history(STATE, parse_table("glue:bronze.other"), store) == History()


def test_of_a_run_that_looked_twice_the_later_look_counts(store: MemoryStore) -> None:
    for hours in (5.0, 4.0):
        keep_look(Look(at=NOW - hours * HOUR, run_id="r", files=int(hours)), STATE, TABLE, store)
    assert [one.files for one in read_history(STATE, TABLE, store).looks] == [4]


def test_a_history_is_bounded_and_what_lies_back_is_summed_up_by_day(store: MemoryStore) -> None:
    looks = filled(store, FOLDED_AT + 1)
    gone = fold_history(STATE, TABLE, NOW, store)
    assert gone == FOLDED_AT + 1 - KEPT
    assert len(names(store)) == KEPT + 1
    found = read_history(STATE, TABLE, store)
    assert sum(one.looks for one in found.looks) == len(looks)
    assert found.looks[-KEPT:] == tuple(looks[-KEPT:])
    days = {one.day for one in looks[:-KEPT]}
    assert len(found.looks) == KEPT + len(days)
    # Again and again, over years: one sum, and so many single ones.
    assert fold_history(STATE, TABLE, NOW, store) == 0


def test_a_sum_takes_in_the_sum_before_it(store: MemoryStore) -> None:
    filled(store, FOLDED_AT + 1)
    fold_history(STATE, TABLE, NOW, store)
    for n in range(FOLDED_AT):
        at = NOW + 2 * HOUR + n
        keep_look(Look(at=at, run_id=f"later{n}", latency=1.0, source="x"), STATE, TABLE, store)
    fold_history(STATE, TABLE, NOW + DAY, store)
    assert [name for name in names(store) if "sum" in name] == [names(store)[0]]
    found = read_history(STATE, TABLE, store)
    assert sum(one.looks for one in found.looks) == 2 * FOLDED_AT + 1


def test_what_is_younger_than_an_hour_is_never_summed_up(store: MemoryStore) -> None:
    for n in range(FOLDED_AT + 5):
        keep_look(Look(at=NOW - n, run_id=f"r{n}"), STATE, TABLE, store)
    assert fold_history(STATE, TABLE, NOW, store) == 0
    assert len(names(store)) == FOLDED_AT + 5


def test_looks_of_one_second_are_summed_up_together(store: MemoryStore) -> None:
    for n in range(FOLDED_AT + 5):
        keep_look(Look(at=NOW - DAY, run_id=f"r{n:02}"), STATE, TABLE, store)
    fold_history(STATE, TABLE, NOW, store)
    assert sum(one.looks for one in read_history(STATE, TABLE, store).looks) == FOLDED_AT + 5


def test_the_oldest_of_a_very_long_history_go(store: MemoryStore) -> None:
    old = [Look(at=NOW - (MOST_SUMMED + 9 - n) * DAY, run_id="o") for n in range(MOST_SUMMED)]
    filled(store, FOLDED_AT + 1)
    from compactor_tables import observation_history as history

    body = history._encoded(TABLE, [o.__class__(at=o.at, looks=2) for o in old])
    stamp = history._stamp(NOW - 400 * HOUR)
    store.put("state", f"{PREFIX}{stamp}~sum.json", body)
    fold_history(STATE, TABLE, NOW, store)
    found = read_history(STATE, TABLE, store).looks
    assert len(found) == MOST_SUMMED + KEPT
    assert found[0].at > old[0].at


@pytest.mark.parametrize("deleted", range(4))
def test_a_fold_that_is_killed_anywhere_loses_and_doubles_nothing(
    store: MemoryStore, deleted: int
) -> None:
    looks = filled(store, FOLDED_AT + 1)
    left = deleted

    def kill(call: object) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Crashed

    store.hooks.before.append(lambda call: kill(call) if call.name == "delete_source" else None)
    with pytest.raises(Crashed):
        fold_history(STATE, TABLE, NOW, store)
    store.hooks.before.clear()
    assert sum(one.looks for one in read_history(STATE, TABLE, store).looks) == len(looks)
    fold_history(STATE, TABLE, NOW, store)
    assert len(names(store)) == KEPT + 1
    assert sum(one.looks for one in read_history(STATE, TABLE, store).looks) == len(looks)


def test_two_that_fold_concurrently_lose_and_double_nothing(store: MemoryStore) -> None:
    looks = filled(store, FOLDED_AT + 1)
    done: list[int] = []

    def meanwhile(call: object) -> None:
        if not done and getattr(call, "name", "") == "create":
            done.append(1)
            keep_look(Look(at=NOW - HOUR - 1, run_id="late"), STATE, TABLE, store)
            fold_history(STATE, TABLE, NOW, store)

    store.hooks.before.append(meanwhile)
    fold_history(STATE, TABLE, NOW, store)
    store.hooks.before.clear()
    assert done
    for _ in range(2):
        found = read_history(STATE, TABLE, store).looks
        assert sum(one.looks for one in found) == len(looks) + 1
        fold_history(STATE, TABLE, NOW, store)


def test_who_reads_during_a_fold_sees_all(store: MemoryStore) -> None:
    looks = filled(store, FOLDED_AT + 1)
    done: list[int] = []

    def meanwhile(call: object) -> None:
        if not done and getattr(call, "name", "") == "get":
            done.append(1)
            fold_history(STATE, TABLE, NOW, store)

    store.hooks.before.append(meanwhile)
    assert sum(one.looks for one in read_history(STATE, TABLE, store).looks) == len(looks)
    assert done


def test_a_look_of_a_later_version_is_refused(store: MemoryStore) -> None:
    store.put("state", f"{PREFIX}20261122T000000Z-r+measured.json", b'{"version": 2}')
    with pytest.raises(IntegrityError, match="version 2"):
        read_history(STATE, TABLE, store)


def measured(files: int) -> TableMeasure:
    commits = (NOW - 8 * DAY, NOW - HOUR, NOW - HOUR / 2)
    found = PartitionMeasure("", tuple(DataFile(100) for _ in range(files)))
    return TableMeasure("glue:bronze.events", "1", 1 << 27, (found,), 1, 2, 3, commits)


def test_a_table_is_watched_from_its_first_look_to_the_next_time_it_is_due(
    store: MemoryStore,
) -> None:
    watched = Watched(STATE, TABLE, store)
    (rule,) = read_policies([{"match": ["*"]}]).rules
    assert "never compacted" in watch(watched, measured(50), rule, NOW, run_id="a").reason
    receipt = MaintenanceReceipt(table=TABLE.text, run_id="a", engine="spark", status="done")
    receipt.partitions += [
        RewrittenPartition(name="x", status=DONE, files=49, bytes=4_900, into=1, into_bytes=4_000),
        RewrittenPartition(name="y", status=FAILED, files=7),
    ]
    note_maintenance(watched, receipt, NOW + 60)
    assert not watch(watched, measured(2), rule, NOW + HOUR, run_id="b")
    assert not watch(watched, measured(2), rule, NOW + 2 * HOUR, run_id="c", nothing_to_do=True)
    assert "over the best" in watch(watched, measured(90), rule, NOW + DAY, run_id="d").reason
    told = watched.history().looks
    assert [(one.run_id, bool(one.due), one.is_compaction) for one in told] == [
        ("a", True, False),
        ("a", False, True),
        ("b", False, False),
        ("c", False, False),
        ("d", True, False),
    ]
    work = told[1].maintained
    assert work is not None
    assert (work.files, work.into, work.partitions) == (49, 1, 1)
    assert (told[0].files, told[0].delete_files, told[0].metadata_files) == (50, 1, 2)


def test_the_run_times_of_the_job_that_a_rule_names_are_what_is_noted(store: MemoryStore) -> None:
    (rule,) = read_policies([{"match": ["*"], "latency": "glue_job:nightly"}]).rules
    asked = []

    class Times:
        def since(self, start: float, end: float) -> list[RunTime]:
            return [RunTime(NOW - 5, 30.0), RunTime(NOW - 9, 50.0)]

    def opened(source: object, table: object) -> Times:
        asked.append((source, table))
        return Times()

    watched = Watched(STATE, TABLE, store)
    watch(watched, measured(3), rule, NOW, run_id="a", times=opened)
    (told,) = watched.history().looks
    assert (told.latency, told.samples, told.source) == (40.0, 2, "glue_job:nightly")
    assert asked[0][1] == TABLE
