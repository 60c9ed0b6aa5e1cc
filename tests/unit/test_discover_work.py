"""The lists of work items on S3, the keys of everything, and the scheme of the partitions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compactor import layout
from compactor.discovery.discover import discover, write_work
from compactor.discovery.work_items import Discovery, WorkItem, to_items_json
from compactor.errors import IntegrityError, InvalidInput
from compactor.log.encoding import encode_commit
from compactor.log.entries import Commit
from compactor.log.identity import claim_identity
from compactor.log.schemes import remember_scheme
from compactor.model import Partition
from compactor.settings.settings import Settings
from tests.support.memory_store import Call, Crashed, MemoryStore

NOW = 1_770_000_000.0
ITEM = WorkItem("d\u00e4y=1/", "source", "logs/d\u00e4y=1/", 3, 300)
BIG = WorkItem("day=2/", "source", "logs/day=2/", 900_000, 1 << 40)
PARTITION = ITEM.partition


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
    discovery = discover(wanted, store, NOW, committed=lambda _: frozenset())
    write_work(discovery, wanted, run_id, store)
    remember_scheme(wanted, store)


def test_both_lists_are_json_arrays_below_the_state_prefix() -> None:
    store = a_store()
    lists = write_work(Discovery((ITEM,), (BIG,)), settings(depth=1), "run-1", store)
    assert lists.bucket == "lake"
    assert lists.items_key == "_compactor/data/runs/run-1/items.json"
    assert lists.oversized_key == "_compactor/data/runs/run-1/oversized.json"
    assert json.loads(store.get("lake", lists.items_key)) == [
        {
            "path": "d\u00e4y=1/",
            "bucket": "source",
            "prefix": "logs/d\u00e4y=1/",
            "objects": 3,
            "bytes": 300,
        }
    ]
    oversized = json.loads(store.get("lake", lists.oversized_key))
    assert [WorkItem.from_dict(one) for one in oversized] == [BIG]


def test_the_settings_lie_beside_the_lists_and_the_run_is_where_both_are() -> None:
    store = a_store()
    wanted = settings(depth=1, spark_engine="j-1")
    lists = write_work(Discovery((ITEM,), (BIG,)), wanted, "run-1", store)
    assert lists.run_uri == "s3://lake/_compactor/data/runs/run-1/"
    prefix = lists.run_uri.removeprefix("s3://lake/")
    assert Settings.from_input(json.loads(store.get("lake", f"{prefix}settings.json"))) == wanted
    assert lists.oversized_key == f"{prefix}oversized.json"


def test_no_work_is_an_empty_array() -> None:
    assert json.loads(to_items_json(())) == []


def test_writing_the_lists_again_gives_the_same_lists() -> None:
    store = a_store()
    for _ in range(2):
        write_work(Discovery((ITEM,)), settings(depth=1), "run-1", store)
    assert list(store.contents("lake")) == [
        "_compactor/data/runs/run-1/discovery.json",
        "_compactor/data/runs/run-1/items.json",
        "_compactor/data/runs/run-1/oversized.json",
        "_compactor/data/runs/run-1/settings.json",
    ]


def test_a_run_that_commits_nothing_leaves_no_scheme() -> None:
    store = a_store()
    discovery = discover(settings(depth=1), store, NOW, committed=lambda _: frozenset())
    write_work(discovery, settings(depth=1), "run-1", store)
    run(store, settings(depth=2), "run-2")
    assert len(store.contents("lake", "_compactor/data/schemes/")) == 1


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (None, "item"),
        ([], "item"),
        ({}, "item"),
        ({**ITEM.to_dict(), "more": 1}, "item"),
        ({**ITEM.to_dict(), "objects": "3"}, "item.objects"),
        ({**ITEM.to_dict(), "bytes": True}, "item.bytes"),
        ({**ITEM.to_dict(), "prefix": None}, "item.prefix"),
    ],
)
def test_what_is_no_work_item_is_refused(given: object, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        WorkItem.from_dict(given)
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
    assert layout.output_prefix(wanted, PARTITION) == ("lake", "data/d\u00e4y=1/")
    assert layout.commits_prefix(wanted, PARTITION) == (
        "state",
        "x/partitions/d\u00e4y=1/commits/",
    )
    assert layout.commit_key(wanted, PARTITION, 12)[1].endswith(
        "/commits/00000000000000000012.json.gz"
    )
    assert layout.checkpoint_key(wanted, PARTITION, 12)[1].endswith(
        "/commits/00000000000000000012.checkpoint.json.gz"
    )
    root = Partition("source", "logs/", "")
    assert layout.commits_prefix(wanted, root)[1] == "x/partitions/commits/"
    assert layout.receipt_key(wanted, "r", root) == (
        "state",
        f"x/runs/r/receipts/{root.id}.json",
    )


def test_receipts_of_partitions_that_read_alike_have_different_keys() -> None:
    alike = [Partition("source", path, path) for path in ("a/b/", "a-b/", "a b/", "")]
    assert len({layout.receipt_key(settings(), "r", one) for one in alike}) == len(alike)


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


@pytest.mark.parametrize("missing", [1, 2])
def test_a_scheme_that_is_gone_halts_the_run(missing: int) -> None:
    store = a_store()
    for given in ({"depth": 1}, {"depth": 1, "s3_source_uri": "s3://source/other/"}):
        run(store, settings(**given))
    log_id = claim_identity(settings(depth=1), store).log_id
    entry = encode_commit(Commit(1, "1", "run-1", NOW, "source", "group", log_id=log_id))
    store.seed("lake", f"_compactor/data/partitions/a/commits/{1:020d}.json.gz", entry)
    for number in range(missing, 0, -1):
        store.remove(*layout.scheme_key(settings(), number))
    with pytest.raises(IntegrityError, match=r"0001\.json is missing"):
        run(store, settings(depth=2))


@pytest.mark.parametrize(
    ("first", "second", "schemes"),
    [
        (DAILY, {**DAILY, "start": "2020-01-01", "end": "2020-12-31"}, 1),
        (DAILY, {"depth": 3}, 1),
        (DAILY, {"s3_source_uri": "s3://source/other/", "depth": 1}, 2),
        ({"date_format": "dt=%Y-%m-%d"}, {"date_format": "hour=%Y-%m-%d-%H/all"}, 2),
        (
            {"s3_source_uri": "s3://source/*/CloudTrail/*/", **DAILY},
            {"s3_source_uri": "s3://source/*/Config/*/", "date_format": "%Y"},
            2,
        ),
        ({"depth": 1}, {"depth": 2, "s3_destination_uri": "s3://lake/finer/"}, 2),
    ],
)
def test_runs_that_cannot_disagree_about_any_object_share_a_destination(
    first: dict[str, Any], second: dict[str, Any], schemes: int
) -> None:
    store = a_store()
    for number, given in enumerate((first, second, first, second)):
        run(store, settings(**given), f"run-{number}")
    there = [key for key in store.contents("lake", "_compactor/") if "/schemes/" in key]
    assert len(there) == schemes
    # Each but the first of a destination has a copy.
    copies = [key for key in store.contents("lake", "_compactor/") if "/scheme-copies/" in key]
    assert len(copies) == sum(not key.endswith(f"{1:020d}.json") for key in there)
    assert store.count("create") == schemes + len(copies)


def two_schemes() -> MemoryStore:
    store = a_store()
    for given in ({"depth": 1}, {"depth": 1, "s3_source_uri": "s3://source/other/"}):
        run(store, settings(**given))
    return store


def test_the_newest_of_several_schemes_is_brought_back_once_it_is_gone() -> None:
    store = two_schemes()
    place = layout.scheme_key(settings(), 2)
    body = store.get(*place)
    store.remove(*place)
    for _ in range(2):
        with pytest.raises(InvalidInput, match="depth"):
            run(store, settings(depth=2, s3_source_uri="s3://source/other/"))
        assert store.get(*place) == body
    run(store, settings(depth=2, s3_source_uri="s3://source/third/"))
    assert len(store.contents("lake", "_compactor/data/schemes/")) == 3


def test_a_later_scheme_is_added_whatever_becomes_of_its_copy() -> None:
    store = two_schemes()
    third = settings(depth=2, s3_source_uri="s3://source/third/")
    place = layout.scheme_copy_key(settings(), 3)

    def take_away(call: Call) -> None:
        if call.name == "get" and (call.bucket, call.key) == place:
            store.hooks.clear()
            store.remove(*place)

    store.seed(*place, store.get(*layout.scheme_key(settings(), 2)))
    store.hooks.before.append(take_away)
    run(store, third)
    assert store.get(*place) == store.get(*layout.scheme_key(settings(), 3))


def test_a_run_that_died_between_a_copy_and_its_scheme_can_be_repeated_by_any() -> None:
    store = two_schemes()
    third = settings(depth=2, s3_source_uri="s3://source/third/")
    store.hooks.crash("after", "create")
    with pytest.raises(Crashed):
        run(store, third)
    store.hooks.clear()
    run(store, settings(depth=1, s3_source_uri="s3://source/fourth/"))
    run(store, third)
    assert len(store.contents("lake", "_compactor/data/schemes/")) == 4


def test_of_two_concurrent_first_runs_that_disagree_only_one_goes_on() -> None:
    store = a_store()

    def rival(call: Call) -> None:
        if call.name == "create":
            store.hooks.clear()
            run(store, settings(depth=2), "rival")

    store.hooks.before.append(rival)
    with pytest.raises(InvalidInput, match=r"depth: 1 .*s3://source/logs/\*/\*/"):
        run(store, settings(depth=1))
    assert len(store.contents("lake", "_compactor/data/schemes/")) == 1


def test_a_run_that_died_after_writing_its_scheme_can_be_repeated() -> None:
    store = a_store()
    store.hooks.crash("after", "create")
    with pytest.raises(Crashed):
        run(store, settings(depth=1))
    store.hooks.clear()
    run(store, settings(depth=1), "run-2")
    assert store.count("create") == 1


@pytest.mark.parametrize("body", [b"", b"[]", b'{"version": 2}', b'{"version": 1, "root": 7}'])
def test_a_scheme_changed_by_hand_halts_the_run(body: bytes) -> None:
    store = a_store()
    store.seed(*layout.scheme_key(settings(), 1), body)
    with pytest.raises(IntegrityError, match=r"schemes/00000000000000000001.json"):
        run(store, settings())
