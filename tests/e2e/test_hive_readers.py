"""The readers' table in a real Hive metastore: what it is told, and what engines read by it.

What a query reads is found here from what the metastore says, by nothing of the product.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import pytest

pytest.importorskip("thrift", reason="the extra hive is not installed")

from hive_metastore.ttypes import Database, FieldSchema

from compactor.catalogs.hive_client import Metastore
from compactor.catalogs.hive_reader import HiveReader
from compactor.catalogs.readers import open_readers
from compactor.clock import SystemClock
from compactor.errors import AlreadyExists, InvalidInput, TransientStoreError
from compactor.readers.formats import SYMLINK_INPUT, Reading, descriptor_of, table_descriptor
from compactor.readers.port import CatalogChange
from compactor.readers.refresh import Refreshing, refresh
from compactor.readers.states import Shown
from compactor.settings.readers import parse_reader_table
from compactor.settings.settings import Settings
from compactor.stores.s3 import S3Store, make_client
from tests.support.moto_server import moto_server
from tests.support.reader_lake import DAYS, Lake
from tests.support.real_servers import Unavailable, hive_metastore

COLUMNS = [{"name": "id", "type": "bigint"}]
DESCRIPTOR = table_descriptor(Reading("serde", {"a": "b"}), COLUMNS, "s3://lake/none/")


@dataclass(frozen=True)
class Place:
    """A metastore with the database ``lake``, and the S3 that it looks into."""

    uri: str
    s3: str

    def address(self, table: str, uri: str = "") -> str:
        return f"hive:{uri or self.uri}#lake.{table}"

    def reader(self, table: str, uri: str = "") -> HiveReader:
        address = parse_reader_table(self.address(table, uri))
        return HiveReader(address, Metastore(address, wait=lambda _: None))

    def ask(self, call: Callable[[Any], Any]) -> Any:
        return Metastore(parse_reader_table(self.address("none"))).ask("test", call)

    def partition(self, table: str, name: str) -> Any:
        (found,) = self.ask(lambda client: client.get_partitions_by_names("lake", table, [name]))
        return found


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch, moto_server() as s3:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", s3)
        client = boto3.client("s3")
        for bucket in ("my-logs", "my-lake", "lake"):
            client.create_bucket(Bucket=bucket)
        try:
            with hive_metastore(s3) as uri:
                made = Place(uri, s3)
                # Hive's own warehouse is a local directory, of which nobody asks anything.
                made.ask(lambda one: one.create_database(Database(name="lake")))
                yield made
        except Unavailable as reason:
            pytest.skip(f"no Hive metastore: {reason}")


def table_input(name: str, *keys: str) -> dict[str, Any]:
    return {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"EXTERNAL": "TRUE", "made_by": "us"},
        "PartitionKeys": [{"Name": one, "Type": "string"} for one in keys or ("day",)],
        "StorageDescriptor": DESCRIPTOR,
    }


def change(*values: str, new: bool, shown: Shown = Shown.COMPACTED, **more: str) -> CatalogChange:
    descriptor = descriptor_of(DESCRIPTOR, shown, f"s3://lake/{shown}/")
    return CatalogChange(values, descriptor, {"x": "-".join(values), **more}, new=new)


def test_a_partition_goes_through_its_states_with_all_that_it_was_given(place: Place) -> None:
    catalog = place.reader("states")
    assert catalog.table() is None
    assert catalog.entries([("1",)]) == {}
    with pytest.raises(InvalidInput, match=r"reader_columns: 'hive:thrift://.*#lake\.states'"):
        catalog.columns_of("lake", "states")
    catalog.create_table(table_input("states"))
    with pytest.raises(AlreadyExists):
        catalog.create_table(table_input("states"))
    made = catalog.table()
    assert made is not None
    assert made["PartitionKeys"] == [{"Name": "day", "Type": "string"}]
    assert made["Parameters"].items() >= {"EXTERNAL": "TRUE", "made_by": "us"}.items()
    assert made["StorageDescriptor"].items() >= DESCRIPTOR.items()
    assert catalog.columns_of("lake", "states") == COLUMNS
    listed = boto3.client("s3").list_objects_v2(Bucket="lake", Prefix="none/")["Contents"]
    assert [(one["Key"], one["Size"]) for one in listed] == [("none/", 0)]

    for shown in (Shown.RAW, Shown.COMPACTED, Shown.LISTED):
        wanted = change("1", new=shown is Shown.RAW, shown=shown)
        assert catalog.change([wanted]) == {}
        (found,) = catalog.entries([("1",), ("2",)]).values()
        assert found.location == wanted.descriptor["Location"]
        assert (found.input_format == SYMLINK_INPUT) == (shown is Shown.LISTED)
        assert found.document.items() >= wanted.descriptor.items()
        assert found.parameters["x"] == "1"


def test_a_switch_keeps_what_is_not_its_own_and_forgets_what_was_counted(place: Place) -> None:
    catalog = place.reader("kept")
    catalog.create_table(table_input("kept"))
    counted = {"numRows": "7", "spark.sql.statistics.numRows": "7"}
    assert catalog.change([change("1", new=True)]) == {}

    def count(client: Any) -> None:
        found = place.partition("kept", "day=1")
        found.parameters |= {**counted, "owner": "them"}
        client.alter_partitions("lake", "kept", [found])

    place.ask(count)
    before = place.partition("kept", "day=1")
    assert before.parameters.items() >= counted.items()
    parameters = catalog.entries([("1",)])[("1",)].parameters
    assert catalog.change([change("1", new=False, shown=Shown.LISTED, **parameters)]) == {}
    after = place.partition("kept", "day=1")
    assert set(after.parameters) == {"x", "owner", "transient_lastDdlTime"}
    assert after.createTime == before.createTime > 0


def test_a_value_with_an_equals_sign_is_a_partition_by_its_encoded_name(place: Place) -> None:
    catalog = place.reader("wildcards")
    catalog.create_table(table_input("wildcards", "level1"))
    assert catalog.change([change(one, new=True) for one in ("x=y", "y")]) == {}
    assert place.partition("wildcards", "level1=x%3Dy").values == ["x=y"]
    assert catalog.entries([("x=y",), ("y",)]).keys() == {("x=y",), ("y",)}


def test_a_switch_makes_the_metastore_list_nothing(place: Place) -> None:
    catalog = place.reader("unlisted")
    catalog.create_table(table_input("unlisted"))
    assert catalog.change([change("1", new=True)]) == {}
    # It could not.
    unknown = descriptor_of(DESCRIPTOR, Shown.LISTED, "s9://lake/x/")
    assert catalog.change([CatalogChange(("1",), unknown, {})]) == {}
    assert catalog.entries([("1",)])[("1",)].location == "s9://lake/x/"


def test_columns_keep_their_comments_and_buckets_their_number(place: Place) -> None:
    catalog = place.reader("comments")
    catalog.create_table(table_input("comments"))

    def comment(client: Any) -> None:
        table = client.get_table("lake", "comments")
        table.sd.cols = [FieldSchema("id", "bigint", "who"), FieldSchema("more", "string", None)]
        client.alter_table("lake", "comments", table)

    place.ask(comment)
    table = catalog.table()
    assert table is not None
    descriptor = descriptor_of(table["StorageDescriptor"], Shown.LISTED, "s3://lake/x/")
    assert catalog.change([CatalogChange(("1",), descriptor, {}, new=True)]) == {}
    found = place.partition("comments", "day=1").sd
    assert [(one.name, one.comment) for one in found.cols] == [("id", "who"), ("more", None)]
    assert found.numBuckets == -1


def test_what_cannot_be_changed_is_told_and_all_the_others_are(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compactor.catalogs.hive_reader._AT_ONCE", 10)
    catalog = place.reader("batches")
    catalog.create_table(table_input("batches"))
    days = [f"{number:03}" for number in range(24)]
    theirs = change("007", new=True, x="them")
    assert catalog.change([theirs]) == {}
    refused = catalog.change([change(day, new=True) for day in days])
    assert refused.keys() == {("007",)}
    assert "somebody else" in refused[("007",)]
    entries = catalog.entries([(day,) for day in days])
    assert len(entries) == len(days)
    assert entries[("007",)].parameters["x"] == "them"

    switches = [change(day, new=False, shown=Shown.LISTED) for day in [*days, "999"]]
    assert catalog.change(switches).keys() == {("999",)}
    entries = catalog.entries([(day,) for day in days])
    assert {one.input_format for one in entries.values()} == {SYMLINK_INPUT}

    elsewhere = descriptor_of(DESCRIPTOR, Shown.RAW, "s9://lake/x/")
    bad = CatalogChange(("b",), elsewhere, {}, new=True)
    mixed = [change("a", new=True), bad, change("c", new=True)]
    told = catalog.change(mixed)
    assert told.keys() == {("b",)}
    assert "s9" in told[("b",)]
    assert "\n" not in told[("b",)]
    assert catalog.entries([("a",), ("b",), ("c",)]).keys() == {("a",), ("c",)}


def test_a_partition_that_is_dropped_in_the_middle_keeps_no_other_from_its_switch(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = place.reader("dropped")
    catalog.create_table(table_input("dropped"))
    assert catalog.change([change(day, new=True) for day in "abc"]) == {}
    look, looks = HiveReader._partitions, []

    def drop(self: HiveReader, wanted: Any) -> Any:
        found = look(self, wanted)
        looks.append(wanted)
        if len(looks) == 1:
            place.ask(lambda client: client.drop_partition("lake", "dropped", ["b"], False))
        return found

    monkeypatch.setattr(HiveReader, "_partitions", drop)
    refused = catalog.change([change(day, new=False, shown=Shown.LISTED) for day in "abc"])
    assert refused.keys() == {("b",)}
    monkeypatch.undo()
    entries = catalog.entries([(day,) for day in "abc"])
    assert {values: one.input_format for values, one in entries.items()} == {
        ("a",): SYMLINK_INPUT,
        ("c",): SYMLINK_INPUT,
    }


WORST = "".join(map(chr, range(32, 127))).replace("/", "") + "ü€"


@pytest.mark.parametrize(
    "values", [("2026", "07"), ("a b", "%41"), (WORST, "x"), ("dt=1", "a/b"), ("A", "a")]
)
def test_partitions_are_found_by_whatever_values_they_have(
    place: Place, values: tuple[str, str]
) -> None:
    catalog = place.reader("values")
    if catalog.table() is None:
        catalog.create_table(table_input("values", "one", "Two"))
    wanted = change(*values, new=True)
    assert catalog.change([wanted]) == {}
    assert catalog.entries([values])[values].parameters["x"] == "-".join(values)
    assert catalog.change([change(*values, new=False, shown=Shown.RAW)]) == {}


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"database": "nowhere"}, "reader_table", "a database of it"),
        ({"location": "s9://lake/none/"}, "reader_table", "fs.s3.impl"),
    ],
)
def test_a_table_that_the_metastore_does_not_take_is_refused_by_what_helps(
    place: Place, given: dict[str, str], field: str, words: str
) -> None:
    address = parse_reader_table(f"hive:{place.uri}#{given.get('database', 'lake')}.refused")
    descriptor = {**DESCRIPTOR, "Location": given.get("location", "s3://lake/none/")}
    document = {**table_input("refused"), "StorageDescriptor": descriptor}
    with pytest.raises(InvalidInput, match=words) as caught:
        HiveReader(address).create_table(document)
    assert caught.value.field == field


class HiveLake(Lake):
    """A lake whose table is in the metastore."""

    def __init__(self, directory: Path, place: Place) -> None:
        super().__init__(directory, place.address("logs"))
        self.place = place

    def shown(self) -> Iterator[tuple[str, str]]:
        for one in self.place.ask(lambda client: client.get_partitions("lake", "logs", -1)):
            yield f"{one.sd.location.rstrip('/')}/", one.sd.inputFormat

    def refresh(self) -> list[str]:
        """What each day shows then."""
        settings = Settings.from_input(self.input)
        catalog = open_readers(self.input["reader_table"])
        store = S3Store(make_client(None))
        work = Refreshing(settings, store, SystemClock(), catalog)
        outcomes = refresh([f"dt={day}/" for day in DAYS], work)
        assert not [one.fault for one in outcomes if one.fault]
        return [one.shows for one in outcomes]


@pytest.mark.slow
def test_each_record_is_read_once_while_runs_late_data_and_clean_up_go_on(
    place: Place, tmp_path: Path
) -> None:
    lake = HiveLake(tmp_path, place)
    for day in DAYS:
        lake.add(day, 4)
    assert lake.refresh() == ["raw"] * 3
    lake.require_exact()
    lake.add(DAYS[2], 1)
    lake.require_exact()

    running = lake.run()
    lake.watch(running, set(lake.put))
    assert running.returncode == 0
    lake.require_exact()
    assert {bucket for bucket, _ in lake.plan()} == {"my-lake"}

    known = set(lake.put)
    lake.add(DAYS[0], 2)
    assert lake.read(lake.plan()) == (len(known), known), "late ones are invisible, not doubled"
    assert lake.refresh() == ["listed", "compacted", "compacted"]
    lake.require_exact()

    assert lake.clean_up() == 0, "an hour has not passed"
    plan, known = lake.plan(), set(lake.put)
    lake.forget_grace()
    assert lake.clean_up() == len(known) // 5 - 2
    lake.require_exact()
    assert lake.read(plan) == (len(known), known)

    assert lake.run().wait(600) == 0
    assert lake.refresh() == ["compacted"] * 3
    lake.require_exact()


@contextmanager
def losing(uri: str, answers: int) -> Iterator[str]:
    """The metastore behind a line that breaks after so many requests, before their answers."""
    target = urlsplit(uri)
    left = [answers]

    def pump(source: socket.socket, sink: socket.socket, *, loses: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if loses and left[0] > 0:
                    left[0] -= 1
                    break
                sink.sendall(data)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def serve(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                near, _ = listening.accept()
                far = socket.create_connection((str(target.hostname), int(target.port or 0)))
                for ends in ((near, far, False), (far, near, True)):
                    threading.Thread(
                        target=pump, args=ends[:2], kwargs={"loses": ends[2]}, daemon=True
                    ).start()

    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield f"thrift://127.0.0.1:{listening.getsockname()[1]}"


def test_a_lost_answer_is_asked_for_again_and_what_was_done_is_known_as_ours(place: Place) -> None:
    place.reader("lost").create_table(table_input("lost"))
    with losing(place.uri, 1) as uri:
        assert place.reader("lost", uri).change([change("1", new=True)]) == {}
    with losing(place.uri, 2) as uri:
        switch = change("1", new=False, shown=Shown.LISTED)
        assert place.reader("lost", uri).change([switch]) == {}
    with losing(place.uri, 3) as uri, pytest.raises(TransientStoreError, match="get table"):
        place.reader("lost", uri).table()
    (found,) = place.reader("lost").entries([("1",)]).values()
    assert found.input_format == SYMLINK_INPUT
