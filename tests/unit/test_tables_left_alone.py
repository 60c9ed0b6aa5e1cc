"""What belongs to a table or a registry is no source, whatever its way in; nor are hidden names.

The tables are made, and read afterwards, by the libraries that own their formats.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog

from compactor.discovery.discover import discover
from compactor.discovery.forecast import Forecast
from compactor.errors import InvalidInput, TransientStoreError
from compactor.limits import WorkerLimits
from compactor.log.digests import Digests
from compactor.model import Listing, Partition, SkipReason
from compactor.orchestration.in_process import ThisProcess
from compactor.orchestration.messages import Desk
from compactor.orchestration.run import Ended, Given, run_whole
from compactor.planning.partition_listing import listing_of, take_listing
from compactor.planning.plan import Knowledge, plan
from compactor.planning.surroundings import Surroundings
from compactor.ports import KeyPage
from compactor.scanning.listing import list_below
from compactor.settings.settings import Settings
from tests.support.directory_store import DirectoryStore
from tests.support.event_world import EventWorld
from tests.support.examples import LONG_AGO, NOW, settings
from tests.support.memory_store import Call, ManualClock, MemoryStore

DAY = 86_400.0
LINE = b'{"n":1}\n'
# Tables whose data a run would join: names of the data around each marker, before and after it.
MARKERS = {
    "_delta_log/00000000000000000000.json": SkipReason.TABLE,
    ".hoodie/hoodie.properties": SkipReason.TABLE,
    "_spark_metadata/0": SkipReason.TABLE,
    "metadata/v1.metadata.json": SkipReason.TABLE,
    "metadata/00000-4a6f.gz.metadata.json": SkipReason.TABLE,
    "metadata/version-hint.text": SkipReason.TABLE,
    "metadata/snap-1-1-4a6f.avro": SkipReason.TABLE,
    "metadata/4a6f-m0.avro": SkipReason.TABLE,
    "schema/schema-0": SkipReason.TABLE,
    "oci-layout": SkipReason.REGISTRY,
}
# By all of which a registry's blob is known without anything beside it.
BLOB = "docker/registry/v2/blobs/sha256/ab/ab" + "0" * 62 + "/data"


class Forever:
    def remaining_seconds(self) -> float:
        return math.inf


class Bucket:
    """A bucket of sources, and whole runs over it."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        self.store = store or MemoryStore(ManualClock(NOW))
        for name in ("source", "lake"):
            self.store.add_bucket(name)
        self._runs = 0

    def put(self, *keys: str, body: bytes = LINE) -> None:
        for key in keys:
            self.store.seed("source", key, body, last_modified=LONG_AGO)

    def run(self, wanted: Settings) -> Ended:
        self._runs += 1
        run_id = f"run-{self._runs}"
        clock = self.store.clock
        return run_whole(
            Given(
                settings=wanted,
                run_id=run_id,
                started_at="2027-01-15T08:00:00Z",
                store=self.store,
                clock=clock,
                deadline=Forever(),
                workers=lambda store: ThisProcess(Desk(wanted, store, clock, run_id), Forever()),
            )
        )

    def compact_and_delete(self, **given: Any) -> Counter[str]:
        """Two runs with clean-up, days apart; what they left alone, by reason."""
        wanted = settings(delete_after="0d", **given)
        skipped: Counter[str] = Counter()
        for _ in range(2):
            ended = self.run(wanted)
            assert ended.report is not None
            assert ended.report.status == "succeeded"
            skipped = Counter({k: one.objects for k, one in ended.report.skipped.items()})
            self.wait(2 * DAY)
        return skipped

    def wait(self, seconds: float) -> None:
        assert isinstance(self.store.clock, ManualClock)
        self.store.clock.advance(seconds)

    @property
    def keys(self) -> set[str]:
        return set(self.store.contents("source"))

    @property
    def outputs(self) -> bytes:
        return b"".join(self.store.contents("lake", "compacted/").values())


def below(root: str, marker: str) -> list[str]:
    return [f"{root}{name}" for name in ("1/a.json", "1/b.json", marker, "zz/a.json", "zz/b.json")]


# Markers within the partition, above it, and above the source.


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("root", ["logs/", "logs/deep/t/", "", "x/"])
def test_whatever_lies_around_a_marker_stays_and_what_lies_beside_is_compacted(marker, root):
    world = Bucket()
    world.put(*(below(root, marker)))
    beside = ["logs/other/a.json", "logs/other/b.json"]
    world.put(*beside)
    skipped = world.compact_and_delete()
    inside = {key for key in below(root, marker) if key.startswith("logs/")}
    owned = {*inside, *(beside if "logs/other/".startswith(root) else ())}
    assert owned <= world.keys
    assert skipped[MARKERS[marker]] == len(owned)
    if not owned.issuperset(beside):
        assert not set(beside) & world.keys
        assert world.outputs.count(LINE.strip()) == 2


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize(
    ("uri", "given", "name"),
    [
        ("s3://source/lake/t/", {"date_format": "date=%Y-%m-%d"}, "lake/t/date=2026-01-02/"),
        ("s3://source/lake/*/", {"date_format": "date=%Y-%m-%d"}, "lake/t/date=2026-01-02/"),
        ("s3://source/lake/", {"date_format": "t/%Y/%m/%d"}, "lake/t/2026/01/02/"),
        ("s3://source/lake/t/date=2026-01-02/", {}, "lake/t/date=2026-01-02/"),
        ("s3://source/lake/*/*/", {}, "lake/t/date=2026-01-02/"),
        ("s3://source/lake/t/", {"depth": 1}, "lake/t/date=2026-01-02/"),
        ("s3://source/", {"depth": 3}, "lake/t/date=2026-01-02/"),
    ],
)
def test_a_partition_below_a_marked_prefix_is_left_alone(marker, uri, given, name):
    world = Bucket()
    keys = [f"{name}{n}.json" for n in range(3)]
    world.put(*keys, f"lake/t/{marker}")
    if "date_format" in given:
        given = {**given, "window": "2026-01-02..2026-01-02"}
    skipped = world.compact_and_delete(s3_source_uri=uri, **given)
    assert set(keys) <= world.keys
    assert not world.outputs
    assert skipped[MARKERS[marker]] >= len(keys)


@pytest.mark.parametrize(
    "uri",
    ["s3://source/t/_delta_log/", "s3://source/docker/registry/v2/", "s3://source/t/metadata/"],
)
def test_a_source_within_a_marker_is_left_alone(uri):
    world = Bucket()
    world.put("t/_delta_log/0.json", "t/_delta_log/1.json", "t/metadata/v1.metadata.json", BLOB)
    before = world.keys
    world.compact_and_delete(s3_source_uri=uri)
    assert world.keys == before
    assert not world.outputs


def test_blobs_of_a_registry_are_known_by_their_names_and_logs_beside_them_are_compacted():
    world = Bucket()
    digest = "c" * 64
    blobs = [f"logs/{BLOB}", f"logs/x/blobs/sha256/{digest}", f"logs/x/blobs/sha256/{digest[:-1]}d"]
    world.put(*blobs, "logs/a.json", "logs/b.json", "logs/blobs/sha256/notes.json")
    skipped = world.compact_and_delete()
    assert world.keys == set(blobs)
    assert skipped[SkipReason.REGISTRY] == 3
    assert world.outputs.count(LINE.strip()) == 3


def test_a_level_called_metadata_without_files_of_iceberg_marks_nothing():
    world = Bucket()
    world.put("logs/metadata/a.json", "logs/data/a.json", "metadata/a.json", "schema/a.json")
    assert not world.compact_and_delete()
    assert world.keys == {"metadata/a.json", "schema/a.json"}


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("page", [1, 2, 1_000])
def test_a_marker_is_found_among_so_many_others_that_no_page_shows_it(marker, page):
    store = MemoryStore(page_size=page)
    store.add_bucket("source")
    store.seed("source", f"t/{marker}", LINE)
    for n in range(12):
        for before in ("%", "0", "N", "a", "n", "z"):
            store.seed("source", f"t/{before}{n}/a", LINE)
    looks = Surroundings(store, "source")
    assert looks.above("t/z1/") == MARKERS[marker]
    assert looks.above("t/") is None
    asked = store.count("list_level")
    assert asked <= 2 + 2 + 6 + 2
    # Every level once, whoever asks.
    assert looks.above("t/n1/") == MARKERS[marker]
    assert store.count("list_level") == asked


def test_a_marker_is_found_where_a_store_ignores_the_delimiter(monkeypatch):
    store = MemoryStore()
    store.add_bucket("source")
    for key in ("t/_delta_log/0.json", "t/a/1.json", "u/metadata/notes.json"):
        store.seed("source", key, LINE)

    def flat(bucket: str, prefix: str, **_: str) -> Iterator[KeyPage]:
        yield from (KeyPage(tuple(page), ()) for page in store.list_objects(bucket, prefix))

    monkeypatch.setattr(store, "list_level", flat)
    looks = Surroundings(store, "source")
    assert looks.above("t/a/") == SkipReason.TABLE
    assert looks.above("u/a/") is None


def test_a_denied_look_above_the_source_is_no_error():
    world = Bucket()
    world.put("x/logs/a.json", "x/logs/b.json", "_delta_log/0.json")

    def deny(call: Call) -> None:
        if call.name == "list_level" and call.bucket == "source" and call.key in ("", "x/"):
            raise InvalidInput("permission", "denied", "a role that allows this request")

    world.store.hooks.before.append(deny)
    world.compact_and_delete(s3_source_uri="s3://source/x/logs/")
    assert world.keys == {"_delta_log/0.json"}


def test_a_look_that_is_not_answered_ends_the_run_and_the_next_asks_again():
    store = MemoryStore()
    store.add_bucket("source")
    store.seed("source", "t/_delta_log/0.json", LINE)

    def silent(_: Call) -> None:
        store.hooks.clear()
        raise TransientStoreError("no answer")

    store.hooks.before.append(silent)
    with pytest.raises(TransientStoreError):
        Surroundings(store, "source").above("t/a/")
    assert Surroundings(store, "source").above("t/a/") == SkipReason.TABLE


# Windows: what one of them shows is not all of the partition.


@pytest.mark.parametrize("marker", MARKERS)
@pytest.mark.parametrize("window", [1, 2, 3, 5])
@pytest.mark.parametrize("root", ["logs/", "logs/a/", "logs/a/b/"])
def test_a_marker_in_another_window_of_the_partition_counts(marker, window, root):
    world = Bucket()
    keys = [
        f"{root}{name}" for name in ("0/a.json", "0/b.json", "N.json", "n/a.json", "z/1/a.json")
    ]
    world.put(*keys, root + marker, "logs/0.json", "logs/zz.json")
    world.compact_and_delete(limits=WorkerLimits(window_objects=window))
    assert set(keys) <= world.keys
    assert ({"logs/0.json", "logs/zz.json"} <= world.keys) == (root == "logs/")


def test_a_partition_that_one_window_holds_asks_no_level_of_its_own():
    world = Bucket()
    world.put(*(f"logs/{n}/{m}.json" for n in range(5) for m in range(3)))
    world.run(settings())
    levels = {c.key for c in world.store.calls if c.name == "list_level" and c.bucket == "source"}
    assert levels == {"", "logs/"}
    assert world.store.count("list_level", bucket="source") == 2


def test_levels_above_partitions_are_asked_once_in_a_run():
    world = Bucket()
    days = [f"logs/2026/{month:02}/{day:02}/" for month in (1, 2) for day in range(1, 11)]
    world.put(*(f"{day}{n}.json" for day in days for n in range(2)))
    world.run(settings(date_format="%Y/%m/%d", window="2026-01-01..2026-02-28"))
    asked = Counter(
        c.key for c in world.store.calls if c.name == "list_level" and c.bucket == "source"
    )
    # logs/ once more, to see that it is there.
    assert asked == {"": 1, "logs/": 2, "logs/2026/": 1, "logs/2026/01/": 1, "logs/2026/02/": 1}


# Other ways in: plans, events, scan, Spark.


def plans(store: MemoryStore, wanted: Settings) -> Counter[SkipReason]:
    """What a plan leaves alone, and ``COMMITTED`` for what it takes."""
    found = discover(wanted, store, NOW)
    told: Counter[SkipReason] = Counter()
    for item in found.partitions:
        made = Forecast(wanted, store, Knowledge()).of(item, NOW)
        told.update({reason: one.objects for reason, one in made.skipped.items()})
        told[SkipReason.COMMITTED] += sum(len(group.sources) for group in made.groups)
    return told


@pytest.mark.parametrize("window", [2, 50_000])
def test_a_plan_shows_the_same(window):
    world = Bucket()
    world.put(*below("logs/t/", "_delta_log/0.json"), "logs/0.json")
    made = plans(world.store, settings(limits=WorkerLimits(window_objects=window)))
    assert made == {SkipReason.TABLE: 5, SkipReason.COMMITTED: 1}


def test_a_partition_is_not_taken_where_a_table_is_above_it():
    world = Bucket()
    world.put("lake/t/_delta_log/0.json", *(f"lake/t/d=1/{n}.json" for n in range(9)))
    for given in ({}, {"output_format": "parquet"}):
        wanted = settings(s3_source_uri="s3://source/lake/", depth=2, **given)
        found = discover(wanted, world.store, NOW)
        assert found.partitions == ()
        assert found.skipped[SkipReason.TABLE].objects == 10


@pytest.mark.parametrize(
    ("names", "marker"),
    [
        (["t/d=1/a.json", "t/d=1/b.json"], "logs/t/_delta_log/0.json"),
        (["t/a.json", "t/b.json"], "logs/t/metadata/v1.metadata.json"),
        (["t/a.json", "t/b.json"], ".hoodie/hoodie.properties"),
        (["t/x/y/a.json", "t/x/y/b.json"], "logs/t/x/_spark_metadata/0"),
    ],
)
def test_events_of_a_tables_files_start_nothing_and_wait_for_nothing(names, marker):
    world = EventWorld()
    world.store.seed("source", marker, LINE)
    world.deliver(
        *(world.put(name) for name in names), world.put("u/a.json"), world.put("u/b.json")
    )
    world.sweep()
    receipts = world.run_started()
    taken = 0 if marker.startswith(".hoodie") else 2
    assert sum(one.counts.objects_in for one in receipts) == taken
    reasons = {one.path: one.skipped.get(SkipReason.TABLE) for one in receipts}
    assert reasons["t/"] is not None
    assert reasons["t/"].objects == len(names)
    noted = [item.reason for (_, path, _), item in world.registry.items.items() if path == "t/"]
    assert len(noted) == len(names)
    assert all(reason.startswith(f"{SkipReason.TABLE}@") for reason in noted)
    world.clock.advance(10 * DAY)
    assert world.sweep().started is None


@pytest.mark.parametrize(
    ("keys", "owned"),
    [
        (below("logs/t/", "_delta_log/0.json"), 5),
        (below("logs/t/", "metadata/v1.metadata.json"), 5),
        (["_delta_log/0.json", "logs/t/a.json"], 2),
    ],
)
@pytest.mark.parametrize("most", [1, 2, 3, 4, 1_000_000])
def test_a_scan_counts_no_file_of_a_table_as_a_source(keys, owned, most):
    store = MemoryStore(ManualClock(NOW), page_size=2)
    store.add_bucket("source")
    for key in [*keys, "logs/zz/1.json"]:
        store.seed("source", key, LINE, last_modified=LONG_AGO)
    wanted = settings(s3_destination_uri="s3://no-destination/none/")
    listed = list_below(wanted, store, NOW, most, lambda _: None)
    taken = sum(counts.objects for counts in listed.places.values())
    free = 0 if "_delta_log/0.json" in keys else 1
    assert taken <= free
    if most > len(keys):
        assert taken == free
        assert listed.skips[SkipReason.TABLE].objects == owned


def test_a_scan_counts_no_table_whose_marker_comes_after_its_data():
    store = MemoryStore(ManualClock(NOW), page_size=2)
    store.add_bucket("source")
    tables = [*below("logs/a/", "metadata/v1.metadata.json"), *below("logs/b/", ".hoodie/x")]
    for key in [*tables, "logs/zz/1.json"]:
        store.seed("source", key, LINE, last_modified=LONG_AGO)
    wanted = settings(s3_destination_uri="s3://no-destination/none/")
    listed = list_below(wanted, store, NOW, 1_000, lambda _: None)
    taken = sum(counts.objects for counts in listed.places.values())
    assert (listed.every.objects, taken) == (11, 1)
    assert listed.skips[SkipReason.TABLE].objects == 10


# Names that begin with _ or .


HIDDEN = ("_tmp/a.json", "x/_SUCCESS.json", ".a.json", "x/.b/a.json", "_a.json", "x/_b/_c/a.json")


@pytest.mark.parametrize("output_format", ["same", "parquet"])
@pytest.mark.parametrize(
    ("include", "taken"),
    [
        ([], ()),
        (["*"], ()),
        (["*.json"], ()),
        (["_tmp/*", "*"], ("_tmp/a.json",)),
        (["*_SUCCESS.json", "*/_SUCCESS.json"], ("x/_SUCCESS.json",)),
        (["*/_b/*"], ()),
        (["*/_b/_c/*"], ("x/_b/_c/a.json",)),
        ([".a.json", "_*"], (".a.json", "_a.json", "_tmp/a.json")),
    ],
)
def test_hidden_names_are_taken_only_where_include_spells_them(include, taken, output_format):
    keys = [*HIDDEN, "x/a_b.json", "x/CloudTrail-Digest/a.json", "a._b/c.json"]
    store = MemoryStore()
    store.add_bucket("source")
    for key in keys:
        store.seed("source", f"logs/{key}", LINE, last_modified=LONG_AGO)
    wanted = settings(include=include, output_format=output_format)
    root = Partition("source", "logs/", "")
    made = plan(take_listing(listing_of(store, root), root, Digests()), wanted, Knowledge(), NOW)
    found = {one.key.removeprefix("logs/") for group in made.groups for one in group.sources}
    assert found & set(HIDDEN) == set(taken)
    if not include or "*" in include:
        assert {"x/a_b.json", "a._b/c.json"} <= found
        assert made.skipped[SkipReason.HIDDEN].objects == len(HIDDEN) - len(taken)


@pytest.mark.parametrize(
    ("uri", "key", "given"),
    [
        ("s3://source/_raw/", "_raw/a/b.json", {}),
        ("s3://source/*/_raw/", "x/_raw/b.json", {}),
        ("s3://source/*/_r*/", "x/_raw/b.json", {}),
        ("s3://source/x/", "x/_2026/b.json", {"date_format": "_%Y", "window": "2026-01-01.."}),
    ],
)
def test_levels_that_the_source_spells_out_are_not_hidden(uri, key, given):
    world = Bucket()
    world.put(key)
    world.run(settings(s3_source_uri=uri, **given))
    assert world.outputs == LINE


def test_a_hidden_name_is_no_pending_event():
    world = EventWorld()
    assert world.deliver(world.put("a/_tmp.json"), world.put("a/b.json")).ignored == 1


# Tables of the libraries themselves.


def rows(n: int) -> pa.Table:
    return pa.table({"n": list(range(10 * n, 10 * n + 10)), "part": [str(n)] * 10})


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize(
    ("uri", "given"),
    [
        ("s3://source/", {}),
        ("s3://source/lake/", {"depth": 1}),
        ("s3://source/lake/t/", {"depth": 1}),
        ("s3://source/lake/*/*/", {}),
        ("s3://source/lake/t/_delta_log/", {}),
    ],
)
def test_a_delta_table_has_all_its_rows_after_a_run_and_clean_up(
    tmp_path: Path, uri: str, given: dict[str, Any], partitioned: bool
) -> None:
    store = DirectoryStore("source", tmp_path / "source")
    place = store.directory / "lake/t"
    for n in range(4):
        by = ["part"] if partitioned else None
        write_deltalake(place, rows(n), mode="append", partition_by=by)
    world = Bucket(store)
    world.wait(DAY)
    (store.directory / "lake/u").mkdir()
    (store.directory / "lake/u/a.json").write_bytes(LINE)
    world.compact_and_delete(s3_source_uri=uri, **given)
    world.compact_and_delete(s3_source_uri=uri, **given, format="json_lines")
    table = DeltaTable(place)
    assert table.version() == 3
    found = table.to_pyarrow_table().column("n").to_pylist()
    assert sorted(found) == list(range(40))


@pytest.mark.parametrize(
    ("uri", "given"),
    [
        ("s3://source/", {}),
        ("s3://source/lake/t/", {"depth": 1}),
        ("s3://source/lake/t/metadata/", {}),
        ("s3://source/lake/*/", {"depth": 1, "format": "json_lines"}),
    ],
)
def test_an_iceberg_table_has_all_its_rows_after_a_run_and_clean_up(
    tmp_path: Path, uri: str, given: dict[str, Any]
) -> None:
    store = DirectoryStore("source", tmp_path / "source")
    place = store.directory / "lake/t"
    catalog = {"uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/source"}
    made = SqlCatalog("lake", **catalog)
    made.create_namespace("lake")
    table = made.create_table("lake.t", rows(0).schema, location=f"file://{place}")
    for n in range(4):
        table.append(rows(n))
    world = Bucket(store)
    world.wait(DAY)
    world.compact_and_delete(s3_source_uri=uri, **given)
    opened = SqlCatalog("lake", **catalog).load_table("lake.t")
    found = opened.scan().to_arrow().column("n").to_pylist()
    assert sorted(found) == list(range(40))


@pytest.mark.parametrize(
    "metadata",
    [
        {"format-version": 2, "table-uuid": "1", "location": "s3://t", "last-updated-ms": 1},
        {"format-version": 1, "view-uuid": "1", "location": "s3://v", "versions": []},
    ],
)
def test_metadata_of_iceberg_that_lies_elsewhere_is_not_joined(metadata):
    world = Bucket()
    keys = {f"logs/t/0000{n}-{n}.metadata.json" for n in range(3)}
    world.put(*keys, body=json.dumps(metadata).encode())
    assert world.compact_and_delete() == {SkipReason.TABLE: 3}
    assert world.keys == keys


def test_the_report_names_what_compacts_tables():
    world = Bucket()
    world.put(*below("logs/", "_delta_log/0.json"))
    ended = world.run(settings())
    assert ended.report is not None
    assert "compactor maintain" in ended.report.headline


def test_a_listing_that_stops_within_a_table_asks_for_its_marker():
    store = MemoryStore()
    store.add_bucket("source")
    store.seed("source", "t/d/_delta_log/0.json", LINE)
    listing = Listing(Partition("source", "t/", ""), (), complete=False, last_key="t/d/0/a.json")
    assert Surroundings(store, "source").around(listing, "") == {"t/d/": SkipReason.TABLE}
    assert Surroundings(store, "source").around(replace(listing, complete=True), "") == {}
