"""Tags: what an object has is returned, and replaced as a whole."""

from __future__ import annotations

import pytest

from compactor.errors import ObjectMissing
from tests.contract.benches import Bench

TAGS = {"team": "data + ops", "s3-compactor": "superseded"}


@pytest.mark.parametrize("key", ["day=1/a", "p=a%20b/x y+ü.parquet"])
def test_tags_are_returned_as_they_were_put_and_replaced_as_a_whole(bench: Bench, key: str) -> None:
    listed = bench.seed(key)
    assert bench.store.tags(bench.bucket, key) == {}
    bench.store.put_tags(bench.bucket, key, TAGS)
    assert bench.store.tags(bench.bucket, key) == TAGS
    bench.store.put_tags(bench.bucket, key, {"team": "ops"})
    assert bench.store.tags(bench.bucket, key) == {"team": "ops"}
    bench.store.put_tags(bench.bucket, key, {})
    assert bench.store.tags(bench.bucket, key) == {}
    ((found,),) = (page for page in bench.store.list_objects(bench.bucket, key) if page)
    assert found.etag == listed.etag
    assert bench.contents() == {key: b"content"}


def test_who_is_not_there_has_no_tags(bench: Bench) -> None:
    with pytest.raises(ObjectMissing):
        bench.store.tags(bench.bucket, "none")
    with pytest.raises(ObjectMissing):
        bench.store.put_tags(bench.bucket, "none", TAGS)
    assert bench.contents() == {}
