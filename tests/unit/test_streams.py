"""Whose an object is: the partition that its key names is the one that discovery finds by LIST."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.discovery.discover import discover
from compactor.errors import InvalidInput
from compactor.registry.streams import PartitionScheme, parse_streams
from compactor.settings.settings import Settings
from tests.support.examples import NOW
from tests.support.memory_store import ManualClock, MemoryStore

URIS = {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/compacted/"}

_SEGMENT = st.sampled_from(
    ["a", "b1", "b2", "2026", "01", "12", "31", "1", "dt=2026-01-02", "2025", "365", "x=1", "366"]
)
_KEY = st.lists(_SEGMENT, min_size=1, max_size=5).map("/".join)
_SCHEMES: list[dict[str, Any]] = [
    {"depth": 0},
    {"depth": 2},
    {"s3_source_uri": "s3://source/logs/b*/", "depth": 1},
    {"s3_source_uri": "s3://source/logs/*/2026/"},
    {"date_format": "%Y/%m/%d", "window": "2025-01-01..2026-12-31"},
    {"date_format": "dt=%Y-%m-%d", "window": "2025-01-01..2026-12-31"},
    {"date_format": "%Y/%j", "window": "2025-01-01..2026-12-31"},
    {"date_format": "%Y/%m", "s3_source_uri": "s3://source/logs/*/", "window": "2025-01-01..today"},
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(_SCHEMES), st.sets(_KEY, min_size=1, max_size=12))
def test_a_key_is_of_the_partition_that_discovery_finds(
    scheme: dict[str, Any], keys: set[str]
) -> None:
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    for key in keys:
        store.seed("source", f"logs/{key}", b"{}\n", last_modified=NOW - 86_400)
    found = Settings.from_input({**URIS, **scheme, "settle_seconds": 0})
    by_list = {
        one.path: sum(len(page) for page in store.list_objects(one.bucket, one.prefix))
        for one in discover(found, store, NOW).partitions
    }
    by_key: dict[str, int] = {}
    events = {name: value for name, value in scheme.items() if name != "window"}
    stream = Settings.from_input({**URIS, **events, "listing": "events:tab/s"})
    for key in keys:
        partition = PartitionScheme(stream).partition("source", f"logs/{key}")
        if partition is not None:
            assert partition.prefix == f"logs/{partition.path}"
            by_key[partition.path] = by_key.get(partition.path, 0) + 1
    assert by_key == by_list


def scheme(**given: Any) -> PartitionScheme:
    return PartitionScheme(Settings.from_input({**URIS, "listing": "events:tab/s", **given}))


@pytest.mark.parametrize(
    "key",
    ["2026/02/30/a", "2026/1/02/a", "2026/01/02", "20260/01/02/a", "x/01/02/a", "0000/01/01/a"],
)
def test_a_key_of_no_day_is_of_no_partition(key: str) -> None:
    assert scheme(date_format="%Y/%m/%d").partition("source", f"logs/{key}") is None


def test_other_buckets_and_prefixes_are_of_no_partition() -> None:
    assert scheme().partition("other", "logs/a") is None
    assert scheme().partition("source", "log/a") is None
    assert scheme(depth=1).partition("source", f"logs/{'x' * 901}/a") is None


STREAM = {"name": "logs", "input": dict(URIS)}


def test_streams_have_their_defaults_and_their_table() -> None:
    (found,) = parse_streams(json.dumps([STREAM]), "tab")
    assert (found.objects, found.bytes, found.seconds) == (10_000, 2**30, 900)
    assert found.settings.listing == "events:tab/logs"
    assert Settings.from_input(json.loads(found.document)) == found.settings
    assert found.document == parse_streams(json.dumps([STREAM]), "tab")[0].document


@pytest.mark.parametrize(
    "given_",
    [
        [],
        {},
        [1],
        [STREAM, STREAM],
        [{**STREAM, "name": "a b"}],
        [{**STREAM, "name": "a" * 41}],
        [{**STREAM, "objects": 0}],
        [{**STREAM, "seconds": "900"}],
        [{**STREAM, "input": "s3://x"}],
        [{**STREAM, "more": 1}],
        [{"name": "logs", "input": {**URIS, "date_format": "%Y", "window": "3d"}}],
    ],
)
def test_streams_that_are_invalid_are_refused_in_one_line(given_: object) -> None:
    with pytest.raises(InvalidInput):
        parse_streams(json.dumps(given_), "tab")
    with pytest.raises(InvalidInput, match="STREAMS"):
        parse_streams("no json", "tab")
