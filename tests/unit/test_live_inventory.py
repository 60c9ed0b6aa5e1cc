"""The live inventory table of S3 Metadata instead of LIST: pinned, unsorted, with all versions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import boto3
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType

from compactor.catalogs import live_inventory, opening
from compactor.catalogs.live_inventory import open_live
from compactor.catalogs.opening import open_inventory
from compactor.errors import IntegrityError, InvalidInput, TransientStoreError
from compactor.inventory.inventory_listing import InventoryListing
from compactor.inventory.pages import DirectoryShelf, RunShelf
from compactor.inventory.taking import take_inventory, take_on
from compactor.model import SourceObject
from compactor.orchestration.discovery_step import Begun, begin
from compactor.orchestration.reconcile import Reconciliation
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_cli.commands import main
from compactor_cli.commands import plan as plan_command
from compactor_cli.commands import reconcile as reconcile_command
from tests.support.event_world import EventWorld
from tests.support.examples import NOW
from tests.support.examples import settings as settings_of
from tests.support.live_inventory import BUCKET, SCHEMA, LiveTable, live_row, marker
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.moto_server import moto_server

AWS = "s3tables:arn:aws:s3tables:us-east-1:111122223333:bucket/aws-s3#b_my-logs.inventory"
# pyiceberg commits snapshots at the time of this machine.
LONG_AGO = 1_700_000_000.0
ODD = ("a b", "ü+&%41", 'x"y,z', "..", "a//b", "~", "\U0001f600", "a'b", "%2F", "tab\tkey", "*")


class Live:
    """A store with a bucket of sources, and a live inventory table of it."""

    def __init__(self, directory: Path, schema: Schema = SCHEMA) -> None:
        self.clock = ManualClock(LONG_AGO)
        self.store = MemoryStore(self.clock)
        for bucket in ("source", "lake", BUCKET):
            self.store.add_bucket(bucket)
        self.table = LiveTable(self.store, directory)
        self.table.make(schema)
        self.directory = directory

    @property
    def settings(self) -> Settings:
        return settings_of(listing=f"inventory:{self.table.address}")

    def put(self, *names: str) -> list[SourceObject]:
        seeded = self.store.seed
        return [seeded("source", f"logs/{name}", name.encode("utf-8")) for name in names]

    def take(self, shelf: str = "pages", **given: Any) -> InventoryListing:
        directory = DirectoryShelf(self.directory / shelf)
        return take_inventory(self.settings, self.store, directory, opens=open_inventory, **given)

    def listed(self) -> list[SourceObject]:
        """By LIST."""
        return list(chain.from_iterable(self.store.list_objects("source", "logs/")))


@pytest.fixture
def live(tmp_path: Path) -> Live:
    return Live(tmp_path)


def sources_in(listing: InventoryListing) -> list[SourceObject]:
    return list(chain.from_iterable(listing.list_objects("source", "logs/")))


# What is listed.


def test_thousands_of_versions_in_unsorted_files_list_what_list_does(live: Live) -> None:
    drawn = random.Random(7)
    names = [f"{n % 97:02}/{n}-{ODD[n % len(ODD)]}" for n in range(3_000)]
    rows = []
    for number, one in enumerate(live.put(*names)):
        rows.append(live_row(one, 2 * number + 1, version_id=f"v{number}"))
        if number % 3 == 0:
            older = replace(one, etag="0" * 32, last_modified=one.last_modified - 60)
            rows.append(live_row(older, 2 * number, version_id="null"))
    gone = [f"gone/{n}" for n in range(200)]
    for number, one in enumerate(live.put(*gone), 10_000):
        rows.append(live_row(one, 2 * number, version_id="first"))
        told = {} if number % 2 else {"e_tag": "d41d8cd98f00b204e9800998ecf8427e"}
        rows.append(marker(one, 2 * number + 1, **told))
        live.store.remove("source", one.key)
    untold = live.put("untold/1", "untold/2")
    rows += [live_row(untold[0], 1, e_tag=None), live_row(untold[1], 1, last_modified_date=None)]
    others = live.store.seed("source", "other/1", b"1")
    rows.append(live_row(others))
    drawn.shuffle(rows)
    pinned = live.table.add(*(rows[part::7] for part in range(7)))

    listing = live.take(held_rows=500)

    found = sources_in(listing)
    assert found == [one for one in live.listed() if one not in untold]
    assert len(found) == len(names)
    assert listing.index.manifest_uri == f"{live.table.address}@{pinned}"
    # An independent reader of the same files.
    counted = current_by_duckdb(live)
    assert [(one.key, one.etag, one.size) for one in found] == counted


def current_by_duckdb(live: Live) -> list[tuple[str, str, int]]:
    """Keys, ETags and sizes of the current objects, by SQL on the data files."""
    files = live.store.contents(BUCKET)
    place = live.directory / "copied"
    place.mkdir()
    for number, (key, body) in enumerate(files.items()):
        if key.endswith(".parquet"):
            (place / f"{number}.parquet").write_bytes(body)
    query = f"""
        SELECT key, e_tag, size FROM (
            SELECT *, row_number() OVER (
                PARTITION BY key ORDER BY last_modified_date DESC, sequence_number DESC) AS place
            FROM read_parquet('{place}/*.parquet') WHERE starts_with(key, 'logs/'))
        WHERE place = 1 AND NOT is_delete_marker
            AND e_tag IS NOT NULL AND last_modified_date IS NOT NULL
        """  # noqa: S608 - a directory of this test
    with duckdb.connect() as connection:
        rows = connection.execute(query).fetchall()
    return sorted(rows, key=lambda row: row[0].encode())


def test_a_version_that_was_tagged_later_does_not_come_before_the_current_one(live: Live) -> None:
    (new,) = live.put("a")
    old = replace(new, etag="0" * 32, last_modified=LONG_AGO - 3_600)
    live.table.add([live_row(old, 9, version_id="1"), live_row(new, 5, version_id="2")])
    assert sources_in(live.take()) == [new]


def test_of_versions_of_one_second_the_larger_sequence_number_is_the_current_one(
    live: Live,
) -> None:
    (new,) = live.put("a")
    old = replace(new, etag="f" * 32)
    live.table.add([live_row(new, 5, version_id="2")], [live_row(old, 4, version_id="1")])
    assert sources_in(live.take(held_rows=1)) == [new]


def test_a_row_without_a_time_gives_way_to_one_that_has_it(live: Live) -> None:
    (one,) = live.put("a")
    nothing = {"last_modified_date": None, "e_tag": None, "size": None, "version_id": "0"}
    live.table.add([live_row(one, 4, version_id="1"), live_row(one, 9, **nothing)])
    assert sources_in(live.take()) == [one]


def test_rows_that_a_delete_file_takes_away_do_not_count(live: Live) -> None:
    kept, overwritten = live.put("a", "b")
    live.table.add([live_row(overwritten), live_row(kept)])
    inventory = open_live(live.settings, live.store, "")
    (task,) = inventory._tasks
    key = "0f01234c--table-s3/inventory/data/deletes.parquet"
    sink = pa.BufferOutputStream()
    columns = {"file_path": [task.file.file_path, "s3://tables/other"], "pos": [0, 1]}
    pq.write_table(pa.table(columns), sink)
    live.store.seed(BUCKET, key, sink.getvalue().to_pybytes())
    deletes = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"s3://{BUCKET}/{key}",
        file_format=FileFormat.PARQUET,
    )
    task.delete_files = {deletes}

    assert [row.key for row in inventory.rows(0, "logs/")] == [kept.key]


def test_only_the_columns_that_are_needed_are_read(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = random.Random(7)
    rows = [
        live_row(one, user_metadata={"note": drawn.randbytes(4_000).hex()})
        for one in live.put(*map(str, range(100)))
    ]
    live.table.add(rows)
    inventory = open_live(live.settings, live.store, "")
    before = len(live.store.calls)
    read: list[int] = []
    ranged = live.store.get_range

    def counted(bucket: str, key: str, start: int, length: int) -> bytes:
        read.append(length)
        return ranged(bucket, key, start, length)

    monkeypatch.setattr(live.store, "get_range", counted)
    assert len(list(inventory.rows(0, "logs/"))) == len(rows)
    assert {one.name for one in live.store.calls[before:]} == {"get_range"}
    (size,) = (task.file.file_size_in_bytes for task in inventory._tasks)
    assert sum(read) < size / 2


# One snapshot for a run.


class Once:
    """Time for one thing."""

    def remaining_seconds(self) -> float:
        return 1.0


def test_all_calls_of_a_run_take_the_snapshot_that_the_first_one_took(live: Live) -> None:
    seen = live.put(*map(str, range(5)))
    pinned = live.table.add(*([live_row(one)] for one in seen))
    shelf = RunShelf(live.settings, "run-1", live.store)
    calls = 0
    while (
        found := take_on(live.settings, live.store, shelf, Once(), opens=open_inventory)
    ) is None:
        calls += 1
        # What arrives meanwhile is for the next run.
        live.table.add([live_row(one) for one in live.put(f"later/{calls}")])
    assert calls >= len(seen)
    assert sources_in(found) == sorted(seen, key=lambda one: one.key.encode())
    assert found.index.manifest_uri.endswith(f"@{pinned}")
    snapshot = live.table.load().metadata.snapshot_by_id(pinned)
    assert snapshot is not None
    assert found.as_of == snapshot.timestamp_ms / 1000


def test_a_snapshot_that_expires_amid_a_run_ends_it_with_what_to_do(live: Live) -> None:
    pinned = live.table.add(*([live_row(one)] for one in live.put("a", "b", "c")))
    shelf = RunShelf(live.settings, "run-1", live.store)
    assert take_on(live.settings, live.store, shelf, Once(), opens=open_inventory) is None
    live.table.add([live_row(one) for one in live.put("d")])
    live.table.load().maintenance.expire_snapshots().by_id(pinned).commit()
    with pytest.raises(InvalidInput, match=r"listing: .*expired.*start a new run"):
        take_on(live.settings, live.store, shelf, Once(), opens=open_inventory)


def test_files_that_are_gone_mean_that_the_snapshot_expired(live: Live) -> None:
    live.table.add([live_row(one) for one in live.put("a")])
    inventory = open_live(live.settings, live.store, "")
    for key in live.store.contents(BUCKET):
        live.store.remove(BUCKET, key)
    with pytest.raises(InvalidInput, match="expired"):
        list(inventory.rows(0, "logs/"))


def test_a_run_begins_with_what_the_table_lists_and_asks_no_list_of_the_source(live: Live) -> None:
    live.table.add([live_row(one) for one in live.put("a", "b")])
    live.put("later")
    live.clock.advance(7_200)
    before = len(live.store.calls)
    begun = begin(replace(live.settings, depth=0), "run-1", live.store, live.clock.now())
    assert isinstance(begun, Begun)
    assert [item.objects for item in begun.in_full().items] == [2]
    calls = live.store.calls[before:]
    # Of the bucket's root alone, whose table the source may be.
    listed = {one.key for one in calls if one.bucket == "source" and one.name.startswith("list")}
    assert listed == {""}


def test_a_plan_of_a_live_inventory_writes_nothing(
    live: Live, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    live.table.add([live_row(one) for one in live.put("a.json", "b.json")])
    live.put("later.json")
    monkeypatch.setattr(plan_command, "open_store", lambda *_: live.store)
    before = {bucket: live.store.contents(bucket) for bucket in ("source", "lake", BUCKET)}
    words = ["plan", "s3://source/logs/", "s3://lake/compacted/"]
    words += ["--listing", f"inventory:{live.table.address}"]

    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["totals"]["objects"] == 2
    assert before == {bucket: live.store.contents(bucket) for bucket in before}


def test_reconciling_by_a_live_inventory_registers_what_no_event_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = EventWorld()
    world.store.add_bucket(BUCKET)
    for name in ("a/1.json", "b/1.json"):
        world.put(name)
    table = LiveTable(world.store, tmp_path)
    table.make()
    listed = [one for page in world.store.list_objects("source", "") for one in page]
    table.add([live_row(one) for one in listed])
    monkeypatch.setattr(reconcile_command, "open_store", lambda *_: world.store)
    at = partial(Reconciliation, at=world.table, grace_seconds=-1e9)
    monkeypatch.setattr(reconcile_command, "Reconciliation", at)
    words = [
        "reconcile",
        "s3://source/logs/",
        "s3://lake/compacted/",
        "--listing",
        "events:pending/logs",
    ]
    given = ["--depth", "1", "--settle-seconds", "0", "--open-partition-seconds", "0"]
    world.store.calls.clear()

    assert main([*words, *given, "--inventory", table.address, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["objects"], told["registered"], told["complete"]) == (2, 2, True)
    assert world.lists_of_the_source() == 0
    assert len(world.open_items()) == 2


# In a table bucket.


@pytest.fixture
def table_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, S3Store]]:
    """The address of a table of S3 Tables that lists two objects, and a store that reads it."""
    with moto_server() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3TABLES", url)
        store = S3Store(make_client(url))
        tables: Any = boto3.client("s3tables", region_name="us-east-1", endpoint_url=url)
        arn = tables.create_table_bucket(name="aws-s3")["arn"]
        name = {"tableBucketARN": arn, "namespace": "b_source", "name": "inventory"}
        tables.create_namespace(tableBucketARN=arn, namespace=["b_source"])
        tables.create_table(**name, format="ICEBERG")
        told = tables.get_table_metadata_location(**name)
        made = LiveTable(store, tmp_path)
        made.make(location=told["warehouseLocation"])
        made.add([live_row(SourceObject("source", f"logs/{n}", "0" * 32, 7, NOW)) for n in "ab"])
        there = made.load().metadata_location
        tables.update_table_metadata_location(
            **name, versionToken=told["versionToken"], metadataLocation=there
        )
        yield f"s3tables:{arn}#b_source.inventory", store


def test_the_table_of_a_table_bucket_is_read_by_where_s3_tables_says_its_metadata_lies(
    table_bucket: tuple[str, S3Store], tmp_path: Path
) -> None:
    address, store = table_bucket
    given = settings_of(listing=f"inventory:{address}")
    listing = take_inventory(given, store, DirectoryShelf(tmp_path / "p"), opens=open_inventory)
    assert [one.key for one in sources_in(listing)] == ["logs/a", "logs/b"]
    with pytest.raises(InvalidInput, match="there is none of this name"):
        open_live(replace(given, listing=f"inventory:{address}s"), store, "")


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("ForbiddenException", InvalidInput, "a role that may use this table"),
        ("InternalServerErrorException", TransientStoreError, "told by S3 Tables"),
    ],
)
def test_what_s3_tables_answers_is_reported_as_what_it_means(
    live: Live, monkeypatch: pytest.MonkeyPatch, code: str, kind: type[Exception], said: str
) -> None:
    def refuse(*_: str) -> str:
        answer: Any = {"Error": {"Code": code, "Message": "told by S3 Tables"}}
        raise ClientError(answer, "GetTableMetadataLocation")

    monkeypatch.setattr(live_inventory, "metadata_location", refuse)
    with pytest.raises(kind, match=said):
        open_live(replace(live.settings, listing=f"inventory:{AWS}"), live.store, "")


# What is refused.


def test_a_table_of_another_bucket_is_refused(live: Live) -> None:
    other = SourceObject("other", "logs/a", "0" * 32, 1, NOW)
    live.table.add([live_row(one) for one in (*live.put("a"), other)])
    with pytest.raises(InvalidInput, match="of the source's bucket source; this one is of other"):
        live.take()


def test_a_table_without_a_snapshot_is_refused(live: Live) -> None:
    with pytest.raises(InvalidInput, match="S3 has not filled this one yet"):
        live.take()


def test_a_name_that_is_invalid_is_refused(live: Live) -> None:
    given = replace(live.settings, listing=f"inventory:{live.table.address}s")
    with pytest.raises(InvalidInput, match="there is none of this name"):
        open_live(given, live.store, "")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (Schema(*SCHEMA.fields, NestedField(30, "record_type", StringType())), "it is a journal"),
        (Schema(*(one for one in SCHEMA.fields if one.name != "e_tag")), "it has no column e_tag"),
    ],
)
def test_a_table_of_another_kind_is_refused(tmp_path: Path, schema: Schema, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        Live(tmp_path, schema).take()


def test_a_data_file_that_is_damaged_is_no_listing(live: Live) -> None:
    live.table.add([live_row(one) for one in live.put("a")])
    inventory = open_live(live.settings, live.store, "")
    for key, body in live.store.contents(BUCKET).items():
        if key.endswith(".parquet"):
            live.store.seed(BUCKET, key, bytes(len(body)))
    with pytest.raises(IntegrityError, match="is no data file"):
        list(inventory.rows(0, "logs/"))


@pytest.mark.parametrize("missing", ["pyiceberg", "pyarrow"])
def test_without_pyiceberg_one_line_says_what_to_install_or_deploy(
    live: Live, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setattr(opening, "find_spec", lambda name: None if name == missing else object())
    with pytest.raises(InvalidInput, match=r"s3-compactor\[iceberg\].*made with this listing"):
        live.take()


@pytest.mark.parametrize(
    "table",
    [
        *("aws-s3#b_logs.inventory", "s3tables:aws-s3#b_logs.inventory", "glue:b_logs.inventory"),
        *("s3tables:#b_logs.inventory", AWS.replace("#b_my-logs.", "#"), AWS.replace("#", "")),
        *(AWS.replace(":1111", ":1"), AWS.replace("#b_my-logs", "#a.b"), "delta:s3://a/b/", 7),
    ],
)
def test_what_is_no_address_of_a_live_inventory_is_refused(table: object) -> None:
    with pytest.raises(InvalidInput, match="listing"):
        settings_of(listing=f"inventory:{table}")


def test_settings_name_an_inventory_by_its_listing() -> None:
    found = settings_of(listing=f"inventory:{AWS}")
    assert found.listing_source.table is not None
    assert found.listing_source.table.text == AWS
    assert Settings.from_input(found.to_dict()) == found
