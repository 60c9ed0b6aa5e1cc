"""The in-memory store is as strict as S3: what the protocol tests rely on."""

from __future__ import annotations

import hashlib
import threading
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.errors import (
    AlreadyExists,
    IntegrityError,
    InvalidInput,
    ObjectMissing,
    SourceChanged,
)
from compactor.model import SourceObject, StoredPart
from compactor.ports import Deletion, ObjectStore, Refused
from tests.support.memory_store import Call, Crashed, ManualClock, MemoryStore

B = "bucket"
MIB = 1024 * 1024


def a_store(**given: Any) -> MemoryStore:
    store = MemoryStore(ManualClock(1_000.0), **given)
    store.add_bucket(B)
    return store


def upload(store: MemoryStore, *bodies: bytes, key: str = "out") -> tuple[str, list[StoredPart]]:
    upload_id = store.create_upload(B, key)
    parts = [store.upload_part(B, key, upload_id, n, b) for n, b in enumerate(bodies, start=1)]
    return upload_id, parts


def test_it_is_an_object_store() -> None:
    store: ObjectStore = a_store()
    assert store.requests.snapshot() == {}


keys = st.text(st.sampled_from("ab/0.\u00e9\U0010ffff"), min_size=1, max_size=6)


@given(st.sets(keys, max_size=30), st.text("ab/", max_size=2), st.integers(1, 5))
def test_listings_are_in_byte_order_whatever_the_page_size(
    names: set[str], prefix: str, page_size: int
) -> None:
    store = a_store(page_size=page_size)
    for name in names:
        store.seed(B, name, name.encode())
    expected = sorted((n for n in names if n.startswith(prefix)), key=str.encode)
    pages = list(store.list_objects(B, prefix))
    assert [one.key for page in pages for one in page] == expected
    assert len(pages) == max(1, -(-len(expected) // page_size)) == store.count("list_objects")
    for after in expected:
        rest = [
            one.key for page in store.list_objects(B, prefix, start_after=after) for one in page
        ]
        assert rest == expected[expected.index(after) + 1 :]


@given(st.sets(keys, max_size=30), st.sampled_from(["", "a/", "a"]), st.integers(1, 5))
def test_one_level_has_each_object_and_each_prefix_once(
    names: set[str], prefix: str, page_size: int
) -> None:
    store = a_store(page_size=page_size)
    for name in names:
        store.seed(B, name, b"")
    below = [(n, n[len(prefix) :].partition("/")) for n in names if n.startswith(prefix)]
    pages = list(store.list_level(B, prefix))
    assert [o.key for page in pages for o in page.objects] == sorted(
        n for n, p in below if not p[1]
    )
    prefixes = [p for page in pages for p in page.prefixes]
    assert prefixes == sorted({f"{prefix}{p[0]}/" for _, p in below if p[1]})
    sizes = [len(page.objects) + len(page.prefixes) for page in pages]
    assert all(size == page_size for size in sizes[:-1])


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef")), max_size=20))
def test_listings_follow_every_write_and_removal(steps: list[tuple[bool, str]]) -> None:
    store = a_store()
    there: set[str] = set()
    for put, key in steps:
        if put:
            store.put(B, key, b"")
            there.add(key)
        elif key in there:
            store.remove(B, key)
            there.remove(key)
        assert [one.key for page in store.list_objects(B, "") for one in page] == sorted(there)


def test_what_was_seeded_is_listed_with_its_etag_size_time_and_class() -> None:
    store = a_store()
    seeded = store.seed(B, "a", b"abc", last_modified=5.0, storage_class="GLACIER")
    etag = hashlib.md5(b"abc", usedforsecurity=False).hexdigest()
    assert seeded == SourceObject(B, "a", etag, 3, 5.0, "GLACIER")
    assert list(store.list_objects(B, "")) == [[seeded]]


def test_sources_come_in_order_small_ones_whole_and_large_ones_in_chunks() -> None:
    store = a_store(whole_bytes=4, chunk_bytes=3)
    small, empty, large = (
        store.seed(B, k, v) for k, v in (("b", b"1234"), ("c", b""), ("a", b"12345"))
    )
    bodies = store.read_sources([small, empty, large])
    assert next(bodies).content == b"1234"
    assert next(bodies).content == b""
    chunks = next(bodies).chunks
    assert chunks is not None
    assert list(chunks()) == [b"123", b"45"]
    with pytest.raises(AssertionError, match="only once"):
        chunks()
    assert store.count("read_source") == 2
    assert store.snapshot() == {"GET": 2, "bytes_read": 9}


def test_a_chunked_body_cannot_be_read_after_the_next_was_asked_for() -> None:
    store = a_store(whole_bytes=1)
    bodies = store.read_sources([store.seed(B, "a", b"12"), store.seed(B, "b", b"34")])
    chunks = next(bodies).chunks
    assert chunks is not None
    late = chunks()
    next(bodies)
    with pytest.raises(AssertionError, match="in order"):
        next(late)


def test_a_source_that_changed_or_went_is_reported_as_such() -> None:
    store = a_store()
    changed, gone, kept = (store.seed(B, key, b"old") for key in "abc")
    store.seed(B, "a", b"new")
    store.remove(B, "b")
    one, two, three = store.read_sources([changed, gone, kept])
    assert isinstance(one.error, SourceChanged)
    assert isinstance(two.error, SourceChanged)
    assert two.error.found == "gone"
    assert three.content == b"old"


def test_an_archived_source_cannot_be_read() -> None:
    store = a_store()
    archived = store.seed(B, "a", b"x", storage_class="DEEP_ARCHIVE")
    with pytest.raises(AssertionError, match="InvalidObjectState"):
        list(store.read_sources([archived]))


def test_what_is_missing_is_missing() -> None:
    store = a_store()
    assert store.head(B, "a") is None
    for read in (
        lambda: store.get(B, "a"),
        lambda: store.get_range(B, "a", 0, 1),
        lambda: list(store.open(B, "a")),
        lambda: store.upload_part(B, "a", "upload-9", 1, b""),
        lambda: store.complete_upload(B, "a", "upload-9", [], crc32=None),
    ):
        with pytest.raises(ObjectMissing):
            read()
    store.abort_upload(B, "a", "upload-9")


def test_create_refuses_a_taken_key_and_put_overwrites_it() -> None:
    store = a_store()
    store.create(B, "a", b"1")
    with pytest.raises(AlreadyExists):
        store.create(B, "a", b"2")
    assert store.get(B, "a") == b"1"
    store.put(B, "a", b"3")
    assert store.get_range(B, "a", 0, 9) == b"3"


def test_of_many_creators_concurrently_exactly_one_wins() -> None:
    store = a_store()
    start = threading.Barrier(8, timeout=60)
    won: list[int] = []

    def create(number: int) -> None:
        start.wait()
        try:
            store.create(B, "commit", str(number).encode())
            won.append(number)
        except AlreadyExists:
            pass

    threads = [threading.Thread(target=create, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.get(B, "commit")] == [str(n).encode() for n in won]


def test_an_upload_is_invisible_until_it_is_completed() -> None:
    store = a_store(min_part_bytes=2)
    upload_id, parts = upload(store, b"12", b"3")
    assert store.head(B, "out") is None
    assert list(store.list_objects(B, "")) == [[]]
    assert store.unfinished_uploads(B) == {upload_id: "out"}
    store.complete_upload(B, "out", upload_id, parts, crc32=zlib.crc32(b"123"))
    head = store.head(B, "out")
    assert head is not None
    assert (head.size, head.crc32, head.last_modified) == (3, zlib.crc32(b"123"), 1_000.0)
    assert head.etag.endswith("-2")
    assert b"".join(store.open(B, "out")) == b"123"
    assert store.unfinished_uploads(B) == {}
    with pytest.raises(ObjectMissing):
        store.complete_upload(B, "out", upload_id, parts, crc32=None)


def test_an_upload_is_refused_over_a_taken_key_and_stays_until_it_is_aborted() -> None:
    store = a_store()
    store.put(B, "out", b"first")
    upload_id, parts = upload(store, b"second")
    with pytest.raises(AlreadyExists):
        store.complete_upload(B, "out", upload_id, parts, crc32=None)
    assert store.get(B, "out") == b"first"
    assert upload_id in store.unfinished_uploads(B)
    store.abort_upload(B, "out", upload_id)
    assert store.unfinished_uploads(B) == {}


def test_a_wrong_checksum_publishes_nothing() -> None:
    store = a_store()
    upload_id, parts = upload(store, b"123")
    with pytest.raises(IntegrityError):
        store.complete_upload(B, "out", upload_id, parts, crc32=1)
    assert store.head(B, "out") is None


def test_parts_before_the_last_have_at_least_five_mebibytes() -> None:
    store = a_store()
    upload_id, parts = upload(store, b"x" * (5 * MIB - 1), b"y")
    with pytest.raises(AssertionError, match="EntityTooSmall"):
        store.complete_upload(B, "out", upload_id, parts, crc32=None)
    upload_id, parts = upload(store, b"x" * (5 * MIB), b"")
    store.complete_upload(B, "out", upload_id, parts, crc32=None)


def test_parts_must_be_those_that_were_stored_in_ascending_order() -> None:
    store = a_store(min_part_bytes=0)
    upload_id, (one, two) = upload(store, b"1", b"2")
    for wrong in (
        [],
        [two, one],
        [one, one],
        [StoredPart(3, one.etag, 1)],
        [StoredPart(1, two.etag, 1)],
        [StoredPart(1, one.etag, 2)],
    ):
        with pytest.raises(AssertionError):
            store.complete_upload(B, "out", upload_id, wrong, crc32=None)
    with pytest.raises(AssertionError):
        store.upload_part(B, "out", upload_id, 10_001, b"")
    with pytest.raises(ObjectMissing):
        store.upload_part(B, "another", upload_id, 1, b"")


def test_a_copied_part_is_pinned_to_its_source() -> None:
    store = a_store(min_part_bytes=1)
    source = store.seed("elsewhere", "a", b"012345")
    upload_id = store.create_upload(B, "out")
    parts = [
        store.copy_part(B, "out", upload_id, 1, source, 1, 3),
        store.copy_part(B, "out", upload_id, 2, source, 5, 1),
    ]
    with pytest.raises(AssertionError, match="InvalidRange"):
        store.copy_part(B, "out", upload_id, 3, source, 5, 2)
    store.seed("elsewhere", "a", b"changed")
    with pytest.raises(SourceChanged):
        store.copy_part(B, "out", upload_id, 3, source, 0, 1)
    store.complete_upload(B, "out", upload_id, parts, crc32=None)
    assert store.get(B, "out") == b"1235"


def test_only_the_listed_versions_are_deleted() -> None:
    store = a_store()
    same, changed, gone = (store.seed(B, key, b"old") for key in "abc")
    store.seed(B, "b", b"new")
    store.remove(B, "c")
    refused = Refused("b", "PreconditionFailed", final=True)
    assert store.delete_sources([same, changed, gone]) == Deletion(
        (refused,), absent=frozenset({"c"})
    )
    assert store.contents(B) == {"b": b"new"}


@pytest.mark.parametrize("denied", [False, True])
def test_a_bucket_that_cannot_be_used_is_invalid_input(denied: bool) -> None:
    store = a_store()
    if denied:
        store.denied.add(B)
    name = B if denied else "absent"
    for request in (
        lambda: next(store.list_objects(name, "")),
        lambda: store.head(name, "a"),
        lambda: store.put(name, "a", b""),
    ):
        with pytest.raises(InvalidInput, match=name):
            request()


def test_after_a_crash_before_a_request_it_never_happened_and_nothing_else_does() -> None:
    store = a_store()
    store.hooks.crash("before", "create", nth=2)
    store.create(B, "a", b"")
    with pytest.raises(Crashed):
        store.create(B, "b", b"")
    with pytest.raises(Crashed):
        store.put(B, "c", b"")
    assert list(store.contents(B)) == ["a"]
    store.hooks.clear()
    store.create(B, "b", b"")


def test_after_a_crash_after_a_request_it_did_happen_and_nothing_else_does() -> None:
    store = a_store()
    store.hooks.crash("after", "create")
    with pytest.raises(Crashed):
        store.create(B, "a", b"")
    with pytest.raises(Crashed):
        store.delete_sources([store.seed(B, "s", b"x")])
    assert list(store.contents(B)) == ["a", "s"]


def test_a_hook_may_act_as_another_process_between_two_requests() -> None:
    store = a_store()

    def rival(call: Call) -> None:
        if call == Call("create", B, "a"):
            store.put(B, "a", b"rival")

    store.hooks.before.append(rival)
    with pytest.raises(AlreadyExists):
        store.create(B, "a", b"mine")
    assert store.get(B, "a") == b"rival"
    assert store.snapshot() == {"PUT": 2, "GET": 1, "bytes_read": 5, "bytes_written": 5}
