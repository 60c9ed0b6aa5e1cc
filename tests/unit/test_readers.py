"""Readers by a catalog see each record once, whatever runs, clean-ups and refreshes do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from compactor.cleaning.clean_partition import decide
from compactor.clock import NoDeadline
from compactor.errors import InvalidInput, TransientStoreError
from compactor.model import Partition
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.receipts import read as read_receipt
from compactor.partition.run import compact_partition
from compactor.readers.clean_up_gate import ReaderGate, ask
from compactor.readers.outcome import Outcome
from compactor.readers.reader_catalog import CatalogEntry
from compactor.readers.refresh import LIMIT_SECONDS, Refreshing, refresh
from compactor_cli.commands import clean_up
from tests.support.examples import NOW, PARTITION
from tests.support.memory_readers import planned, read, shown
from tests.support.memory_store import Call, Crashed
from tests.support.readers_world import Lake

DAY = 86_400
HOUR = 3_600
LINE = '{{"id": "{}"}}'
VALUES = ("2026", "01", "02")
SWITCHES = "_compactor/compacted/readers/switches/"


def closed() -> Lake:
    """A day long over, of two sources in an output."""
    lake = Lake()
    lake.add("a.json", "b.json")
    lake.run()
    return lake


def test_a_day_that_is_over_shows_its_outputs_once_all_is_in_them() -> None:
    lake = closed()
    assert lake.refresh() == Outcome(PARTITION.path, "compacted", switched=True)
    assert lake.each_once()
    assert lake.refresh() == Outcome(PARTITION.path, "compacted")
    assert lake.catalog.changes == 1


def test_late_sources_are_listed_until_they_are_in_an_output() -> None:
    lake = closed()
    lake.refresh()
    lake.add("late.json")
    assert len(shown(lake.catalog, lake.store)) == 6, "invisible, and nothing doubled"
    outcome = lake.refresh()
    assert (outcome.shows, outcome.objects, outcome.invisible) == ("listed", 2, 1)
    assert lake.each_once()
    lake.run()
    assert lake.each_once(), "the source, until the next refresh"
    assert lake.refresh().shows == "compacted"
    assert lake.each_once()


def test_what_is_quarantined_stays_listed() -> None:
    lake = closed()
    lake.world.put("odd.json", b"record-900\x00\x01\x02")
    lake.world.records.add(900)
    lake.run()
    assert lake.refresh().objects == 2
    assert lake.each_once()


def test_an_open_day_shows_its_sources_and_nothing_of_it_is_deleted() -> None:
    lake = Lake(window="2027-01-15..", delete_after="0d")
    # Of the partition's own day, by the clock of the world.
    today = replace(PARTITION, prefix="logs/2027/01/15/", path="2027/01/15/")
    lake.store.seed("source", f"{today.prefix}a.json", b'{"id": "record-1"}\n', last_modified=NOW)
    work = Refreshing(lake.world.settings, lake.store, lake.clock, lake.catalog)
    (outcome,) = refresh([today.path], work)
    assert outcome.shows == "raw"
    lake.store.seed("source", f"{today.prefix}b.json", b'{"id": "record-2"}\n', last_modified=NOW)
    assert sorted(shown(lake.catalog, lake.store)) == [1, 2]


def test_nothing_of_a_day_without_an_entry_is_deleted() -> None:
    lake = closed()
    lake.refresh()
    lake.catalog.partitions.clear()
    lake.clock.advance(8 * DAY)
    assert lake.clean_up() == 0
    lake.refresh()
    assert lake.clean_up() == 0, "the grace has only begun"
    lake.clock.advance(HOUR + 1)
    assert lake.clean_up() == 2
    assert lake.each_once()


def test_clean_up_waits_for_the_grace_of_the_last_switch() -> None:
    lake = closed()
    lake.clock.advance(8 * DAY)
    lake.refresh()
    lake.clock.advance(HOUR - 1)
    assert lake.clean_up() == 0
    (line,) = lake.warnings
    assert "sources that are past retention wait: 3,600 seconds" in line
    lake.clock.advance(2)
    assert lake.clean_up() == 2
    assert lake.warnings == []
    assert lake.each_once()


def test_the_command_line_says_that_clean_up_waits_for_the_grace(capsys) -> None:
    lake = closed()
    lake.clock.advance(8 * DAY)
    lake.refresh()
    run = lake.world.clean_up_run(readers=ReaderGate(lambda _: lake.catalog))
    decision = decide(run)
    assert (decision.due, decision.waiting) == ([], 1)
    clean_up._show([decision], lake.world.settings, lake.store)
    out = capsys.readouterr().out
    assert "nothing to delete yet: 1 commit past retention may still have readers" in out
    assert "warning: sources that are past retention wait" in out


def test_clean_up_says_that_the_table_shows_the_sources_still() -> None:
    lake = closed()
    lake.refresh()
    lake.catalog.partitions.clear()
    lake.clock.advance(8 * DAY)
    assert lake.clean_up() == 0
    assert "shows them still: compactor table refresh switches it" in lake.warnings[0]


def test_a_source_that_a_list_names_is_not_deleted_though_it_is_compacted() -> None:
    lake = closed()
    lake.add("late.json")
    lake.refresh()
    lake.run()
    lake.clock.advance(30 * DAY)
    plan = planned(lake.catalog, lake.store)
    assert lake.clean_up() == 2, "those of the first output"
    assert set(read(plan, lake.store)) == lake.world.records
    assert lake.each_once()
    lake.refresh()
    lake.clock.advance(HOUR + 1)
    assert lake.clean_up() == 1
    assert lake.each_once()


def test_a_switch_that_was_not_recorded_counts_from_the_next_refresh() -> None:
    lake = closed()
    lake.clock.advance(8 * DAY)
    lake.store.hooks.crash("before", "create", prefix=SWITCHES)
    with pytest.raises(Crashed):
        lake.refresh()
    lake.store.hooks.clear()
    lake.clock.advance(2 * HOUR)
    assert lake.clean_up() == 0
    lake.refresh()
    assert lake.clean_up() == 0
    lake.clock.advance(HOUR + 1)
    assert lake.clean_up() == 2
    assert lake.each_once()


def requests_of(act: Callable[[Lake], object]) -> int:
    lake = late()
    seen: list[Call] = []
    lake.store.hooks.before.append(seen.append)
    act(lake)
    return len(seen)


def late() -> Lake:
    """A day with leftovers that shows its outputs alone, and a query that was just planned."""
    lake = closed()
    lake.refresh()
    lake.add("late.json")
    lake.clock.advance(8 * DAY)
    return lake


@pytest.mark.parametrize("number", range(1, requests_of(Lake.refresh) + 1))
def test_a_refresh_may_die_at_any_request(number: int) -> None:
    lake = late()
    plan = planned(lake.catalog, lake.store)
    die_at(lake, number)
    with pytest.raises(Crashed):
        lake.refresh()
    lake.store.hooks.clear()
    found = shown(lake.catalog, lake.store)
    assert max(found.values()) == 1
    assert set(read(plan, lake.store)) <= set(found)
    lake.refresh()
    assert lake.each_once()


@pytest.mark.parametrize("number", range(1, requests_of(Lake.refresh) + 1))
def test_a_run_and_a_clean_up_may_do_all_at_any_request_of_a_refresh(number: int) -> None:
    lake = late()
    plans = [planned(lake.catalog, lake.store)]
    seen: list[Call] = []

    def others(call: Call) -> None:
        seen.append(call)
        if len(seen) == number:
            lake.run()
            lake.clean_up()
            plans.append(planned(lake.catalog, lake.store))

    lake.store.hooks.before.append(others)
    lake.refresh()
    lake.store.hooks.clear()
    plans.append(planned(lake.catalog, lake.store))
    lake.clock.advance(HOUR - 2)
    lake.clean_up()
    for plan in plans:
        assert max(read(plan, lake.store).values()) == 1
    lake.refresh()
    assert lake.each_once()


def die_at(lake: Lake, number: int) -> None:
    seen: list[Call] = []

    def die(call: Call) -> None:
        seen.append(call)
        if len(seen) >= number:
            raise Crashed(f"at {call}")

    lake.store.hooks.before.append(die)


def test_of_two_refreshes_the_one_that_looked_earlier_does_not_switch_last() -> None:
    lake = late()
    first = [lake]

    def another_first(call: Call) -> None:
        if call.name == "create" and call.key.startswith("compactor-readers/") and first:
            first.clear()
            lake.add("later.json")
            assert lake.refresh().switched

    lake.store.hooks.before.append(another_first)
    outcome = lake.refresh()
    assert "another refresh was first" in outcome.fault
    assert not outcome.switched
    assert lake.each_once()


def test_a_switch_that_comes_after_a_later_one_still_shows_each_record_once() -> None:
    lake = late()

    def others() -> None:
        lake.catalog.before_change = lambda: None
        lake.run()
        lake.clean_up()
        lake.refresh()

    lake.catalog.before_change = others
    lake.refresh()
    lake.clock.advance(HOUR - 2)
    lake.clean_up()
    assert lake.each_once()
    lake.refresh()
    assert lake.each_once()


def test_a_refresh_that_slept_does_not_switch() -> None:
    lake = late()
    lake.store.hooks.before.append(
        lambda call: (
            lake.clock.advance(LIMIT_SECONDS + 1)
            if call.key.startswith("compactor-readers/")
            else None
        )
    )
    assert "300 s" in lake.refresh().fault
    assert lake.catalog.changes == 1
    lake.store.hooks.clear()
    assert lake.refresh().switched


def test_what_glue_refuses_of_one_partition_is_reported_and_the_next_refresh_tries_again() -> None:
    lake = late()
    lake.catalog.refuse[VALUES] = "ConcurrentModificationException: no"
    assert lake.refresh().fault == "ConcurrentModificationException: no"
    lake.catalog.refuse.clear()
    assert lake.refresh().switched
    assert lake.each_once()


def test_what_was_changed_by_hand_keeps_its_sources_and_is_put_right() -> None:
    lake = closed()
    lake.refresh()
    entry = lake.catalog.partitions[VALUES]
    lake.clock.advance(9 * DAY)
    for location in (f"s3://source/{PARTITION.prefix}", "s3://elsewhere/x/"):
        lake.catalog.partitions[VALUES] = replace(entry, location=location)
        assert lake.clean_up() == 0
    (line,) = lake.unsafe
    assert "s3://elsewhere/x/" in line
    assert "compactor table refresh" in line
    assert lake.refresh().switched
    assert lake.each_once()
    lake.clock.advance(HOUR + 1)
    assert lake.clean_up() == 2


@pytest.mark.parametrize(
    "location", ["s3a://lake/compacted/2026/01/02", "s3n://lake/compacted/2026/01/02/"]
)
def test_the_same_place_in_other_words_is_the_same(location: str) -> None:
    lake = closed()
    lake.refresh()
    entry = lake.catalog.partitions[VALUES]
    lake.catalog.partitions[VALUES] = replace(entry, location=location)
    assert lake.refresh() == Outcome(PARTITION.path, "compacted")


def test_what_else_lies_below_the_outputs_is_not_shown() -> None:
    lake = closed()
    lake.store.seed("lake", "compacted/2026/01/02/deeper/x.json", b"record-777")
    assert lake.refresh().shows == "listed"
    assert lake.each_once()


def test_a_list_that_is_gone_keeps_all_sources_and_is_made_again() -> None:
    lake = late()
    lake.refresh()
    lake.clock.advance(DAY)
    for key in list(lake.store.contents("lake", "compactor-readers/")):
        lake.store.remove("lake", key)
    assert lake.clean_up() == 0
    assert "is gone" in lake.unsafe[0]
    assert lake.refresh().switched
    assert lake.each_once()


def test_clean_up_without_the_settings_asks_the_table_that_the_state_knows() -> None:
    lake = late()
    lake.refresh()
    lake.run()
    lake.clock.advance(9 * DAY)
    told = lake.world.settings
    lake.world.settings = replace(told, reader_table=None, date_format=None, depth=1)
    assert lake.clean_up() == 2, "and not the source that the list names"
    lake.world.settings = told
    assert lake.each_once()


def test_a_destination_has_one_table() -> None:
    lake = late()
    others: list[dict[str, Any]] = [
        {"reader_table": "glue:lake.other"},
        {"date_format": "%Y/%m"},
        {"reader_mode": "compacted"},
    ]
    for other in others:
        settings, lake.world.settings = lake.world.settings, replace(lake.world.settings, **other)
        with pytest.raises(InvalidInput, match="by which this destination is read"):
            lake.refresh()
        lake.world.settings = settings


def test_a_table_that_passes_over_partitions_is_refused() -> None:
    lake = closed()
    lake.catalog.made = {
        "Parameters": {"projection.enabled": "TRUE"},
        "PartitionKeys": [{"Name": name} for name in ("year", "month", "day")],
        "StorageDescriptor": {"Columns": []},
    }
    assert "partition projection" in lake.refresh().fault
    lake.catalog.made |= {"Parameters": {}, "PartitionKeys": [{"Name": "dt"}]}
    assert "partitioned by year, month, day" in lake.refresh().fault
    assert not lake.catalog.partitions


WILDCARD = {"s3_source_uri": "s3://source/logs/*/", "date_format": None, "window": None}


_VPC = (
    "version account-id interface-id srcaddr dstaddr srcport dstport protocol packets bytes start"
    " end action log-status"
)
_VPC_ROW = "2 123456789012 eni-1 10.0.0.1 10.0.0.2 1 2 6 3 4 1700000000 1700000060 ACCEPT OK"
_SWAPPED = _VPC.replace("srcaddr dstaddr", "dstaddr srcaddr")
_TEXT = "2026-01-03T00:00:00Z started\n2026-01-03T00:00:01Z ended\n"


@pytest.mark.parametrize(
    ("first", "second", "is_shown"),
    [
        (f"{_VPC}\n{_VPC_ROW}\n", f"{_VPC} vpc-id\n{_VPC_ROW} vpc-1\n", True),
        (f"{_VPC}\n{_VPC_ROW}\n", f"{_SWAPPED}\n{_VPC_ROW}\n", False),
        ("id,name,amount\n1,ann,2\n", "id,name,amount,at\n1,ann,2,3\n", True),
        ("id,name,amount\n1,ann,2\n", "id,amount,name\n1,2,ann\n", False),
        ("id,name\n1,ann\n", 'id,name\n1,"ann, b"\n', False),
        ("id;name\n1;ann\n", "id,name\n1,ann\n", False),
        ('{"id":1}\n', _TEXT, False),
        (_TEXT, '{"id":1}\n', False),
        ('{"id":1}\n', '{"name":"ann"}\n', True),
        ('{"id":1}\n', "{}\n", True),
    ],
)
def test_a_partition_is_not_shown_where_its_values_would_stand_in_other_columns(
    first: str, second: str, is_shown: bool
) -> None:
    lake = Lake()
    name = "a.csv" if first.startswith("id") else "a"
    for day, body in (("02", first), ("03", second)):
        lake.store.seed("source", f"logs/2026/01/{day}/{name}", body.encode())
    work = Refreshing(lake.world.settings, lake.store, lake.clock, lake.catalog)
    one, two = refresh(["2026/01/02/", "2026/01/03/"], work)
    assert (one.switched, one.fault) == (True, "")
    assert two.switched is is_shown
    assert (f"reader_table: logs/2026/01/03/{name}" in two.fault) is not is_shown


@pytest.mark.parametrize("first", ["a", "y"])
def test_every_value_of_a_wildcard_is_shown_also_one_with_an_equals_sign(first: str) -> None:
    lake = Lake(**WILDCARD, reader_mode="exact")
    paths = [first, *sorted({"a", "y", "x=y", "z=y", "level1=y", "X=y"} - {first})]
    for number, path in enumerate(paths):
        body = f'{{"id": "record-{number}"}}\n'.encode()
        lake.store.seed("source", f"logs/{path}/1.json", body, last_modified=NOW)
    work = Refreshing(lake.world.settings, lake.store, lake.clock, lake.catalog)
    for _ in range(2):
        outcomes = refresh([f"{path}/" for path in paths], work)
        assert [one.fault for one in outcomes] == [""] * len(paths)
        assert shown(lake.catalog, lake.store) == Counter(range(len(paths)))
    assert set(lake.catalog.partitions) == {(path,) for path in paths}
    assert lake.catalog.changes == len(paths)
    for path in paths:
        partition = Partition("source", f"logs/{path}/", f"{path}/")
        asked = ask(lake.catalog, lake.world.settings, partition, lake.store, lake.clock)
        assert asked.shows is not None
        assert asked.shows.location.rstrip("/") == f"s3://source/logs/{path}"


def test_a_partition_that_its_table_has_no_column_for_fails_its_run() -> None:
    lake = Lake(**WILDCARD, reader_partitions=())
    made: dict[str, Any] = {"Parameters": {}, "StorageDescriptor": {"Columns": []}}
    lake.catalog.made = {**made, "PartitionKeys": [{"Name": "x"}]}
    lake.world.settings = replace(lake.world.settings, min_objects=1)
    partition = Partition("source", "logs/a/", "a/")
    lake.store.seed("source", "logs/a/1.json", b'{"id": "record-1"}\n', last_modified=NOW - DAY)
    run = PartitionRun(
        partition,
        lake.world.settings,
        lake.store,
        lake.clock,
        NoDeadline(),
        "run-1",
        readers=lambda _: lake.catalog,
    )
    with pytest.raises(InvalidInput, match=r"partitioned by level1, not by x, for a/"):
        compact_partition(run, Counts())
    receipt = read_receipt(lake.world.settings, "run-1", partition, lake.store)
    assert receipt is not None
    assert receipt.status == "failed"
    assert not lake.catalog.partitions


def test_outputs_alone_are_shown_where_that_is_wanted() -> None:
    lake = Lake(reader_mode="compacted")
    lake.add("a.json")
    assert lake.refresh().shows == ""
    lake.run()
    lake.add("late.json")
    assert lake.refresh().shows == "compacted"
    assert len(shown(lake.catalog, lake.store)) == 3


def test_an_output_that_is_not_readable_yet_leaves_its_sources_listed() -> None:
    lake = closed()
    lake.refresh()
    lake.add("late.json")
    lake.store.hooks.crash("before", "complete_upload")
    with pytest.raises(Crashed):
        lake.run()
    lake.store.hooks.clear()
    assert lake.refresh().shows == "listed"
    assert lake.each_once()
    lake.run()
    assert lake.each_once()
    assert lake.refresh().shows == "compacted"
    assert lake.each_once()


def test_archived_objects_are_counted_and_not_listed() -> None:
    lake = closed()
    lake.store.seed("source", f"{PARTITION.prefix}old.json", b"{}", storage_class="DEEP_ARCHIVE")
    outcome = lake.refresh()
    assert (outcome.shows, outcome.unread) == ("compacted", 1)


def test_a_table_is_made_of_what_is_there() -> None:
    lake = closed()
    lake.refresh()
    assert lake.catalog.made is not None
    descriptor = lake.catalog.made["StorageDescriptor"]
    assert descriptor["Columns"] == [{"Name": "id", "Type": "string"}]
    assert "JsonSerDe" in descriptor["SerdeInfo"]["SerializationLibrary"]
    assert [one["Name"] for one in lake.catalog.made["PartitionKeys"]] == ["year", "month", "day"]
    assert isinstance(lake.catalog.partitions[VALUES], CatalogEntry)


def test_a_run_shows_what_it_has_published_and_says_so() -> None:
    lake = Lake()
    lake.add("a.json")
    shown_now = lake.run(refreshes=True).shown
    assert shown_now == Outcome(PARTITION.path, "compacted", switched=True)
    lake.world.put("odd.json", b"record-900\x00\x01\x02")
    lake.world.records.add(900)
    lake.add("late.json")
    lake.run(refreshes=True)
    assert lake.each_once()


def test_a_catalog_that_does_not_answer_ends_no_run_and_the_next_one_shows_the_partition() -> None:
    lake = Lake()
    lake.add("a.json")

    def silent() -> None:
        raise TransientStoreError("no answer")

    lake.catalog.before_change = silent
    told = lake.run(refreshes=True).shown
    assert told is not None
    assert told.fault == "TransientStoreError: no answer"
    lake.catalog.before_change = lambda: None
    told = lake.run(refreshes=True).shown
    assert told is not None
    assert told.switched


def test_nothing_is_deleted_of_a_day_that_shows_its_sources_whatever_its_retention() -> None:
    lake = Lake(delete_after="0d")
    lake.clock.advance(1_767_355_200.0 - NOW)
    lake.world.settings = replace(lake.world.settings, delete_after="1d")
    key = f"{PARTITION.prefix}a.json"
    lake.store.seed("source", key, b'{"id": "record-1"}\n', last_modified=lake.clock.now())
    lake.world.records.add(1)
    lake.run(refreshes=True)
    lake.world.settings = replace(lake.world.settings, delete_after="0d")
    lake.clock.advance(2 * HOUR)
    assert lake.clean_up() == 0
    lake.refresh()
    lake.clock.advance(HOUR + 1)
    assert lake.clean_up() == 1
    assert lake.each_once()
