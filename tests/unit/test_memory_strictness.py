"""What S3 does at its limits and in its races, and the in-memory store with it."""

from __future__ import annotations

import threading
import zlib
from typing import Any

import pytest

from compactor.errors import AlreadyExists, IntegrityError, ObjectMissing, TransientStoreError
from compactor.model import SourceObject, StoredPart
from compactor.ports import Deletion, Refused
from tests.support.memory_store import Call, ManualClock, MemoryStore

B = "bucket"


def a_store(**given: Any) -> MemoryStore:
    store = MemoryStore(ManualClock(1_000.0), **given)
    store.add_bucket(B)
    return store


def upload(store: MemoryStore, body: bytes, key: str = "out") -> tuple[str, list[StoredPart]]:
    upload_id = store.create_upload(B, key)
    return upload_id, [store.upload_part(B, key, upload_id, 1, body)]


def complete(store: MemoryStore, made: tuple[str, list[StoredPart]]) -> None:
    upload_id, parts = made
    store.complete_upload(B, "out", upload_id, parts, crc32=None)


# Two writes of one key at once.


def test_an_upload_completed_while_another_is_being_completed_is_a_conflict() -> None:
    store = a_store()
    first, second = upload(store, b"first"), upload(store, b"second")
    seen = []

    def meanwhile(call: Call) -> None:
        assert store.head(B, "out") is None, "nobody can read it yet"
        with pytest.raises(TransientStoreError, match="ConditionalRequestConflict"):
            complete(store, second)
        seen.append(call)

    store.hooks.during.append(meanwhile)
    complete(store, first)
    assert seen == [Call("complete_upload", B, "out")]
    assert store.contents(B) == {"out": b"first"}
    assert store.unfinished_uploads(B) == {}, "after a 409 S3 wants all parts once more"
    with pytest.raises(ObjectMissing):
        complete(store, second)


def test_an_upload_being_completed_while_its_key_is_written_is_a_conflict() -> None:
    store = a_store()
    made = upload(store, b"output")
    store.hooks.during.append(lambda _: store.create(B, "out", b"another"))
    with pytest.raises(TransientStoreError, match="ConditionalRequestConflict"):
        complete(store, made)
    assert store.contents(B) == {"out": b"another"}


def test_an_upload_aborted_while_it_is_being_completed_is_gone() -> None:
    store = a_store()
    made = upload(store, b"output")
    store.hooks.during.append(lambda _: store.abort_upload(B, "out", made[0]))
    with pytest.raises(ObjectMissing):
        complete(store, made)
    assert store.contents(B) == {}


def test_uploads_for_two_keys_are_completed_concurrently() -> None:
    store = a_store()
    both = threading.Barrier(2, timeout=60)
    uploads = {key: upload(store, key.encode(), key) for key in ("a", "b")}

    def wait_for_the_other(_: Call) -> None:
        both.wait()

    store.hooks.during.append(wait_for_the_other)

    def publish(key: str) -> None:
        upload_id, parts = uploads[key]
        store.complete_upload(B, key, upload_id, parts, crc32=zlib.crc32(key.encode()))

    threads = [threading.Thread(target=publish, args=(key,)) for key in uploads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.contents(B) == {"a": b"a", "b": b"b"}


def test_an_upload_whose_completion_failed_can_be_completed_later() -> None:
    store = a_store()
    made = upload(store, b"output")

    def cut(_: Call) -> None:
        raise TransientStoreError("the connection was cut")

    store.hooks.during.append(cut)
    with pytest.raises(TransientStoreError, match="cut"):
        complete(store, made)
    assert store.contents(B) == {}
    store.hooks.clear()
    complete(store, made)
    assert store.contents(B) == {"out": b"output"}


# Damage on the way.


@pytest.mark.parametrize("write", ["put", "create", "upload_part"])
def test_a_body_that_was_damaged_on_its_way_is_refused(write: str) -> None:
    store = a_store()
    upload_id = store.create_upload(B, "k")
    store.hooks.wire.append(lambda call, body: b"?" + body[1:] if call.name == write else body)
    request = {
        "put": lambda: store.put(B, "k", b"body"),
        "create": lambda: store.create(B, "k", b"body"),
        "upload_part": lambda: store.upload_part(B, "k", upload_id, 1, b"body"),
    }[write]
    with pytest.raises(IntegrityError, match="BadDigest"):
        request()
    assert store.contents(B) == {}
    store.hooks.clear()
    request()


# Limits.


@pytest.mark.parametrize("key", ["k" * 1_025, "é" * 513, ""])
def test_keys_have_from_1_to_1024_bytes(key: str) -> None:
    store = a_store()
    with pytest.raises(AssertionError, match=r"KeyTooLong|InvalidURI"):
        store.create(B, key, b"")
    with pytest.raises(AssertionError, match=r"KeyTooLong|InvalidURI"):
        store.seed(B, key, b"")
    assert store.contents(B) == {}
    store.create(B, "é" * 512, b"")


def test_a_part_sent_or_copied_has_at_most_five_gibibytes() -> None:
    store = a_store(max_part_bytes=4)
    source = store.seed(B, "source", b"12345")
    upload_id = store.create_upload(B, "out")
    with pytest.raises(AssertionError, match="EntityTooLarge"):
        store.upload_part(B, "out", upload_id, 1, b"12345")
    with pytest.raises(AssertionError, match="EntityTooLarge"):
        store.copy_part(B, "out", upload_id, 1, source, 0, 5)
    store.upload_part(B, "out", upload_id, 1, b"1234")
    store.copy_part(B, "out", upload_id, 2, source, 0, 4)


def test_an_upload_has_at_most_ten_thousand_parts() -> None:
    store = a_store(min_part_bytes=1)
    upload_id = store.create_upload(B, "out")
    parts = [store.upload_part(B, "out", upload_id, n, b"x") for n in range(1, 10_001)]
    with pytest.raises(AssertionError, match="part number 10001"):
        store.upload_part(B, "out", upload_id, 10_001, b"x")
    store.complete_upload(B, "out", upload_id, parts, crc32=zlib.crc32(b"x" * 10_000))
    head = store.head(B, "out")
    assert head is not None
    assert (head.size, head.etag[-6:]) == (10_000, "-10000")


@pytest.mark.parametrize(("start", "length"), [(5, 1), (-1, 2), (0, 0)])
def test_a_range_begins_within_the_object_and_has_a_byte(start: int, length: int) -> None:
    store = a_store()
    source = store.seed(B, "k", b"12345")
    with pytest.raises(AssertionError, match="InvalidRange"):
        store.read_range(source, start, length)
    with pytest.raises((AssertionError, ObjectMissing), match="InvalidRange"):
        store.get_range(B, "k", start, length)
    assert store.read_range(source, 4, 9) == b"5"


def test_an_output_is_dated_from_the_start_of_its_upload() -> None:
    clock = ManualClock(1_000.0)
    store = MemoryStore(clock)
    store.add_bucket(B)
    made = upload(store, b"output")
    clock.advance(60)
    complete(store, made)
    head = store.head(B, "out")
    assert head is not None
    assert (head.last_modified, head.answered_at) == (1_000.0, 1_060.0)


def test_open_uploads_come_by_key_and_age_one_request_a_page() -> None:
    clock = ManualClock(1_000.0)
    store = MemoryStore(clock, page_size=2)
    store.add_bucket(B)
    ids = {}
    for key in ("p/b", "p/a", "p/b", "q", "p/c"):
        ids[store.create_upload(B, key)] = (key, clock.now())
        clock.advance(1)
    listed = [*store.list_uploads(B, "p/")]
    assert [(one.key, one.began) for one in listed] == [
        ("p/a", 1_001.0),
        ("p/b", 1_000.0),
        ("p/b", 1_002.0),
        ("p/c", 1_004.0),
    ]
    assert {one.upload_id: (one.key, one.began) for one in listed}.items() <= ids.items()
    assert store.count("list_uploads") == 2
    assert [*store.list_uploads(B, "nothing")] == []
    assert store.count("list_uploads") == 3


# Versions.


def a_versioned_store() -> tuple[MemoryStore, SourceObject]:
    store = a_store()
    store.add_bucket(B, versioned=True)
    return store, store.seed(B, "k", b"first")


def test_a_delete_in_a_versioned_bucket_puts_a_marker_before_the_version() -> None:
    store, source = a_versioned_store()
    assert store.delete_sources([source]) == Deletion((), markers=1)
    assert store.contents(B) == {}
    assert store.noncurrent(B, "k") == [b"first"]
    again = Deletion(absent=frozenset({"k"}))
    assert store.delete_sources([source]) == again, "gone, and no second marker"
    store.create(B, "k", b"second")
    assert store.contents(B) == {"k": b"second"}
    assert store.noncurrent(B, "k") == [b"first"]


def test_a_write_in_a_versioned_bucket_keeps_what_it_writes_over() -> None:
    store, source = a_versioned_store()
    store.put(B, "k", b"second")
    store.seed(B, "k", b"third")
    assert store.noncurrent(B, "k") == [b"first", b"second"]
    refused = Refused("k", "PreconditionFailed", final=True)
    assert store.delete_sources([source]) == Deletion((refused,))
    with pytest.raises(AlreadyExists):
        store.create(B, "k", b"fourth")


def test_a_bucket_without_versions_keeps_nothing() -> None:
    store = a_store()
    source = store.seed(B, "k", b"first")
    store.put(B, "k", b"first")
    assert store.delete_sources([source]) == Deletion()
    assert store.noncurrent(B, "k") == []
