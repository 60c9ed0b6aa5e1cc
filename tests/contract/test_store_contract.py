"""What every store does alike, in memory and on a server."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from compactor.errors import (
    AlreadyExists,
    IntegrityError,
    InvalidInput,
    ObjectMissing,
    SourceChanged,
)
from compactor.model import SourceObject, StoredPart
from compactor.ports import ObjectStore, SourceBody
from tests.contract.conftest import Bench

MIB = 1024 * 1024
# More than any store holds whole.
LARGE = bytes(range(256)) * (9 * MIB // 256) + b"the end"
ODD_KEYS = (
    "a//b",
    "/a",
    "a/./b",
    "a/../b",
    "../a",
    "a/..",
    "a/...",
    "x/",
    "a b c/ d",
    "a+b",
    "a%2Fb",
    "100%",
    "é/日本/😀",
    "q?x=1&y=2#z",
    "<a>&amp;'\"",
    "back\\slash",
    "[a]{b}^`|~",
    "tab\there",
    "return\rhere",
    "bell\x07here",
    "delete\x7fhere",
    "k" * 900,
    "é" * 450,
    "long/" * 180,
)


def keys_of(pages: Any) -> list[str]:
    return [one.key for page in pages for one in page]


def content_of(body: SourceBody) -> bytes:
    if body.error is not None:
        raise body.error
    if body.content is not None:
        return body.content
    assert body.chunks is not None
    return b"".join(body.chunks())


def read(store: ObjectStore, *sources: SourceObject) -> list[bytes]:
    return [content_of(body) for body in store.read_sources(sources)]


def upload(bench: Bench, key: str, *bodies: bytes) -> tuple[str, list[StoredPart]]:
    upload_id = bench.store.create_upload(bench.bucket, key)
    numbered = enumerate(bodies, start=1)
    parts = [bench.store.upload_part(bench.bucket, key, upload_id, n, b) for n, b in numbered]
    return upload_id, parts


def publish(bench: Bench, key: str, *bodies: bytes) -> None:
    upload_id, parts = upload(bench, key, *bodies)
    crc32 = zlib.crc32(b"".join(bodies))
    bench.store.complete_upload(bench.bucket, key, upload_id, parts, crc32=crc32)


# Listings.


def test_a_listing_is_in_utf8_order_and_tells_key_etag_size_and_time(bench: Bench) -> None:
    names = ["b", "a/b", "a", "a.b", "a0", "é", "\uffee", "😀", "Z"]
    seeded = {name: bench.seed(name, name.encode() * 3) for name in names}
    found = [one for page in bench.store.list_objects(bench.bucket, "") for one in page]
    assert [one.key for one in found] == sorted(names, key=str.encode)
    for one in found:
        expected = seeded[one.key]
        assert (one.bucket, one.etag, one.size) == (bench.bucket, expected.etag, expected.size)
        assert one.last_modified == pytest.approx(expected.last_modified, abs=1)
        assert one.storage_class == "STANDARD"


def test_a_listing_keeps_to_its_prefix_and_starts_behind_a_key(bench: Bench) -> None:
    for name in ("day=1/a", "day=1/b", "day=1/c", "day=10/a", "day=2/a", "day=1"):
        bench.seed(name)
    listed = bench.store.list_objects
    assert keys_of(listed(bench.bucket, "day=1/")) == ["day=1/a", "day=1/b", "day=1/c"]
    behind = listed(bench.bucket, "day=1/", start_after="day=1/a")
    assert keys_of(behind) == ["day=1/b", "day=1/c"]
    between = listed(bench.bucket, "day=1/", start_after="day=1/aa")
    assert keys_of(between) == ["day=1/b", "day=1/c"]
    assert keys_of(listed(bench.bucket, "day=1/", start_after="day=1/c")) == []
    assert keys_of(listed(bench.bucket, "nothing/")) == []


def test_a_long_listing_comes_in_pages_without_gap_or_repetition(bench: Bench) -> None:
    names = [f"n/{number:04}" for number in range(2_003)]
    bench.seed_many(names)
    pages = list(bench.store.list_objects(bench.bucket, "n/"))
    assert keys_of(pages) == names
    assert len(pages) == 3
    behind = bench.store.list_objects(bench.bucket, "n/", start_after=names[500])
    assert keys_of(behind) == names[501:]


def test_one_level_shows_objects_directly_below_and_each_prefix_once(bench: Bench) -> None:
    for name in ("p/a", "p/b/1", "p/b/2", "p/c d/1", "p/é+%/1", "p//x", "p/z", "q/a", "p"):
        bench.seed(name)
    pages = list(bench.store.list_level(bench.bucket, "p/"))
    assert [one.key for page in pages for one in page.objects] == ["p/a", "p/z"]
    prefixes = [prefix for page in pages for prefix in page.prefixes]
    assert prefixes == ["p//", "p/b/", "p/c d/", "p/é+%/"]
    top = list(bench.store.list_level(bench.bucket, ""))
    assert [prefix for page in top for prefix in page.prefixes] == ["p/", "q/"]
    assert [one.key for page in top for one in page.objects] == ["p"]


def test_a_long_level_comes_in_pages_without_gap_or_repetition(bench: Bench) -> None:
    bench.seed_many(f"l/{number:04}/x" for number in range(1_100))
    bench.seed_many(f"l/{number:04}" for number in range(0, 1_100, 10))
    pages = list(bench.store.list_level(bench.bucket, "l/"))
    prefixes = [prefix for page in pages for prefix in page.prefixes]
    assert prefixes == [f"l/{number:04}/" for number in range(1_100)]
    objects = [one.key for page in pages for one in page.objects]
    assert objects == [f"l/{number:04}" for number in range(0, 1_100, 10)]
    assert len(pages) > 1


# Sources.


def test_sources_come_in_the_order_asked_for_whatever_their_size(bench: Bench) -> None:
    bodies = {f"k{n:02}": bytes([n]) * (n % 7 * 1_000) for n in range(40)} | {"k99": LARGE}
    sources = [bench.seed(key, body) for key, body in bodies.items()]
    sources = sources[::-2] + sources[::2]
    assert [body.source for body in bench.store.read_sources(sources)] == sources
    assert read(bench.store, *sources) == [bodies[source.key] for source in sources]


def test_a_large_source_comes_in_chunks_of_bounded_size(bench: Bench) -> None:
    large, small = bench.seed("large", LARGE), bench.seed("small")
    for body in bench.store.read_sources([large, small]):
        if body.source == small:
            assert body.content == b"content"
            continue
        assert body.content is None
        assert body.chunks is not None
        chunks = list(body.chunks())
        assert b"".join(chunks) == LARGE
        assert max(map(len, chunks)) <= 8 * MIB


def test_a_source_of_no_bytes_costs_no_request(bench: Bench) -> None:
    empty = bench.seed("empty", b"")
    before = dict(bench.store.requests.snapshot())
    assert read(bench.store, empty) == [b""]
    assert dict(bench.store.requests.snapshot()) == before


@pytest.mark.parametrize("new", [b"changed", b"longer than before", b"", None])
def test_a_source_that_changed_or_went_is_told_in_its_place(
    bench: Bench, new: bytes | None
) -> None:
    first, second, third = (bench.seed(key, b"content") for key in ("a", "b", "c"))
    if new is None:
        bench.remove("b")
    else:
        bench.seed("b", new)
    bodies = list(bench.store.read_sources([first, second, third]))
    assert [body.source for body in bodies] == [first, second, third]
    assert [body.content for body in bodies] == [b"content", None, b"content"]
    error = bodies[1].error
    assert isinstance(error, SourceChanged)
    assert (error.key, error.etag) == ("b", second.etag)
    assert bodies[0].error is bodies[2].error is None


@pytest.mark.parametrize("gone", [True, False])
def test_a_large_source_that_changed_or_went_gives_no_byte(bench: Bench, gone: bool) -> None:
    large = bench.seed("large", LARGE)
    if gone:
        bench.remove("large")
    else:
        bench.seed("large", b"x" + LARGE[1:])
    (body,) = bench.store.read_sources([large])
    with pytest.raises(SourceChanged):
        content_of(body)


@pytest.mark.parametrize("key", ODD_KEYS)
def test_an_odd_key_is_listed_read_copied_and_deleted_as_it_is(bench: Bench, key: str) -> None:
    body = b"body of " + key.encode()
    decoy = bench.seed("a/b", b"another object")
    source = bench.seed(key, body)
    (listed,) = (
        one
        for page in bench.store.list_objects(bench.bucket, "")
        for one in page
        if one.key != "a/b"
    )
    assert (listed.key, listed.etag, listed.size) == (key, source.etag, len(body))
    assert read(bench.store, listed, decoy) == [body, b"another object"]
    head = bench.store.head(bench.bucket, key)
    assert head is not None
    assert head.etag == source.etag
    assert bench.store.get(bench.bucket, key) == body
    upload_id = bench.store.create_upload(bench.bucket, "copy")
    part = bench.store.copy_part(bench.bucket, "copy", upload_id, 1, listed, 0, len(body))
    bench.store.complete_upload(bench.bucket, "copy", upload_id, [part], crc32=None)
    assert list(bench.store.delete_sources([listed])) == []
    assert bench.contents() == {"a/b": b"another object", "copy": body}


# moto answers CreateMultipartUpload in XML that it cannot write for a control character.
@pytest.mark.parametrize("key", [key for key in ODD_KEYS if "\x07" not in key])
def test_an_odd_key_may_be_that_of_an_output(bench: Bench, key: str) -> None:
    publish(bench, key, b"output")
    with pytest.raises(AlreadyExists):
        bench.store.create(bench.bucket, key, b"other")
    assert b"".join(bench.store.open(bench.bucket, key)) == b"output"
    assert bench.contents() == {key: b"output"}


# Single objects.


def test_what_is_put_can_be_got_whole_in_part_and_in_pieces(bench: Bench) -> None:
    store, bucket = bench.store, bench.bucket
    store.put(bucket, "k", b"first", content_type="application/json")
    store.put(bucket, "k", LARGE)
    assert store.get(bucket, "k") == LARGE
    assert store.get_range(bucket, "k", 5, 10) == LARGE[5:15]
    assert store.get_range(bucket, "k", len(LARGE) - 3, 3) == b"end"
    pieces = list(store.open(bucket, "k"))
    assert b"".join(pieces) == LARGE
    assert max(map(len, pieces)) <= MIB


def test_what_is_missing_is_told(bench: Bench) -> None:
    store, bucket = bench.store, bench.bucket
    assert store.head(bucket, "k") is None
    for ask in (
        lambda: store.get(bucket, "k"),
        lambda: store.get_range(bucket, "k", 0, 1),
        lambda: list(store.open(bucket, "k")),
    ):
        with pytest.raises(ObjectMissing):
            ask()


def test_create_does_not_write_over_anything(bench: Bench) -> None:
    bench.store.create(bench.bucket, "k", b"first", content_type="application/json")
    with pytest.raises(AlreadyExists):
        bench.store.create(bench.bucket, "k", b"second")
    assert bench.contents() == {"k": b"first"}


def test_head_tells_size_etag_and_time(bench: Bench) -> None:
    seeded = bench.seed("k", b"12345")
    head = bench.store.head(bench.bucket, "k")
    assert head is not None
    assert (head.size, head.etag, head.storage_class) == (5, seeded.etag, "STANDARD")
    assert head.last_modified == pytest.approx(seeded.last_modified, abs=1)


Request = Callable[[ObjectStore, str], object]
ON_A_BUCKET: dict[str, Request] = {
    "list_objects": lambda store, bucket: list(store.list_objects(bucket, "")),
    "list_level": lambda store, bucket: list(store.list_level(bucket, "")),
    "get": lambda store, bucket: store.get(bucket, "k"),
    "get_range": lambda store, bucket: store.get_range(bucket, "k", 0, 1),
    "open": lambda store, bucket: list(store.open(bucket, "k")),
    "put": lambda store, bucket: store.put(bucket, "k", b""),
    "create": lambda store, bucket: store.create(bucket, "k", b""),
    "create_upload": lambda store, bucket: store.create_upload(bucket, "k"),
    "list_uploads": lambda store, bucket: list(store.list_uploads(bucket, "")),
    "delete_sources": lambda store, bucket: store.delete_sources(
        [SourceObject(bucket, "k", "etag", 1, 0.0)]
    ),
}


@pytest.mark.parametrize("request_", ON_A_BUCKET.values(), ids=ON_A_BUCKET)
def test_a_bucket_that_does_not_exist_is_the_callers_mistake(
    bench: Bench, request_: Request
) -> None:
    with pytest.raises(InvalidInput, match="no-such-bucket") as caught:
        request_(bench.store, "no-such-bucket")
    assert caught.value.field == "bucket"


# Uploads.


def test_an_upload_cannot_be_seen_before_it_is_completed(bench: Bench) -> None:
    first, second = b"a" * (5 * MIB), b"bc"
    upload_id, parts = upload(bench, "out", first, second)
    assert [(part.number, part.size) for part in parts] == [(1, 5 * MIB), (2, 2)]
    assert keys_of(bench.store.list_objects(bench.bucket, "")) == []
    assert bench.store.head(bench.bucket, "out") is None
    assert bench.contents() == {}
    crc32 = zlib.crc32(first + second)
    bench.store.complete_upload(bench.bucket, "out", upload_id, parts, crc32=crc32)
    assert bench.contents() == {"out": first + second}
    assert bench.uploads() == set()


def test_the_head_of_an_output_has_the_checksum_of_the_whole(bench: Bench) -> None:
    bodies = b"a" * (5 * MIB), b"bc"
    publish(bench, "out", *bodies)
    head = bench.store.head(bench.bucket, "out")
    assert head is not None
    assert head.size == 5 * MIB + 2
    assert head.crc32 == zlib.crc32(b"".join(bodies))
    (listed,) = (one for page in bench.store.list_objects(bench.bucket, "") for one in page)
    assert (listed.etag, listed.size) == (head.etag, head.size)
    assert listed.etag.endswith("-2")
    assert read(bench.store, listed) == [b"".join(bodies)]


def test_a_part_may_be_a_view_of_memory(bench: Bench) -> None:
    upload_id = bench.store.create_upload(bench.bucket, "out", content_type="text/plain")
    view = memoryview(b"0123456789")[2:5]
    part = bench.store.upload_part(bench.bucket, "out", upload_id, 1, view)
    bench.store.complete_upload(bench.bucket, "out", upload_id, [part], crc32=zlib.crc32(b"234"))
    assert bench.contents() == {"out": b"234"}


def test_completing_on_a_key_that_is_taken_changes_nothing(bench: Bench) -> None:
    upload_id, parts = upload(bench, "out", b"late")
    bench.seed("out", b"early")
    crc32 = zlib.crc32(b"late")
    for _ in range(2):
        with pytest.raises(AlreadyExists):
            bench.store.complete_upload(bench.bucket, "out", upload_id, parts, crc32=crc32)
    assert bench.contents() == {"out": b"early"}
    bench.store.abort_upload(bench.bucket, "out", upload_id)
    assert bench.uploads() == set()


def test_completing_twice_leaves_one_output(bench: Bench) -> None:
    upload_id, parts = upload(bench, "out", b"output")
    crc32 = zlib.crc32(b"output")
    bench.store.complete_upload(bench.bucket, "out", upload_id, parts, crc32=crc32)
    # S3 may answer as it did before, that the key is taken, or that there is no such upload.
    with suppress(AlreadyExists, ObjectMissing):
        bench.store.complete_upload(bench.bucket, "out", upload_id, parts, crc32=crc32)
    assert bench.contents() == {"out": b"output"}


def test_an_upload_that_is_gone_takes_no_part_and_cannot_be_completed(strict_bench: Bench) -> None:
    store, bucket = strict_bench.store, strict_bench.bucket
    upload_id, parts = upload(strict_bench, "out", b"output")
    store.abort_upload(bucket, "out", upload_id)
    with pytest.raises(ObjectMissing):
        store.upload_part(bucket, "out", upload_id, 2, b"more")
    with pytest.raises(ObjectMissing):
        store.complete_upload(bucket, "out", upload_id, parts, crc32=zlib.crc32(b"output"))
    assert strict_bench.contents() == {}


def test_aborting_twice_is_no_error(bench: Bench) -> None:
    upload_id, _ = upload(bench, "out", b"output")
    bench.store.abort_upload(bench.bucket, "out", upload_id)
    bench.store.abort_upload(bench.bucket, "out", upload_id)
    assert bench.uploads() == set()


def test_open_uploads_are_listed_until_they_are_completed_or_aborted(bench: Bench) -> None:
    store, bucket = bench.store, bench.bucket
    completed, parts = upload(bench, "p/out-1", b"output")
    aborted, _ = upload(bench, "p/out-1", b"output")
    kept, _ = upload(bench, "p/out-2 é%2F+", b"output")
    upload(bench, "q/out", b"output")
    listed = {(one.key, one.upload_id) for one in store.list_uploads(bucket, "p/out-")}
    assert listed == {
        ("p/out-1", completed),
        ("p/out-1", aborted),
        ("p/out-2 é%2F+", kept),
    }
    store.complete_upload(bucket, "p/out-1", completed, parts, crc32=zlib.crc32(b"output"))
    store.abort_upload(bucket, "p/out-1", aborted)
    assert [one.upload_id for one in store.list_uploads(bucket, "p/out-")] == [kept]
    assert list(store.list_uploads(bucket, "nothing/")) == []


def test_aborting_a_published_output_leaves_it(bench: Bench) -> None:
    upload_id, parts = upload(bench, "out", b"output")
    bench.store.complete_upload(bench.bucket, "out", upload_id, parts, crc32=zlib.crc32(b"output"))
    bench.store.abort_upload(bench.bucket, "out", upload_id)
    assert bench.contents() == {"out": b"output"}


def test_parts_may_be_ranges_of_a_source(bench: Bench) -> None:
    source = bench.seed("large", LARGE)
    upload_id = bench.store.create_upload(bench.bucket, "out")
    cut = 5 * MIB
    ranges = ((0, cut), (cut, len(LARGE) - cut))
    parts = [
        bench.store.copy_part(bench.bucket, "out", upload_id, n, source, start, length)
        for n, (start, length) in enumerate(ranges, start=1)
    ]
    assert [(part.number, part.size) for part in parts] == [(1, cut), (2, len(LARGE) - cut)]
    bench.store.complete_upload(bench.bucket, "out", upload_id, parts, crc32=None)
    assert bench.contents()["out"] == LARGE


def test_a_source_that_is_gone_cannot_be_copied(bench: Bench) -> None:
    source = bench.seed("large", b"content")
    bench.remove("large")
    upload_id = bench.store.create_upload(bench.bucket, "out")
    with pytest.raises(SourceChanged):
        bench.store.copy_part(bench.bucket, "out", upload_id, 1, source, 0, 7)


def test_a_source_that_changed_cannot_be_copied(strict_bench: Bench) -> None:
    source = strict_bench.seed("large", b"content")
    strict_bench.seed("large", b"another")
    upload_id = strict_bench.store.create_upload(strict_bench.bucket, "out")
    with pytest.raises(SourceChanged):
        strict_bench.store.copy_part(strict_bench.bucket, "out", upload_id, 1, source, 0, 7)


def test_a_wrong_checksum_keeps_the_output_from_being_published(strict_bench: Bench) -> None:
    upload_id, parts = upload(strict_bench, "out", b"output")
    with pytest.raises(IntegrityError):
        strict_bench.store.complete_upload(strict_bench.bucket, "out", upload_id, parts, crc32=1)
    assert strict_bench.contents() == {}


# Deletes.


def delete(bench: Bench, *sources: SourceObject) -> Sequence[tuple[str, str]]:
    return bench.store.delete_sources(sources)


def test_exactly_the_named_sources_are_deleted(bench: Bench) -> None:
    sources = [bench.seed(f"day=1/{n}") for n in range(5)]
    bench.remove(sources[2].key)
    assert list(delete(bench, *sources[1:4])) == [], "one already gone counts as deleted"
    assert set(bench.contents()) == {"day=1/0", "day=1/4"}
    assert list(delete(bench)) == []


def test_more_sources_than_one_request_takes_are_deleted(bench: Bench) -> None:
    kept = bench.seed("kept")
    bench.seed_many(f"s/{number:04}" for number in range(1_001))
    pages = bench.store.list_objects(bench.bucket, "s/")
    sources = [one for page in pages for one in page]
    assert len(sources) == 1_001
    assert list(delete(bench, *sources)) == []
    assert set(bench.contents()) == {kept.key}


def test_a_source_that_changed_is_not_deleted(strict_bench: Bench) -> None:
    first, second = strict_bench.seed("a"), strict_bench.seed("b")
    strict_bench.seed("a", b"new content")
    ((key, reason),) = delete(strict_bench, first, second)
    assert (key, "PreconditionFailed" in reason) == ("a", True)
    assert strict_bench.contents() == {"a": b"new content"}


def test_a_changed_source_whose_key_no_xml_may_hold_is_not_deleted(bench: Bench) -> None:
    first, second = bench.seed("a\x01"), bench.seed("b\x02")
    bench.seed("a\x01", b"new content")
    ((key, reason),) = delete(bench, first, second)
    assert (key, "PreconditionFailed" in reason) == ("a\x01", True)
    assert bench.contents() == {"a\x01": b"new content"}
