"""Uploads: invisible until they are completed, and completed once."""

from __future__ import annotations

import zlib
from contextlib import suppress
from functools import partial

import pytest

from compactor.errors import AlreadyExists, ObjectMissing
from tests.contract.benches import Bench
from tests.contract.cases import MIB, at_once, keys_of, publish, read, upload


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


def test_the_head_of_an_output_has_the_metadata_it_was_begun_with(bench: Bench) -> None:
    names = {"compactor-log": "0" * 32, "compactor-group": "f" * 32}
    upload_id = bench.store.create_upload(bench.bucket, "out", metadata=names)
    part = bench.store.upload_part(bench.bucket, "out", upload_id, 1, b"234")
    bench.store.complete_upload(bench.bucket, "out", upload_id, [part], crc32=None)
    head = bench.store.head(bench.bucket, "out")
    assert head is not None
    assert head.metadata == names
    bench.seed("other", b"")
    other = bench.store.head(bench.bucket, "other")
    assert other is not None
    assert other.metadata == {}


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


def test_an_upload_that_is_gone_takes_no_part_and_cannot_be_completed(bench: Bench) -> None:
    store, bucket = bench.store, bench.bucket
    upload_id, parts = upload(bench, "out", b"output")
    store.abort_upload(bucket, "out", upload_id)
    with pytest.raises(ObjectMissing):
        store.upload_part(bucket, "out", upload_id, 2, b"more")
    with pytest.raises(ObjectMissing):
        store.complete_upload(bucket, "out", upload_id, parts, crc32=zlib.crc32(b"output"))
    assert bench.contents() == {}


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


def test_of_many_uploads_for_one_key_concurrently_exactly_one_is_published(bench: Bench) -> None:
    bodies = [b"output %d" % number for number in range(5)]
    uploads = [upload(bench, "out", body) for body in bodies]
    said = at_once(
        *(
            partial(
                bench.store.complete_upload,
                bench.bucket,
                "out",
                upload_id,
                parts,
                crc32=zlib.crc32(body),
            )
            for (upload_id, parts), body in zip(uploads, bodies, strict=True)
        )
    )
    assert {*said} <= {"", "AlreadyExists", "TransientStoreError", "ObjectMissing"}
    assert said.count("") == 1
    assert bench.contents() == {"out": bodies[said.index("")]}


def test_many_open_uploads_are_listed_page_by_page(bench: Bench) -> None:
    keys = ["p/a", "p/b", "p/b", "p/b", "p/c d", "p/e", "q/a"]
    ids = [bench.store.create_upload(bench.bucket, key) for key in keys]
    expected = sorted(zip(keys, ids, strict=True))[:-1]
    for size in (1, 2, 4):
        with bench.pages_of(size):
            listed = [*bench.store.list_uploads(bench.bucket, "p/")]
        assert sorted((one.key, one.upload_id) for one in listed) == expected


def test_a_published_output_is_not_overwritten_by_a_put_that_asks_for_absence(
    bench: Bench,
) -> None:
    publish(bench, "out", b"output")
    with pytest.raises(AlreadyExists):
        bench.store.create(bench.bucket, "out", b"other")
    assert bench.contents() == {"out": b"output"}
