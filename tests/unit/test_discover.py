"""Discovery over the in-memory store: which partitions are found, and by which requests."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from compactor.discovery.discover import discover
from compactor.discovery.work_list import Discovery
from compactor.errors import InvalidInput, TransientStoreError
from compactor.log.identity import StateIdentity
from compactor.model import Partition, SkipReason
from compactor.settings.settings import Settings
from tests.support.examples import Looks, limited
from tests.support.memory_store import Call, MemoryStore

NOW = datetime(2026, 2, 1, 9, 30, tzinfo=UTC).timestamp()
SOURCE, LAKE = "source", "lake"


def a_store(*keys: str, page_size: int = 1_000) -> MemoryStore:
    store = MemoryStore(page_size=page_size)
    store.add_bucket(SOURCE)
    store.add_bucket(LAKE)
    for key in keys:
        store.seed(SOURCE, key, b"0123456789")
    return store


def settings(source: str = "s3://source/logs/", **given: Any) -> Settings:
    uris = {"s3_source_uri": source, "s3_destination_uri": "s3://lake/data/"}
    return limited({**uris, **given})


def found(store: MemoryStore, wanted: Settings, now: float = NOW) -> Discovery:
    return discover(wanted, store, now)


def paths(discovery: Discovery) -> list[str]:
    return [item.path for item in discovery.partitions]


def test_the_seed_applications_window_ends_with_yesterday() -> None:
    store = a_store(*(f"logs/2026/01/{day:02d}/a" for day in range(1, 32)), "logs/2026/02/01/a")
    discovery = found(store, settings(date_format="%Y/%m/%d", window="2d"))
    assert paths(discovery) == ["2026/01/30/", "2026/01/31/"]
    assert discovery.partitions[0] == Partition(SOURCE, "logs/2026/01/30/", "2026/01/30/")


def test_day_1_never_takes_in_days_10_to_19() -> None:
    store = a_store("logs/2026-1/a", *(f"logs/2026-{day}/a" for day in range(10, 20)))
    store.seed(SOURCE, "logs/2026-01x/a", b"")
    discovery = found(store, settings(depth=1))
    assert len(discovery.partitions) == 12
    assert paths(found(store, settings("s3://source/logs/2026-1"))) == [""]


def test_days_without_an_object_are_no_work() -> None:
    store = a_store("logs/2026/01/30/a")
    discovery = found(store, settings(date_format="%Y/%m/%d", window="30d"))
    assert paths(discovery) == ["2026/01/30/"]


@pytest.mark.parametrize(
    ("date_format", "lists"),
    # Of the root, the years, the months, and each day that has an object.
    [("%Y/%m/%d", 1 + 2 + 3 + 4), ("day=%d-%m-%Y", 1 + 4)],
)
def test_a_window_of_decades_lists_only_the_dates_that_exist(date_format: str, lists: int) -> None:
    days = [
        datetime(*day, tzinfo=UTC)
        for day in ((2020, 2, 29), (2025, 12, 31), (2026, 1, 9), (2026, 1, 10))
    ]
    keys = [f"{parent}/{day.strftime(date_format)}/a" for parent in "xy" for day in days]
    store = a_store(*keys, "x/2026/13/01/a", "x/readme", "y/day=32-01-2026/a")
    wanted = settings("s3://source/*/", date_format=date_format, window="2000-01-01..today")
    assert paths(found(store, wanted)) == [key.removesuffix("a") for key in keys]
    requests = store.count("list_level", bucket=SOURCE) + store.count("list_objects", bucket=SOURCE)
    # Those of the wildcard, and of what may own the prefixes, come on top.
    assert requests <= 2 * lists + 4


def test_nothing_at_all_gives_an_empty_discovery() -> None:
    assert found(a_store(), settings()) == Discovery()


def test_without_date_format_and_depth_the_source_is_one_partition() -> None:
    discovery = found(a_store("logs/a", "logs/x/b", "other/c"), settings())
    assert [(i.path, i.prefix) for i in discovery.partitions] == [("", "logs/")]


def test_a_whole_bucket_may_be_the_source() -> None:
    discovery = found(a_store("a", "x/b"), settings("s3://source"))
    assert [(i.path, i.prefix) for i in discovery.partitions] == [("", "")]


def test_every_prefix_at_the_depth_is_a_partition_and_what_lies_above_is_counted() -> None:
    store = a_store(
        *("logs/top", "logs/web/stray-1", "logs/web/stray-2"),
        *("logs/web/1/a", "logs/web/1/deep/er/b", "logs/web/10/c", "logs/app/1/d"),
    )
    discovery = found(store, settings(depth=2))
    assert paths(discovery) == ["app/1/", "web/1/", "web/10/"]
    unpartitioned = discovery.skipped[SkipReason.UNPARTITIONED]
    assert (unpartitioned.objects, unpartitioned.bytes) == (3, 30)
    assert unpartitioned.examples == ("logs/top", "logs/web/stray-1", "logs/web/stray-2")


def test_directory_markers_above_the_depth_are_not_counted_as_unpartitioned() -> None:
    store = a_store("logs/a/1")
    store.seed(SOURCE, "logs/", b"")
    assert found(store, settings(depth=1)).skipped == {}


def test_wildcards_are_resolved_to_the_parents_that_exist() -> None:
    store = a_store(
        "AWSLogs/111/CloudTrail/us-east-1/2026/01/31/a",
        "AWSLogs/111/CloudTrail/eu-west-1/2026/01/31/b",
        "AWSLogs/222/CloudTrail/us-east-1/2026/01/31/c",
        "AWSLogs/222/CloudTrail-Digest/us-east-1/2026/01/31/d",
        "AWSLogs/333/Config/us-east-1/2026/01/31/e",
        "AWSLogs/stray",
    )
    wanted = settings("s3://source/AWSLogs/*/CloudTrail/*/", date_format="%Y/%m/%d", window="1d")
    assert paths(found(store, wanted)) == [
        "111/CloudTrail/eu-west-1/2026/01/31/",
        "111/CloudTrail/us-east-1/2026/01/31/",
        "222/CloudTrail/us-east-1/2026/01/31/",
    ]
    part = settings("s3://source/AWSLogs/*/CloudTrail/us-*", date_format="%Y", window="1d")
    assert paths(found(store, part)) == [
        "111/CloudTrail/us-east-1/2026/",
        "222/CloudTrail/us-east-1/2026/",
    ]
    assert found(store, settings("s3://source/AWSLogs/9*/")).partitions == ()


def test_wildcards_and_depth_work_together() -> None:
    store = a_store("x/one/a/1", "x/two/b/2", "x/two/stray", "x/other")
    discovery = found(store, settings("s3://source/x/*/", depth=1))
    assert paths(discovery) == ["one/a/", "two/b/"]
    assert discovery.skipped[SkipReason.UNPARTITIONED].examples == ("x/two/stray",)


def test_the_real_cloudtrail_layout_is_found(real_cloudtrail: Path) -> None:
    keys = [p.relative_to(real_cloudtrail) for p in real_cloudtrail.rglob("*") if p.is_file()]
    store = a_store(*(str(key) for key in keys))
    day = {"window": "2023-07-10..2023-07-10"}
    wanted = settings("s3://source/AWSLogs/*/CloudTrail/*/", date_format="%Y/%m/%d", **day)
    assert paths(found(store, wanted)) == ["218007301253/CloudTrail/us-east-1/2023/07/10/"]


def test_hours_of_a_day_are_partitions_of_their_own() -> None:
    store = a_store("logs/2026/01/31/00/a", "logs/2026/01/31/23/b", "logs/2026/02/01/00/c")
    discovery = found(store, settings(date_format="%Y/%m/%d/%H", window="1d"))
    assert paths(discovery) == ["2026/01/31/00/", "2026/01/31/23/"]


def test_a_thousand_partitions_are_found_by_the_listing_of_their_level() -> None:
    store = a_store(*(f"logs/{n:04d}/{i}" for n in range(1_000) for i in "ab"))
    assert paths(found(store, settings(depth=1))) == [f"{n:04d}/" for n in range(1_000)]
    assert store.count("list_objects", bucket=SOURCE) == 0
    # Source and search; the bucket's root, for what may own the partitions.
    assert store.count("list_level", bucket=SOURCE) == 3


def test_no_more_lists_than_dates_are_made_where_a_window_has_few() -> None:
    store = a_store(*(f"logs/{year}/01/30/a" for year in range(2000, 2027)))
    wanted = settings(date_format="%Y/%m/%d", window="2026-01-30..2026-01-31")
    assert paths(found(store, wanted)) == ["2026/01/30/"]
    assert store.count("list_objects", bucket=SOURCE) == 2


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"depth": 2}, "depth"),
        ({"date_format": "%Y/%m/%d", "window": "400d"}, "window"),
    ],
)
def test_a_call_that_cannot_list_all_prefixes_names_what_to_set(
    given: dict[str, Any], field: str
) -> None:
    store = a_store(*(f"logs/2025/{n:02}/01/a" for n in range(1, 13)))
    with pytest.raises(InvalidInput, match=f"^{field}: one call cannot list") as caught:
        discover(settings(**given), store, NOW, Looks(1))
    assert caught.value.field == field
    assert discover(settings(**given), store, NOW).partitions


def test_a_level_that_was_searched_is_not_listed_again_for_what_may_own_it() -> None:
    store = a_store(*(f"logs/{n}/{m}/a" for n in range(20) for m in range(3)))
    seen: list[str] = []
    store.hooks.before.append(
        lambda call: seen.append(call.key) if call.name == "list_level" else None
    )
    assert len(found(store, settings(depth=2)).partitions) == 60
    levels = Counter(key for key in seen if key.startswith("logs/"))
    assert levels.pop("logs/") == 2
    assert levels == {f"logs/{n}/": 1 for n in range(20)}


def test_discovery_reads_once_which_log_it_is() -> None:
    store = a_store("logs/a")
    wanted = settings()
    StateIdentity(wanted, store).claim("")
    marker = wanted.layout.identity[1]
    before = store.count("get", prefix=marker)
    found(store, wanted)
    assert store.count("get", prefix=marker) - before == 1


@pytest.mark.parametrize("page_size", [1, 1_000])
@pytest.mark.parametrize(
    ("marker", "is_owned"),
    [("_delta_log/0.json", True), ("metadata/v1.metadata.json", True), ("metadata/x", False)],
)
def test_a_marker_in_a_level_that_was_searched_owns_the_partitions_below(
    marker: str, page_size: int, *, is_owned: bool
) -> None:
    data = [f"logs/{name}/{n}/a" for name in ("t", "u") for n in range(4)]
    store = a_store(*data, f"logs/t/{marker}", page_size=page_size)
    discovery = discover(settings(depth=2), store, NOW)
    assert ("t/0/" in paths(discovery)) is not is_owned
    assert {f"u/{n}/" for n in range(4)} <= set(paths(discovery))


def test_discovery_writes_nothing() -> None:
    store = a_store("logs/a")
    found(store, settings())
    assert not {"PUT", "DELETE"} & set(store.snapshot())
    assert store.contents(LAKE) == {}


def test_levels_are_listed_in_parallel() -> None:
    store = a_store(*(f"logs/{n}/x/a" for n in range(4)))
    meeting = threading.Barrier(4, timeout=60)

    def meet(call: Call) -> None:
        if call.name == "list_level" and call.key.count("/") == 2:
            meeting.wait()

    store.hooks.before.append(meet)
    assert len(found(store, settings(depth=2)).partitions) == 4


@pytest.mark.parametrize("missing", [SOURCE, LAKE])
@pytest.mark.parametrize("denied", [False, True])
def test_a_bucket_that_cannot_be_used_is_reported_by_the_field_that_names_it(
    missing: str, denied: bool
) -> None:
    store = MemoryStore()
    for bucket in (SOURCE, LAKE):
        if denied or bucket != missing:
            store.add_bucket(bucket)
    if denied:
        store.denied.add(missing)
    with pytest.raises(InvalidInput) as caught:
        found(store, settings())
    field = {SOURCE: "s3_source_uri", LAKE: "s3_destination_uri"}[missing]
    uri = {SOURCE: "s3://source/logs/", LAKE: "s3://lake/data/"}[missing]
    assert (caught.value.field, caught.value.value) == (field, uri)
    assert ("a role that allows" if denied else "a bucket that exists") in caught.value.accepted
    assert missing in caught.value.accepted


def test_a_missing_state_bucket_is_reported_by_its_field() -> None:
    with pytest.raises(InvalidInput, match=r"s3_state_uri: 's3://state/' .*a bucket that exists"):
        found(a_store(), settings(s3_state_uri="s3://state/"))


def test_a_source_bucket_is_checked_even_when_the_window_could_never_ask_it() -> None:
    with pytest.raises(InvalidInput, match=r"s3_source_uri: .*a bucket that exists"):
        found(a_store(), settings("s3://absent/*/logs", date_format="%Y"))


def test_a_start_after_yesterday_without_an_end_is_refused_on_the_day() -> None:
    wanted = settings(date_format="%Y/%m/%d", window="2026-02-01..")
    with pytest.raises(InvalidInput, match=r"window: '2026-02-01\.\.' .*ends with yesterday"):
        found(a_store(), wanted)
    assert found(a_store(), wanted, NOW + 86_400) == Discovery()


def test_an_error_in_one_thread_ends_discovery() -> None:
    store = a_store(*(f"logs/{n}/x/a" for n in range(200)))

    def stumble(call: Call) -> None:
        if call.key == "logs/1/":
            raise TransientStoreError("slow down")

    store.hooks.before.append(stumble)
    with pytest.raises(TransientStoreError, match="slow down"):
        found(store, settings(depth=2))
    assert store.count("list_level", bucket=SOURCE) < 110
    assert not [t for t in threading.enumerate() if t.name.startswith("discover")]
