"""Unexpected keys: compacted, remembered and given back exactly like any other."""

from __future__ import annotations

from typing import Any

import pytest

from compactor.clock import NoDeadline
from compactor.discovery.discover import discover
from compactor.errors import TransientStoreError
from compactor.log.encoding import decode_commit, encode_commit
from compactor.outputs.restore import Wanted, find, restore
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.s3.list_parser import ListedPage, page_of
from tests.hostile.names import NAMES, NAMES_A_COLUMN
from tests.hostile.seeds import ENTRY
from tests.support.examples import NOW, PARTITION, settings
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.s3_requests import store_on
from tests.support.scripted_s3 import Answer, scripted_s3
from tests.support.sources import Sources, given_back

LINE = b"2026-01-02T03:04:05Z record-%d\n"
LONGEST = "\u65e5" * ((1024 - len(PARTITION.prefix)) // 3)


# Hidden names are taken where a pattern spells them out.
HIDDEN: dict[str, Any] = {"include": ["*", ".*", "_*", "*/.*", "*/_*", "*/../../*"]}


def one_partition(*names: str) -> Sources:
    world = Sources([], **HIDDEN)
    for number, name in enumerate(names):
        world.put(name, LINE % number)
        world.records.add(number)
    return world


def test_every_key_that_s3_takes_is_compacted_and_given_back() -> None:
    names = (*NAMES, LONGEST, "y" * (1024 - len(PARTITION.prefix)))
    world = one_partition(*names)
    assert world.run().status == "done"
    world.must_be_finished()
    assert given_back(world, *world.commits()) == {
        PARTITION.prefix + name: LINE % number for number, name in enumerate(names)
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_key_alone_is_found_again_by_itself(name: str) -> None:
    world = one_partition(name, name + "2")
    world.run()
    commits = world.commits()
    key = PARTITION.prefix + name
    (found,) = find(commits, Wanted(frozenset({key})))
    assert [(r.source.key, b"".join(p)) for r, p in restore(found, world.store)] == [
        (key, LINE % 0)
    ]
    for commit in commits:
        assert decode_commit(encode_commit(commit)).rows[0].source.key in {key, key + "2"}


def test_a_key_with_a_level_that_names_a_column_is_left_alone_and_reported() -> None:
    world = one_partition(NAMES_A_COLUMN, "other")
    receipt = world.run()
    told = receipt.skipped["in_a_named_level_below_its_partition"]
    assert (told.objects, told.examples) == (1, (PARTITION.prefix + NAMES_A_COLUMN,))
    assert set(world.destination()) == {1}


def test_keys_decide_neither_name_nor_place_of_an_output() -> None:
    world = one_partition(*NAMES)
    world.run()
    for key in world.store.contents("lake"):
        if key.startswith("compacted/"):
            assert key.removeprefix("compacted/2026/01/02/compacted-").isascii()
            assert key.count("/") == 4
        else:
            assert key.startswith("_compactor/compacted/")


# Keys as names of partitions.


def test_a_partition_may_have_any_name_and_is_compacted_under_it() -> None:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    names = {name.partition("/")[0] for name in NAMES} | {"..", ".", ""}
    for number, name in enumerate(names):
        store.seed("source", f"logs/{name}/x", LINE % number, last_modified=NOW - 9e6)
    given = settings(depth=1, **HIDDEN)
    found = discover(given, store, NOW)
    left = {name for name in names if len(name.encode()) > 700}
    assert [item.path for item in found.partitions] == sorted(f"{name}/" for name in names - left)
    for item in found.partitions:
        clock = ManualClock(NOW)
        run = PartitionRun(item, given, store, clock, NoDeadline(), "run-1")
        assert compact_partition(run, Counts()).status == "done"
    outputs = store.contents("lake", "compacted/")
    assert sorted(key.rpartition("/")[0] for key in outputs) == sorted(
        f"compacted/{name}" for name in names - left
    )
    receipts = {given.layout.receipt("run-1", item) for item in found.partitions}
    assert len(receipts) == len(found.partitions)
    assert all(len(key.encode()) <= 1024 for key in store.contents("lake"))


def test_a_partition_whose_outputs_would_have_too_long_keys_is_left_alone_and_reported() -> None:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    long = "p" * 1_000
    store.seed("source", f"logs/{long}/x", b"a\n", last_modified=NOW - 9e6)
    store.seed("source", "logs/short/x", b"a\n", last_modified=NOW - 9e6)
    found = discover(settings(depth=1), store, NOW)
    assert [item.path for item in found.partitions] == ["short/"]
    skipped = found.skipped["above_the_partitions"]
    assert (skipped.objects, skipped.bytes) == (1, 2)
    assert skipped.examples == (f"logs/{long}/x",)


# Keys in listings.


def level(written: str) -> ListedPage:
    prefix = f"<CommonPrefixes><Prefix>{written}/</Prefix></CommonPrefixes>"
    return page_of(f"<ListBucketResult>{prefix}</ListBucketResult>".encode(), "bucket")


@pytest.mark.parametrize("reference", ["&copy;", "&nosuch;", "&#0;", "&#xD800;", "&#9999999;"])
def test_a_reference_that_xml_does_not_have_makes_a_page_no_listing(reference: str) -> None:
    with pytest.raises(ValueError, match=r"entity|character"):
        level(reference)


@pytest.mark.parametrize(
    ("written", "key"), [("&#128;", "\x80"), ("&#x9;", "\t"), ("&amp;copy;", "&copy;")]
)
def test_a_numeric_reference_is_the_character_of_that_number(written: str, key: str) -> None:
    assert level(written).prefixes == (f"{key}/",)


@pytest.mark.parametrize(
    "entry",
    [
        "<Contents><Key>a</Key></Contents>",
        "<Contents><Key><![CDATA[a]]></Key><Size>1</Size></Contents>",
        ENTRY.replace("2026-01-02T03:04:05.000Z", "now"),
        ENTRY.replace("<Size>7", "<Size>x"),
        "<Contents kind='x'><Key>a</Key></Contents>",
        "<Contents/>",
        "<Contents><Key>a</Key>",
    ],
)
def test_an_entry_that_cannot_be_read_is_never_passed_over(entry: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        page_of(f"<ListBucketResult>{entry}</ListBucketResult>".encode(), "bucket")


def test_a_listing_in_bytes_that_are_no_text_asks_for_another_try() -> None:
    with scripted_s3() as s3:
        s3.always(Answer(200, b"<ListBucketResult><Name>\xff</Name></ListBucketResult>"))
        with pytest.raises(TransientStoreError, match="s3://bucket/logs/"):
            list(store_on(s3.url).list_objects("bucket", "logs/"))
