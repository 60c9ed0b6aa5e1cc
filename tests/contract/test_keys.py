"""Every key that S3 allows, from listing to deletion."""

from __future__ import annotations

import pytest

from compactor.errors import AlreadyExists
from compactor.ports import Deletion
from tests.contract.benches import Bench
from tests.contract.cases import ODD_KEYS, REFUSED, publish, read


@pytest.mark.parametrize("key", ODD_KEYS.values(), ids=ODD_KEYS)
def test_an_odd_key_is_listed_read_copied_and_deleted_as_it_is(bench: Bench, key: str) -> None:
    body = b"body of " + key.encode()
    decoy = bench.seed("a/b", b"another object")
    source = bench.seed(key, body)
    pages = bench.store.list_objects(bench.bucket, "")
    others = [one for page in pages for one in page if one.key != "a/b"]
    assert [one.key for one in others] == [key]
    listed = others[0]
    assert (listed.key, listed.etag, listed.size) == (key, source.etag, len(body))
    assert read(bench.store, listed, decoy) == [body, b"another object"]
    head = bench.store.head(bench.bucket, key)
    assert head is not None
    assert head.etag == source.etag
    assert bench.store.get(bench.bucket, key) == body
    upload_id = bench.store.create_upload(bench.bucket, "copy")
    part = bench.store.copy_part(bench.bucket, "copy", upload_id, 1, listed, 0, len(body))
    bench.store.complete_upload(bench.bucket, "copy", upload_id, [part], crc32=None)
    assert bench.store.delete_sources([listed]) == Deletion()
    assert bench.contents() == {"a/b": b"another object", "copy": body}


@pytest.mark.parametrize("key", ODD_KEYS.values(), ids=ODD_KEYS)
def test_an_odd_key_may_be_that_of_an_output(bench: Bench, key: str) -> None:
    publish(bench, key, b"output")
    with pytest.raises(AlreadyExists):
        bench.store.create(bench.bucket, key, b"other")
    assert b"".join(bench.store.open(bench.bucket, key)) == b"output"
    assert bench.contents() == {key: b"output"}


def test_a_key_of_more_than_1024_bytes_is_refused(bench: Bench) -> None:
    with pytest.raises(REFUSED):
        bench.store.create(bench.bucket, "é" * 512 + "k", b"body")
    assert bench.contents() == {}
