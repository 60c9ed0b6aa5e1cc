"""The work list on S3, the keys of everything, and how a source is divided."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compactor.discovery.discover import discover
from compactor.discovery.work_list import (
    Discovery,
    leave_to_spark,
    oversized_partitions,
    partition_from,
    read_items,
    to_items_json,
    write_work,
)
from compactor.errors import IntegrityError, InvalidInput
from compactor.log.identity import StateIdentity, read_identity
from compactor.model import Partition
from compactor.settings.settings import Settings
from tests.support.memory_store import Call, Crashed, MemoryStore

NOW = 1_770_000_000.0
PARTITION = Partition("source", "logs/d\u00e4y=1/", "d\u00e4y=1/")
RUN = "_compactor/data/runs/run-1/"
ITEM = {"path": PARTITION.path, "bucket": PARTITION.bucket, "prefix": PARTITION.prefix}


def a_store() -> MemoryStore:
    store = MemoryStore()
    store.add_bucket("source")
    store.add_bucket("lake")
    return store


def settings(**given: Any) -> Settings:
    uris = {"s3_source_uri": "s3://source/logs/", "s3_destination_uri": "s3://lake/data/"}
    return Settings.from_input({**uris, **given})


def run(store: MemoryStore, wanted: Settings, run_id: str = "run-1") -> None:
    """What a run does before its first commit."""
    discovery = discover(wanted, store, NOW)
    write_work(discovery, wanted, run_id, store)
    StateIdentity(wanted, store).claim("")


def test_the_list_is_a_json_array_beside_the_settings() -> None:
    store = a_store()
    wanted = settings(depth=1, spark_engine="j-1")
    write_work(Discovery((PARTITION,)), wanted, "run-1", store)
    assert json.loads(store.get("lake", f"{RUN}items.json")) == [ITEM]
    assert list(read_items(store, "lake", f"{RUN}items.json")) == [PARTITION]
    assert Settings.from_input(json.loads(store.get("lake", f"{RUN}settings.json"))) == wanted


def test_what_is_left_to_spark_is_listed_once_however_often_it_is_left() -> None:
    store = a_store()
    other = Partition("source", "logs/b/", "b/")
    assert list(oversized_partitions("lake", RUN, store)) == []
    for partition in (PARTITION, other, PARTITION):
        leave_to_spark(settings(depth=1), "run-1", partition, store)
    assert set(oversized_partitions("lake", RUN, store)) == {PARTITION, other}


def test_no_work_is_an_empty_array() -> None:
    assert json.loads(to_items_json(())) == []


def test_writing_the_lists_again_gives_the_same_lists() -> None:
    store = a_store()
    for _ in range(2):
        write_work(Discovery((PARTITION,)), settings(depth=1), "run-1", store)
    assert list(store.contents("lake")) == [
        "_compactor/data/runs/run-1/discovery.json",
        "_compactor/data/runs/run-1/items.json",
        "_compactor/data/runs/run-1/settings.json",
    ]


def test_a_run_that_commits_nothing_leaves_no_identity() -> None:
    store = a_store()
    discovery = discover(settings(depth=1), store, NOW)
    write_work(discovery, settings(depth=1), "run-1", store)
    run(store, settings(depth=2), "run-2")
    identity = read_identity(settings(depth=2), store)
    assert identity is not None
    assert (identity.source_root, identity.segments) == ("s3://source/logs/", 2)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (None, "item"),
        ([], "item"),
        ({}, "item"),
        ({**ITEM, "more": 1}, "item"),
        ({**ITEM, "path": 3}, "item.path"),
        ({**ITEM, "prefix": None}, "item.prefix"),
    ],
)
def test_what_is_no_partition_is_refused(given: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        partition_from(given)
    assert caught.value.field == field


@pytest.mark.parametrize("run_id", ["", "a/b", "../x", ".hidden", "x" * 129, "a b"])
def test_a_run_id_that_is_no_single_segment_is_refused(run_id: str) -> None:
    with pytest.raises(InvalidInput, match="run_id"):
        write_work(Discovery(), settings(), run_id, a_store())


def test_a_state_bucket_that_may_not_be_written_is_reported_by_its_field() -> None:
    store = a_store()
    store.denied.add("lake")
    with pytest.raises(InvalidInput, match=r"s3_state_uri: .*a role that allows"):
        write_work(Discovery(), settings(), "run-1", store)


def test_every_key_has_its_place() -> None:
    wanted = settings(s3_state_uri="s3://state/x")
    assert wanted.outputs_of(PARTITION) == ("lake", "data/d\u00e4y=1/")
    assert wanted.layout.commits(PARTITION.path) == (
        "state",
        "x/partitions/d\u00e4y=1/commits/",
    )
    assert wanted.layout.commit(PARTITION.path, 12)[1].endswith(
        "/commits/00000000000000000012.json.gz"
    )
    root = Partition("source", "logs/", "")
    assert wanted.layout.commits(root.path)[1] == "x/partitions/commits/"
    assert wanted.layout.receipt("r", root) == (
        "state",
        f"x/runs/r/receipts/{root.id}.json",
    )


def test_receipts_of_partitions_that_read_alike_have_different_keys() -> None:
    alike = [Partition("source", path, path) for path in ("a/b/", "a-b/", "a b/", "")]
    assert len({settings().layout.receipt("r", one) for one in alike}) == len(alike)


DAILY = {"date_format": "%Y/%m/%d"}


@pytest.mark.parametrize(
    ("first", "second", "field"),
    [
        (DAILY, {"date_format": "%Y/%m/%d/%H"}, "date_format"),
        (DAILY, {"date_format": "%Y/%m"}, "date_format"),
        (DAILY, {}, "depth"),
        ({"depth": 1}, {"depth": 2}, "depth"),
        ({"depth": 1}, {"s3_source_uri": "s3://source/logs/web/"}, "s3_source_uri"),
        ({"depth": 1}, {"s3_source_uri": "s3://source/", "depth": 2}, "s3_source_uri"),
        ({"depth": 1}, {"s3_source_uri": "s3://source/other/", "depth": 1}, "s3_source_uri"),
        (
            {"s3_source_uri": "s3://source/*/CloudTrail/", **DAILY},
            {"s3_source_uri": "s3://source/1/CloudTrail/", **DAILY},
            "s3_source_uri",
        ),
        (
            {"s3_state_uri": "s3://lake/state/"},
            {"s3_state_uri": "s3://lake/state/", "s3_destination_uri": "s3://lake/other/"},
            "s3_state_uri",
        ),
    ],
)
def test_a_run_that_would_divide_the_same_source_differently_is_refused(
    first: dict[str, Any], second: dict[str, Any], field: str
) -> None:
    store = a_store()
    run(store, settings(**first))
    before = store.contents("lake")
    with pytest.raises(InvalidInput) as caught:
        run(store, settings(**second), "run-2")
    assert caught.value.field == field
    assert store.contents("lake") == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (DAILY, {**DAILY, "window": "2020-01-01..2020-12-31"}),
        (DAILY, {"depth": 3}),
        (
            {"s3_source_uri": "s3://source/*/CloudTrail/*/", **DAILY},
            {"s3_source_uri": "s3://source/*/Config/*/", **DAILY},
        ),
        ({"depth": 1}, {"depth": 2, "s3_destination_uri": "s3://lake/finer/"}),
    ],
)
def test_runs_that_cannot_disagree_about_any_object_share_a_destination(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    store = a_store()
    for number, given in enumerate((first, second, first, second)):
        run(store, settings(**given), f"run-{number}")
    places = {settings(**given).s3_destination_uri for given in (first, second)}
    assert store.count("create") == len(places)


def test_of_two_concurrent_first_runs_that_disagree_only_one_goes_on() -> None:
    store = a_store()

    def rival(call: Call) -> None:
        if call.name == "create":
            store.hooks.clear()
            run(store, settings(depth=2), "rival")

    store.hooks.before.append(rival)
    with pytest.raises(InvalidInput, match=r"depth: 1 .*s3://source/logs/\*/\*/"):
        run(store, settings(depth=1))


def test_a_run_that_died_after_creating_the_identity_can_be_repeated() -> None:
    store = a_store()
    store.hooks.crash("after", "create")
    with pytest.raises(Crashed):
        run(store, settings(depth=1))
    store.hooks.clear()
    run(store, settings(depth=1), "run-2")
    assert store.count("create") == 1


@pytest.mark.parametrize("body", [b"", b"[]", b'{"version": 2}', b'{"version": 1, "log_id": 7}'])
def test_an_identity_changed_by_hand_halts_the_run(body: bytes) -> None:
    store = a_store()
    store.seed(*settings().layout.identity, body)
    with pytest.raises(IntegrityError, match=r"identity\.json"):
        run(store, settings())
