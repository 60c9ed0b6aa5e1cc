"""Versioned buckets: what a reader sees, and what stays."""

from __future__ import annotations

import pytest

from compactor.errors import SourceChanged
from compactor.ports import Deletion
from tests.contract.benches import Bench
from tests.contract.cases import read


def test_in_a_versioned_bucket_a_delete_puts_a_marker_and_keeps_the_version(
    bench: Bench,
) -> None:
    bench.keep_versions()
    first, second = bench.seed("a", b"first"), bench.seed("b", b"second")
    deletion = bench.store.delete_sources([first, second])
    assert deletion == Deletion((), markers=2)
    assert bench.contents() == {}
    assert bench.versions("a") == {b"first"}
    assert bench.store.head(bench.bucket, "a") is None
    with pytest.raises(SourceChanged):
        read(bench.store, first)


def test_in_a_versioned_bucket_only_the_current_version_counts(bench: Bench) -> None:
    bench.keep_versions()
    old = bench.seed("a", b"old")
    new = bench.seed("a", b"new")
    with pytest.raises(SourceChanged):
        read(bench.store, old)
    assert read(bench.store, new) == [b"new"]
    assert bench.versions("a") == {b"old", b"new"}


def test_in_a_versioned_bucket_an_overwritten_source_is_not_deleted(bench: Bench) -> None:
    bench.keep_versions()
    old = bench.seed("a", b"old")
    bench.seed("a", b"new")
    refused = bench.store.delete_sources([old]).refused
    assert [(one.key, one.final) for one in refused] == [("a", True)]
    assert bench.contents() == {"a": b"new"}


def test_in_a_versioned_bucket_a_source_under_a_marker_counts_as_gone(bench: Bench) -> None:
    bench.keep_versions()
    source = bench.seed("a")
    bench.remove("a")
    deletion = bench.store.delete_sources([source])
    assert (deletion.refused, deletion.markers) == ((), 0)
    assert bench.versions("a") == {b"content"}


def test_in_a_versioned_bucket_a_deleted_key_can_be_created_again(bench: Bench) -> None:
    bench.keep_versions()
    bench.store.create(bench.bucket, "a", b"first")
    bench.remove("a")
    bench.store.create(bench.bucket, "a", b"second")
    assert bench.contents() == {"a": b"second"}
