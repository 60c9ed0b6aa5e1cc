"""S3 Inventory instead of LIST: it is checked, taken in bounded memory, and read as a listing."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.clock import NoDeadline
from compactor.errors import IntegrityError, InvalidInput
from compactor.inventory import pages, taking
from compactor.inventory.inventory_listing import InventoryListing, open_listing
from compactor.inventory.pages import DirectoryShelf
from compactor.inventory.rows import Row
from compactor.inventory.taking import take_inventory
from compactor.model import SkipReason, SourceObject
from compactor.orchestration.discovery_step import Begun, begin
from compactor.orchestration.messages import Desk, Order
from compactor.runs.partition_receipts import Counts, Receipt
from compactor.runs.run_partition import PartitionRun, record_partition
from compactor.settings.settings import Settings
from compactor_cli.commands import main
from compactor_cli.commands import plan as plan_command
from tests.support.cleaning import LINE
from tests.support.document_tables import table_of
from tests.support.examples import NOW, PARTITION
from tests.support.examples import settings as settings_of
from tests.support.inventory import (
    ALL,
    BUCKET,
    PLACE,
    URI,
    VERSIONS,
    Inventory,
    inventory_of,
    row_of,
)
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.world import World

HOUR = 3_600.0
INVENTORY: dict[str, Any] = {"listing": f"inventory:{URI}"}


def sources_of(*names: str, root: str = "logs/") -> list[SourceObject]:
    return [
        SourceObject("source", root + name, f"etag-{number}", number + 1, NOW - 90_000 - number)
        for number, name in enumerate(names)
    ]


def taken(
    inventory: Inventory, tmp_path: Path, *, held_rows: int = 500_000, **given: Any
) -> InventoryListing:
    store = MemoryStore(ManualClock(NOW))
    inventory.deliver(store)
    settings = settings_of(**INVENTORY, **given)
    return take_inventory(settings, store, DirectoryShelf(tmp_path), held_rows=held_rows)


def listed(listing: InventoryListing, prefix: str = "logs/", after: str = "") -> list[SourceObject]:
    return list(chain.from_iterable(listing.list_objects("source", prefix, start_after=after)))


@pytest.mark.parametrize("columns", [ALL, VERSIONS])
def test_an_inventory_lists_what_list_would(tmp_path: Path, columns: Sequence[str]) -> None:
    names = ("a/1.log", "a b/ü+&%41.log", "a/2.log", "b/c/3.log", 'x"y,z', "z")
    sources = sources_of(*names)
    listing = taken(inventory_of(sources, NOW - HOUR, columns=columns), tmp_path)

    assert listed(listing) == sorted(sources, key=lambda one: one.key.encode())
    assert listing.as_of == NOW - HOUR
    assert listing.index.objects == len(names)


def test_only_what_lies_below_the_source_is_taken(tmp_path: Path) -> None:
    sources = sources_of("a", "b") + sources_of("logs/c", "d", root="") + sources_of("e", root="l")
    listing = taken(inventory_of(sources, NOW), tmp_path)

    assert [one.key for one in listed(listing, "")] == ["logs/a", "logs/b", "logs/c"]


def test_older_versions_and_deleted_objects_are_passed_over(tmp_path: Path) -> None:
    new, old, gone = sources_of("a", "a", "b")
    rows = [
        row_of(old, IsLatest="false", VersionId="1"),
        row_of(new, IsLatest="true", VersionId="2"),
        row_of(gone, IsLatest="false", VersionId="3"),
        row_of(gone, IsDeleteMarker="true", Size="", ETag="", VersionId="4"),
    ]
    listing = taken(Inventory(NOW, [rows], VERSIONS), tmp_path)

    assert listed(listing) == [new]


def test_an_object_that_two_files_have_is_listed_once_as_it_was_last(tmp_path: Path) -> None:
    new, old = sources_of("a", "a")
    listing = taken(Inventory(NOW, [[row_of(new)], [row_of(old)]]), tmp_path)

    assert listed(listing) == [new]


def test_an_object_without_a_storage_class_is_in_the_standard_one(tmp_path: Path) -> None:
    columns = ("Bucket", "Key", "Size", "LastModifiedDate", "ETag")
    listing = taken(inventory_of(sources_of("a"), NOW, columns=columns), tmp_path)

    assert [one.storage_class for one in listed(listing)] == ["STANDARD"]


LEVELS = st.lists(st.sampled_from(["a", "b", "a0", "a.", "", "é", "\U0010ffff", "0"]), min_size=1)
KEYS = st.sets(LEVELS.map("/".join), max_size=40)


@given(KEYS, KEYS, st.integers(1, 5), st.integers(1, 7))
def test_pages_give_every_prefix_and_level_as_a_store_does(
    tmp_path_factory: pytest.TempPathFactory,
    names: set[str],
    asked: set[str],
    page_rows: int,
    held_rows: int,
) -> None:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("source")
    sources = [store.seed("source", f"logs/{name}", name.encode()) for name in names]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(taking, "PAGE_ROWS", page_rows)
        patch.setattr(taking, "SORTED_ROWS", page_rows)
        directory = tmp_path_factory.mktemp("pages")
        listing = taken(inventory_of(sources, NOW), directory, held_rows=held_rows)

    for one in asked | {""}:
        prefix, cut = f"logs/{one}", f"logs/{one[:1]}"
        for below, after in ((prefix, ""), (cut, prefix), (prefix, cut)):
            there = chain.from_iterable(store.list_objects("source", below, start_after=after))
            assert [o.key for o in listed(listing, below, after)] == [o.key for o in there]
        assert level_of(listing, prefix) == level_of(store, prefix)


def level_of(lists: Any, prefix: str) -> tuple[list[str], list[str]]:
    found = list(lists.list_level("source", prefix))
    objects = sorted(one.key for page in found for one in page.objects)
    return objects, sorted(chain.from_iterable(page.prefixes for page in found))


def test_no_more_rows_than_the_limit_are_held_while_an_inventory_is_taken(tmp_path: Path) -> None:
    names = [f"{number % 7}/{number:04}" for number in range(500)]
    listing = taken(inventory_of(sources_of(*names), NOW, files=9), tmp_path, held_rows=100)

    assert len(list((tmp_path / "sorted" / listing.index.manifest_md5).iterdir())) == 4
    assert [one.key for one in listed(listing)] == sorted(f"logs/{name}" for name in names)


def test_what_a_run_has_taken_stays_its_listing(tmp_path: Path) -> None:
    store = MemoryStore(ManualClock(NOW))
    settings, shelf = settings_of(**INVENTORY), DirectoryShelf(tmp_path)
    inventory_of(sources_of("a"), NOW).deliver(store)
    take_inventory(settings, store, shelf)
    inventory_of(sources_of("b"), NOW + 1).deliver(store)
    store.calls.clear()

    assert [one.key for one in listed(take_inventory(settings, store, shelf))] == ["logs/a"]
    assert store.calls == []


def test_of_a_configuration_the_newest_inventory_that_was_delivered_is_taken(
    tmp_path: Path,
) -> None:
    store = MemoryStore(ManualClock(NOW))
    for day, name in enumerate("abc", 1):
        inventory_of(sources_of(name), NOW + day).deliver(store, f"2027-01-0{day}T01-00Z")
    # What is being delivered has no checksum yet; what else lies there are no inventories.
    store.remove(BUCKET, f"{PLACE}2027-01-03T01-00Z/manifest.checksum")
    store.seed(BUCKET, f"{PLACE}hive/dt=2027-01-09-01-00/symlink.txt", b"")
    given = {"listing": f"inventory:s3://{BUCKET}/{PLACE}"}
    listing = take_inventory(settings_of(**given), store, DirectoryShelf(tmp_path))

    assert [one.key for one in listed(listing)] == ["logs/b"]
    assert listing.index.manifest_uri == f"s3://{BUCKET}/{PLACE}2027-01-02T01-00Z/manifest.json"


def test_a_configuration_that_nothing_was_delivered_for_is_reported(tmp_path: Path) -> None:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket(BUCKET)
    given = {"listing": f"inventory:s3://{BUCKET}/{PLACE}"}
    with pytest.raises(InvalidInput, match="S3 has delivered an inventory"):
        take_inventory(settings_of(**given), store, DirectoryShelf(tmp_path))


@pytest.mark.parametrize(
    ("told", "columns", "says"),
    [
        ({"fileFormat": "Parquet"}, ALL, "an inventory in CSV; this one is in Parquet"),
        ({"sourceBucket": "other"}, ALL, "of the source's bucket source; this one is of other"),
        ({"files": None}, ALL, "the manifest.json of an S3 Inventory"),
        ({"creationTimestamp": "today"}, ALL, "the manifest.json of an S3 Inventory"),
        ({}, ("Bucket", "Key", "LastModifiedDate", "ETag"), "it has no Size"),
        ({}, ("Bucket", "Key", "Size", "ETag"), "it has no LastModifiedDate"),
        ({}, ("Bucket", "Key", "Size", "LastModifiedDate"), "it has no ETag"),
        ({}, (*ALL, "VersionId"), "IsLatest and"),
    ],
)
def test_an_inventory_that_cannot_be_used_is_refused_in_one_line(
    tmp_path: Path, told: dict[str, Any], columns: Sequence[str], says: str
) -> None:
    with pytest.raises(InvalidInput) as error:
        taken(inventory_of(sources_of("a"), NOW, told=told, columns=columns), tmp_path)

    assert error.value.field == "listing"
    assert says in str(error.value)


def test_a_manifest_that_is_not_there_is_reported() -> None:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket(BUCKET)
    with pytest.raises(InvalidInput, match=r"manifest\.checksum beside it"):
        take_inventory(settings_of(**INVENTORY), store, DirectoryShelf(Path("unused")))


def damage_manifest(store: MemoryStore) -> None:
    key = URI.removeprefix(f"s3://{BUCKET}/")
    store.seed(BUCKET, key, store.get(BUCKET, key) + b" ")


def files_of(store: MemoryStore) -> list[str]:
    return list(store.contents(BUCKET, f"{PLACE}data/"))


def swap_files(store: MemoryStore) -> None:
    first, second, *_ = files_of(store)
    store.seed(BUCKET, first, store.get(BUCKET, second))


def cut_file(store: MemoryStore) -> None:
    first = files_of(store)[0]
    store.seed(BUCKET, first, store.get(BUCKET, first)[:-9])


def drop_file(store: MemoryStore) -> None:
    store.remove(BUCKET, files_of(store)[0])


def lengthen_file(store: MemoryStore) -> None:
    first = files_of(store)[0]
    store.seed(BUCKET, first, store.get(BUCKET, first) + b"\0" * 10)


@pytest.mark.parametrize(
    "damage", [damage_manifest, swap_files, cut_file, drop_file, lengthen_file]
)
def test_an_inventory_that_is_not_what_its_checksums_say_is_not_taken(
    tmp_path: Path, damage: Any
) -> None:
    store = MemoryStore(ManualClock(NOW))
    inventory_of(sources_of("a", "b", "c", "d"), NOW).deliver(store)
    damage(store)
    shelf = DirectoryShelf(tmp_path)

    with pytest.raises(IntegrityError):
        take_inventory(settings_of(**INVENTORY), store, shelf)
    assert pages.read_index(shelf) is None


def test_a_page_that_is_gone_damaged_or_another_is_reported(tmp_path: Path) -> None:
    listing = taken(inventory_of(sources_of("a"), NOW), tmp_path)
    path = tmp_path / pages.page_name(listing.index.manifest_md5, 0)
    # Whatever was listed twice would be in an output twice.
    twice = [Row(f"logs/{name}", NOW, "", "etag", 1, "STANDARD") for name in "aa"]
    for body in (b"not a page", pages.encode_page(twice)):
        path.write_bytes(body)
        with pytest.raises(IntegrityError, match="damaged"):
            listed(listing)
    path.unlink()
    with pytest.raises(IntegrityError, match="gone"):
        listed(listing)


def test_concurrent_calls_that_take_different_inventories_spoil_no_listing(tmp_path: Path) -> None:
    store = MemoryStore(ManualClock(NOW))
    settings, shelf = settings_of(**INVENTORY), DirectoryShelf(tmp_path)
    inventory_of(sources_of("a", "b"), NOW).deliver(store)
    first = take_inventory(settings, store, shelf)
    # The other call has seen no index yet, and a newer inventory.
    (tmp_path / pages.INDEX_NAME).unlink()
    inventory_of(sources_of("b", "c", "d"), NOW + 1).deliver(store)
    second = take_inventory(settings, store, shelf)

    assert [one.key for one in listed(first)] == ["logs/a", "logs/b"]
    assert [one.key for one in listed(second)] == ["logs/b", "logs/c", "logs/d"]


class Listed(World):
    """A world whose runs take an inventory."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**INVENTORY, **given)
        self.store.add_bucket("source")
        self.store.add_bucket("lake")

    def deliver(self, created_at: float | None = None) -> None:
        sources = chain.from_iterable(self.store.list_objects("source", ""))
        at = self.clock.now() if created_at is None else created_at
        inventory_of(list(sources), at).deliver(self.store)

    def run(self) -> Receipt:
        self.runs += 1
        run_id = f"run-{self.runs}"
        begin(self.settings, run_id, self.store, self.clock.now())
        return record_partition(self.run_of(run_id), Counts())

    def run_of(self, run_id: str) -> PartitionRun:
        listing = open_listing(self.settings, run_id, self.store)
        assert listing is not None
        return PartitionRun(
            PARTITION,
            self.settings,
            self.store,
            self.clock,
            NoDeadline(),
            run_id,
            listing=listing,
        )

    def lists_of_the_source(self) -> int:
        """Those of what lies above it, whose table it may be, are none."""
        calls = (one for one in self.store.calls if one.bucket == "source")
        return sum(one.name.startswith("list") and one.key.startswith("logs/") for one in calls)


def test_a_run_with_an_inventory_asks_no_list_of_the_source() -> None:
    world = Listed(depth=3)
    world.add("a.json", LINE)
    world.add("b.json", LINE)
    world.deliver()
    world.store.calls.clear()

    receipt = world.run()

    assert (receipt.status, receipt.counts.objects_in) == ("done", 2)
    assert world.lists_of_the_source() == 0
    world.check()
    assert set(world.destination()) == world.records
    # Again: all of it is committed.
    assert world.run().counts.objects_in == 0
    assert world.lists_of_the_source() == 0


def test_a_worker_reads_the_listing_of_the_run() -> None:
    world = Listed(depth=3)
    world.add("a.json", LINE)
    world.add("b.json", LINE)
    world.deliver()
    begun = begin(world.settings, "run-1", world.store, world.clock.now())
    assert isinstance(begun, Begun)
    (item,) = begun.in_full().items
    world.add("newer.json", LINE)
    world.store.calls.clear()
    desk = Desk(world.settings, world.store, world.clock, "run-1")
    answer = desk.carry_out(Order.to_compact(item, Counts()), NoDeadline())

    assert answer.status == "done"
    assert answer.compacted is not None
    assert answer.compacted.counts.objects_in == 2
    assert world.lists_of_the_source() == 0


def test_what_is_newer_than_the_inventory_is_for_the_next_run() -> None:
    world = Listed(depth=3)
    world.add("a.json", LINE)
    world.deliver()
    world.add("b.json", LINE)
    assert world.run().counts.objects_in == 1
    world.check()

    world.deliver()
    assert world.run().counts.objects_in == 1
    assert set(world.destination()) == world.records


def test_ages_count_from_the_time_of_the_inventory() -> None:
    world = Listed(depth=3, settle_seconds=3_600, open_partition_seconds=0)
    world.add("a.json", LINE)
    # The sources of this world are a day old; ten days later they still were young to it.
    world.deliver(NOW - 86_400 + 3_599)
    world.clock.advance(10 * 86_400)
    receipt = world.run()

    assert receipt.counts.objects_in == 0
    assert receipt.skipped[SkipReason.TOO_YOUNG.value].objects == 1


def test_what_is_gone_or_overwritten_since_the_inventory_is_no_error() -> None:
    world = Listed(depth=3)
    for name in "abcd":
        world.add(f"{name}.json", LINE, 1)
    world.deliver()
    world.clock.advance(60)
    world.store.remove("source", f"{PARTITION.prefix}b.json")
    world.store.seed("source", f"{PARTITION.prefix}c.json", b'{"id": "record-2"} ')
    world.records.remove(1)
    receipt = world.run()

    assert (receipt.status, receipt.counts.objects_in, receipt.counts.changed) == ("done", 2, 1)
    gone = receipt.skipped[SkipReason.GONE.value]
    assert (gone.objects, [key[-6:] for key in gone.examples]) == (2, ["b.json", "c.json"])
    world.check()
    # Once another inventory has it, what was put over it is compacted, too.
    world.clock.advance(7_200)
    world.deliver()
    assert world.run().counts.objects_in == 1
    assert set(world.destination()) == world.records


def test_the_pages_lie_below_the_run_and_expire_with_it() -> None:
    world = Listed(depth=3)
    world.add("a.json", LINE)
    world.deliver()
    world.run()

    keys = world.store.contents("lake", "_compactor/compacted/runs/run-1/listing/")
    index, page = keys.values()
    md5 = json.loads(index)["manifest_md5"]
    assert [key.rpartition("/listing/")[2] for key in keys] == [
        "index.json",
        f"pages/{md5}/00000000.json.gz",
    ]
    assert set(json.loads(index)) == set(table_of("InventoryIndex"))
    assert set(json.loads(gzip.decompress(page))) == set(table_of("ListedPage")) - {"sequence"}
    assert set(json.loads(index)["pages"][0]) == set(table_of("PageLine"))


def test_a_plan_of_an_inventory_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Listed()
    world.add("a.json", LINE)
    world.add("b.json", LINE)
    world.deliver()
    world.add("c.json", LINE)
    monkeypatch.setattr(plan_command, "open_store", lambda *_: world.store)
    before = {bucket: world.store.contents(bucket) for bucket in ("source", "lake", BUCKET)}
    words = ["s3://source/logs/", "s3://lake/compacted/", "--listing", f"inventory:{URI}"]
    world.store.calls.clear()

    assert main(["plan", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["totals"]["objects"] == 2
    assert world.lists_of_the_source() == 0
    assert before == {bucket: world.store.contents(bucket) for bucket in before}


def test_a_run_without_its_pages_takes_list() -> None:
    settings: Settings = settings_of(**INVENTORY)
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    assert open_listing(settings, "run-1", store) is None
    assert open_listing(settings_of(), "run-1", store) is None
