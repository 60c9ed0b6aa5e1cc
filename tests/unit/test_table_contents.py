"""Clean-up asks the table for the rows of each output: by the real pyiceberg and deltalake."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest

from compactor.catalogs.delta_contents import delta_contents
from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.clock import NoDeadline, SystemClock
from compactor.errors import InvalidInput
from compactor.log.log import CommitLog
from compactor.model import Partition, SourceObject
from compactor.s3.store import make_client
from compactor.settings.uris import parse_location
from compactor.sinks.table_catalog import TableFile
from compactor.table_formats.iceberg_manifests import Reading
from tests.support.aws_server import aws_server
from tests.support.maintained_tables import BUCKET, DeltaLines, added
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.parquet_outputs import commit_rows
from tests.support.table_places import Place

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from tests.support.table_users import Users

A = Partition("source", "logs/a/", "a/")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with aws_server() as url, pytest.MonkeyPatch.context() as patch:
        for name, value in (
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "testtest"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", url),
        ):
            patch.setenv(name, value)
        boto3.client("s3").create_bucket(Bucket=A.bucket)
        yield url


class Cleaned:
    """A place, sources of its outputs, and its users."""

    def __init__(self, place: Place) -> None:
        place.settings = replace(place.settings, delete_after="0d")
        if isinstance(place.store, MemoryStore):
            place.store.add_bucket(A.bucket)
        self.place = place
        self.users = Users(place)
        self.outputs: list[str] = []

    def compact(self, *numbers: int) -> None:
        """An output with these rows, in the table; its source stands."""
        store = self.place.store
        key = f"{A.prefix}{numbers[0]}.json"
        store.put(A.bucket, key, json.dumps(numbers).encode())
        head = store.head(A.bucket, key)
        assert head is not None
        source = SourceObject(A.bucket, key, head.etag, head.size, head.last_modified)
        rows = pa.table({"id": numbers})
        commit = commit_rows(store, self.place.settings, A, rows, source)
        assert commit.output is not None
        self.outputs.append(f"s3://{commit.output.bucket}/{commit.output.key}")
        assert self.place.publish().faults == []
        # Retention counts from the checkpoint.
        log = CommitLog(store, self.place.settings, A)
        state = log.load()
        for one in list(state.unpublished.values()):
            state.mark_published(one)
        log.checkpoint(state)

    def clean_up(self) -> CleanUpReceipt:
        place = self.place
        clock = place.store.clock if isinstance(place.store, MemoryStore) else SystemClock()
        if isinstance(clock, ManualClock):
            clock.advance(1)
        run = CleanUpRun(A.path, place.settings, place.store, clock, NoDeadline(), "clean-up")
        return record_clean_up(run, CleanUpReceipt(A.path, "clean-up"))

    def sources(self) -> list[str]:
        """Of which rows the sources stand."""
        pages = self.place.store.list_objects(A.bucket, A.prefix)
        return sorted(
            one.key.removeprefix(A.prefix).split(".")[0] for page in pages for one in page
        )

    def forget_outputs(self) -> None:
        """What a lifecycle rule does to outputs that the table replaced."""
        named = {uri.split("/", 3)[3] for uri in self.outputs}
        client = self.place.store
        for key in named:
            if isinstance(client, MemoryStore):
                client.remove(self.place.bucket, key)
            else:
                make_client().delete_object(Bucket=self.place.bucket, Key=key)


@pytest.fixture
def make(
    endpoint: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[[str], Cleaned]]:
    name = f"{abs(hash(request.node.name)):x}"[:12]
    yield lambda kind: Cleaned(Place(kind, endpoint, name, tmp_path))
    client = boto3.client("s3")
    for one in client.list_objects_v2(Bucket=A.bucket).get("Contents", ()):
        client.delete_object(Bucket=A.bucket, Key=one["Key"])


@pytest.fixture(params=["sql", "delta"])
def cleaned(request: pytest.FixtureRequest, make: Callable[[str], Cleaned]) -> Cleaned:
    return make(request.param)


def test_sources_go_where_the_table_is_made_of_their_outputs(cleaned):
    cleaned.compact(1, 2)
    cleaned.users.append([9])
    assert cleaned.clean_up().unsafe == []
    assert cleaned.sources() == []


def test_sources_of_rows_that_a_user_deleted_stay_and_others_go(cleaned):
    cleaned.compact(1, 2)
    cleaned.compact(3)
    cleaned.users.delete(1)
    (line,) = cleaned.clean_up().unsafe
    assert "the 2 rows of" in line
    assert "overwrite) removed it" in line.lower() or "delete) removed it" in line.lower()
    assert cleaned.sources() == ["1"]


def test_an_overwrite_and_as_many_rows_of_others_prove_nothing(cleaned):
    cleaned.compact(1, 2)
    cleaned.users.overwrite([7, 8])
    assert cleaned.place.rows() == Counter([7, 8])
    assert "removed it" in cleaned.clean_up().unsafe[0]
    cleaned.forget_outputs()
    cleaned.users.append([9])
    assert "removed it" in cleaned.clean_up().unsafe[0]
    assert cleaned.sources() == ["1"]


def test_sources_go_where_rewrites_alone_replaced_their_outputs(cleaned):
    cleaned.compact(1, 2)
    cleaned.compact(3)
    cleaned.users.rewrite()
    cleaned.compact(4)
    cleaned.users.rewrite()
    cleaned.forget_outputs()
    receipt = cleaned.clean_up()
    assert (receipt.unsafe, cleaned.sources()) == ([], [])
    assert cleaned.place.rows() == Counter([1, 2, 3, 4])


def test_sources_stay_where_rows_went_after_a_rewrite(cleaned):
    cleaned.compact(1, 2)
    cleaned.compact(3)
    cleaned.users.rewrite()
    cleaned.users.delete(3)
    told = cleaned.clean_up().unsafe
    assert len(told) == 2
    assert all("rewrote it, and of what took its rows" in line for line in told)
    assert cleaned.sources() == ["1", "3"]


def test_an_output_that_is_gone_although_the_table_is_made_of_it_keeps_its_sources(cleaned):
    cleaned.compact(1, 2)
    cleaned.forget_outputs()
    (line,) = cleaned.clean_up().unsafe
    assert "is missing, and" in line
    assert cleaned.sources() == ["1"]


def test_metadata_is_read_once_for_all_partitions_of_a_clean_up(make, monkeypatch):
    cleaned = make("sql")
    cleaned.compact(1)
    cleaned.compact(2)
    read: list[str] = []
    entries = Reading._entries

    def noted(self: Any, manifest: Any, wanted: Any) -> Any:
        read.append(manifest.manifest_path)
        return entries(self, manifest, wanted)

    monkeypatch.setattr(Reading, "_entries", noted)
    place = cleaned.place
    place.store.clock.advance(1)
    run = CleanUpRun(
        A.path, place.settings, place.store, place.store.clock, NoDeadline(), "clean-up"
    )
    for _ in range(3):
        record_clean_up(run, CleanUpReceipt(A.path, "clean-up"))
    assert len(read) == len(set(read)) == 2
    assert cleaned.sources() == []


# Iceberg.


@pytest.mark.parametrize("named", [True, False])
def test_a_delete_file_that_applies_to_an_output_keeps_its_sources(make, named):
    cleaned = make("sql")
    cleaned.compact(1, 2)
    cleaned.users.delete_by_position(cleaned.outputs[0], 0, named=named)
    cleaned.compact(3)
    assert cleaned.place.rows() == Counter([2, 3])
    (line,) = cleaned.clean_up().unsafe
    assert "delete 1 of its rows" in line if named else "may delete rows of it" in line
    assert cleaned.sources() == ["1"]


def test_a_rewrite_that_applied_deletes_keeps_the_sources(make):
    cleaned = make("sql")
    cleaned.compact(1, 2)
    cleaned.users.delete_by_position(cleaned.outputs[0], 0)
    cleaned.users.rewrite()
    assert cleaned.place.rows() == Counter([2])
    (line,) = cleaned.clean_up().unsafe
    assert "replaced files of 2 rows by 1 rows" in line


def test_a_rewrite_whose_snapshot_expired_proves_nothing(make):
    cleaned = make("sql")
    cleaned.compact(1, 2)
    cleaned.users.rewrite()
    cleaned.users.append([9])
    cleaned.users.expire()
    (line,) = cleaned.clean_up().unsafe
    assert "expire later than delete_after" in line
    assert cleaned.sources() == ["1"]


def test_a_rewrite_that_is_the_last_snapshot_left_is_enough(make):
    cleaned = make("sql")
    cleaned.compact(1, 2)
    cleaned.users.rewrite()
    cleaned.users.expire()
    cleaned.forget_outputs()
    assert cleaned.clean_up().unsafe == []
    assert cleaned.sources() == []


def test_sources_go_after_a_rollback_that_was_taken_back(make):
    cleaned = make("sql")
    cleaned.compact(1)
    cleaned.users.delete(1)
    handle: Any = cleaned.place.state().handle
    before = handle.current_snapshot().parent_snapshot_id
    handle.manage_snapshots().set_current_snapshot(before).commit()
    assert cleaned.clean_up().unsafe == []
    assert cleaned.sources() == []


# Delta.


class Versions:
    """Versions of a Delta log that delta-rs does not write."""

    def __init__(self, cleaned: Cleaned) -> None:
        self._place = cleaned.place
        self.path = cleaned.outputs[0].split("/events/")[1]

    def commit(self, *actions: dict[str, Any]) -> None:
        version = int(self._place.state().version.split()[1]) + 1
        body = b"".join(json.dumps(one).encode() + b"\n" for one in actions)
        self._place.store.put(self._place.bucket, f"events/_delta_log/{version:020}.json", body)

    def removed(self, path: str, *, changes: bool, deleted: int = 0) -> dict[str, Any]:
        vector = added(path, 1, deleted=deleted)["add"].get("deletionVector")
        more = {"deletionVector": vector} if vector else {}
        return {"remove": {"path": path, "deletionTimestamp": 1, "dataChange": changes, **more}}


def test_a_deletion_vector_keeps_the_sources_also_once_it_was_rewritten(make):
    cleaned = make("delta")
    cleaned.compact(1, 2)
    versions = Versions(cleaned)
    path = versions.path
    versions.commit(versions.removed(path, changes=True), added(path, 9, rows=2, deleted=1))
    (line,) = cleaned.clean_up().unsafe
    assert "a deletion vector deletes 1 of its rows; version 2 removed it" in line
    versions.commit(
        versions.removed(path, changes=False, deleted=1),
        added("other.parquet", 9, rows=1, dataChange=False),
    )
    (line,) = cleaned.clean_up().unsafe
    assert line.split(": ", 2)[2].startswith("version 2 removed it")
    assert cleaned.sources() == ["1"]


@pytest.mark.parametrize(("rows", "kept"), [(2, []), (1, ["1"])])
def test_a_version_that_says_it_changes_nothing_is_believed_with_as_many_rows(make, rows, kept):
    cleaned = make("delta")
    cleaned.compact(1, 2)
    versions = Versions(cleaned)
    versions.commit(
        versions.removed(versions.path, changes=False),
        added("other.parquet", 9, rows=rows, dataChange=False),
    )
    told = cleaned.clean_up().unsafe
    assert all("version 2 replaced files of 2 rows by 1 rows" in line for line in told)
    assert cleaned.sources() == kept


def test_a_checkpoint_says_the_same_as_the_entries_before_it(make):
    cleaned = make("delta")
    cleaned.compact(1, 2)
    cleaned.compact(3)
    cleaned.users.delete(1)
    handle: Any = cleaned.place.state().handle
    handle.create_checkpoint()
    cleaned.users.append([9])
    (line,) = cleaned.clean_up().unsafe
    assert "version 3 (DELETE) removed it" in line
    assert cleaned.sources() == ["1"]


def test_a_history_that_expired_keeps_the_sources(make):
    cleaned = make("delta")
    cleaned.compact(1, 2)
    cleaned.compact(3)
    cleaned.users.rewrite()
    handle: Any = cleaned.place.state().handle
    handle.create_checkpoint()
    cleaned.users.append([9])
    version = int(cleaned.place.state().version.split()[1])
    for number in range(version):
        key = f"events/_delta_log/{number:020}.json"
        make_client().delete_object(Bucket=cleaned.place.bucket, Key=key)
    told = cleaned.clean_up().unsafe
    assert all("expire later than delete_after" in line for line in told)
    assert cleaned.sources() == ["1", "3"]


def test_a_log_that_asks_more_of_its_readers_than_is_known_proves_nothing():
    store = MemoryStore(ManualClock())
    store.add_bucket(BUCKET)
    lines = DeltaLines(store, features="deletionVectors")
    lines.commit(added("_compacted/x.parquet", 1))
    location, below = (
        parse_location(f"s3://{BUCKET}/events/{name}") for name in ("", "_compacted/")
    )
    file = TableFile(BUCKET, "events/_compacted/x.parquet", 1, 10)
    assert delta_contents(location, store, 1, below).fault_of(file) == ""
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["rowsElsewhere"]}
    lines.commit({"protocol": features})
    assert delta_contents(location, store, 1, below).fault_of(file) == ""
    with pytest.raises(InvalidInput, match="asks nothing new of its readers, as rowsElsewhere"):
        delta_contents(location, store, 2, below).fault_of(file)


def test_names_of_partitions_are_found_in_the_log_as_delta_writes_them(make):
    cleaned = make("delta")
    odd = Partition("source", "logs/a/", "day=50% \u00fc/x y/")
    store, settings = cleaned.place.store, cleaned.place.settings
    commit = commit_rows(store, settings, odd, pa.table({"id": [1]}))
    cleaned.place.publish()
    assert commit.output is not None
    file = TableFile(commit.output.bucket, commit.output.key, commit.output.size, 1)
    contents = cleaned.place.catalog.contents(cleaned.place.state())
    assert contents.fault_of(file) == ""
    assert contents.fault_of(file._replace(key=f"{file.key}x")) != ""
