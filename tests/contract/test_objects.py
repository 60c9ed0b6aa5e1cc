"""Single objects: state, receipts, the commit log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from compactor.errors import AlreadyExists, InvalidInput, ObjectMissing
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from tests.contract.benches import Bench
from tests.contract.cases import LARGE, MIB, at_once


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


def test_what_is_missing_is_reported(bench: Bench) -> None:
    store, bucket = bench.store, bench.bucket
    assert store.head(bucket, "k") is None
    store.put(bucket, "there", b"bytes")
    for ask in (
        lambda: store.get(bucket, "k"),
        lambda: store.get_range(bucket, "k", 0, 1),
        lambda: store.get_range(bucket, "there", 5, 1),
        lambda: list(store.open(bucket, "k")),
    ):
        with pytest.raises(ObjectMissing):
            ask()


def test_create_does_not_write_over_anything(bench: Bench) -> None:
    bench.store.create(bench.bucket, "k", b"first", content_type="application/json")
    with pytest.raises(AlreadyExists):
        bench.store.create(bench.bucket, "k", b"second")
    assert bench.contents() == {"k": b"first"}


def test_replace_writes_over_what_was_read_alone(bench: Bench) -> None:
    store, bucket = bench.store, bench.bucket
    first = bench.seed("k", b"first").etag
    store.replace(bucket, "k", b"second", etag=first, content_type="application/json")
    with pytest.raises(AlreadyExists):
        store.replace(bucket, "k", b"third", etag=first)
    assert bench.contents() == {"k": b"second"}


def test_what_is_not_there_is_not_replaced(bench: Bench) -> None:
    with pytest.raises(ObjectMissing):
        bench.store.replace(bench.bucket, "k", b"first", etag="d41d8cd98f00b204e9800998ecf8427e")
    assert bench.contents() == {}


def test_of_many_replacements_concurrently_one_wins(bench: Bench) -> None:
    store, bucket = bench.store, bench.bucket
    etag = bench.seed("k", b"first").etag

    def replace(number: int) -> None:
        store.replace(bucket, "k", f"{number}".encode(), etag=etag)

    said = at_once(*(partial(replace, number) for number in range(8)))

    won = [number for number, error in enumerate(said) if not error]
    assert [f"{number}".encode() for number in won] == [*bench.contents().values()]
    assert {*said} == {"", "AlreadyExists"}


def test_head_returns_size_etag_and_time(bench: Bench) -> None:
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


def test_of_many_creations_of_one_key_concurrently_exactly_one_wins(bench: Bench) -> None:
    bodies = [b"%d" % number for number in range(6)]
    said = at_once(*(partial(bench.store.create, bench.bucket, "k", body) for body in bodies))
    # S3 may answer 409 to one that came while another was at work, which asks for another try.
    assert {*said} <= {"", "AlreadyExists", "TransientStoreError"}
    assert said.count("") == 1
    assert bench.contents() == {"k": bodies[said.index("")]}


def test_a_key_whose_object_was_deleted_can_be_created_again(bench: Bench) -> None:
    bench.store.create(bench.bucket, "k", b"first")
    bench.remove("k")
    bench.store.create(bench.bucket, "k", b"second")
    assert bench.contents() == {"k": b"second"}
