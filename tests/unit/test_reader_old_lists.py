"""Old lists of the readers' table go once no query can need them, and not before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compactor.errors import InvalidInput
from compactor.readers.expired_lists import OldLists, drop_old_lists
from compactor.readers.manifests import manifests_below
from compactor.readers.reader_catalog import CatalogEntry
from tests.support.examples import PARTITION
from tests.support.readers_world import Lake

GRACE = 3_600.0
SWITCHES = "_compactor/compacted/readers/switches/"


def lists_of(lake: Lake) -> set[str]:
    bucket, prefix = manifests_below(lake.world.settings, PARTITION)
    return set(lake.store.contents(bucket, prefix))


def expire(lake: Lake, *, deletes: bool = True) -> OldLists:
    settings = lake.world.settings
    return drop_old_lists(
        PARTITION, settings, lake.catalog, lake.store, lake.clock, deletes=deletes
    )


def listed(times: int = 2) -> Lake:
    """A partition that has shown so many lists, each of late sources."""
    lake = Lake()
    lake.add("a.json")
    lake.run()
    lake.refresh()
    for number in range(times):
        lake.clock.advance(60)
        lake.add(f"late-{number}.json")
        assert lake.refresh().shows == "listed"
    return lake


def test_a_list_goes_once_another_is_shown_for_the_grace_and_the_shown_one_stays() -> None:
    lake = listed(times=3)
    assert len(lists_of(lake)) == 3
    assert expire(lake) == OldLists(PARTITION.path, 0, 2)
    lake.clock.advance(GRACE - 1)
    assert expire(lake) == OldLists(PARTITION.path, 0, 2)
    lake.clock.advance(1)
    assert expire(lake, deletes=False) == OldLists(PARTITION.path, 2, 0)
    assert len(lists_of(lake)) == 3
    assert expire(lake) == OldLists(PARTITION.path, 2, 0)
    assert len(lists_of(lake)) == 1
    assert lake.each_once()
    # Of the switches to an output, and to the list that is shown.
    assert len(lake.store.contents("lake", SWITCHES)) == 2
    assert expire(lake) == OldLists(PARTITION.path)


def test_all_lists_go_where_outputs_are_shown_again() -> None:
    lake = listed()
    lake.run()
    assert lake.refresh().shows == "compacted"
    lake.clock.advance(GRACE)
    assert expire(lake).lists == 2
    assert lists_of(lake) == set()
    assert lake.each_once()
    assert lake.refresh().fault == ""


def test_a_list_that_is_about_to_be_shown_stays() -> None:
    lake = listed()
    lake.clock.advance(GRACE)
    lake.add("later.json")
    found: list[OldLists] = []
    lake.catalog.before_change = lambda: found.append(expire(lake))
    assert lake.refresh().fault == ""
    assert [(one.lists, one.kept) for one in found] == [(1, 1)]
    assert lake.each_once()


def test_nothing_goes_where_it_is_not_known_since_when_something_else_is_shown() -> None:
    lake = listed()
    for key in list(lake.store.contents("lake", SWITCHES)):
        lake.store.remove("lake", key)
    lake.clock.advance(10 * GRACE)
    assert expire(lake) == OldLists(PARTITION.path, 0, 1)
    assert lake.store.contents("lake", SWITCHES) == {}, "the next refresh records it"
    lake.refresh()
    lake.clock.advance(GRACE)
    assert expire(lake) == OldLists(PARTITION.path, 1, 0)


def test_a_partition_that_was_changed_or_dropped_keeps_its_lists() -> None:
    lake = listed()
    lake.clock.advance(GRACE)
    ((values, entry),) = lake.catalog.partitions.items()
    other: CatalogEntry = replace(entry, location="s3://elsewhere/")
    lake.catalog.partitions[values] = other
    assert "the catalog has s3://elsewhere/, which no refresh left" in expire(lake).fault
    del lake.catalog.partitions[values]
    assert "the catalog has no such partition" in expire(lake).fault
    assert len(lists_of(lake)) == 2


def test_a_list_that_is_damaged_is_reported_and_nothing_goes() -> None:
    lake = listed()
    lake.clock.advance(GRACE)
    (shown,) = [one.location for one in lake.catalog.partitions.values()]
    bucket, _, prefix = shown.removeprefix("s3://").partition("/")
    lake.store.put(bucket, f"{prefix}manifest", b"no uri\n")
    assert "is damaged" in expire(lake).fault
    assert len(lists_of(lake)) == 2


def test_a_catalog_that_may_not_be_asked_lets_nothing_go(monkeypatch: pytest.MonkeyPatch) -> None:
    lake = listed()
    lake.clock.advance(GRACE)

    def refuse(_: object) -> None:
        raise InvalidInput("permission", "glue:BatchGetPartition", "a role that may")

    monkeypatch.setattr(lake.catalog, "entries", refuse)
    with pytest.raises(InvalidInput, match="permission"):
        expire(lake)
    assert len(lists_of(lake)) == 2
