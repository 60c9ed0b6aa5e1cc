"""Stores are asked before they are trusted: what a probe finds, and what follows from it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compactor.conditions import (
    Condition,
    Finding,
    StoreTraits,
    Verdict,
    consequence,
    is_aws,
    require_safe,
    traits_of,
    warnings_of,
)
from compactor.errors import InvalidInput
from compactor.layout import probe_key
from compactor.probe.probe import ensure_asked, recorded_traits, traits_for
from compactor.settings.uris import S3Uri
from tests.support.memory_store import ManualClock, MemoryStore

ENDPOINT = "http://127.0.0.1:9000"
NOW = 1_700_000_000.0
DAY = 86_400.0
STATE = S3Uri("lake", "_compactor/compacted/")
ENDS = {Condition.CREATE, Condition.LIST, Condition.PUBLISH}
WAYS = {
    Condition.READ: StoreTraits(reads_if_match=False),
    Condition.WHOLE_CHECKSUM: StoreTraits(refuses_wrong_crc32=False),
    # What cannot be seen is not trusted.
    Condition.HEAD_CHECKSUM: StoreTraits(copies=False, knows_copied_crc32=False),
    Condition.COPY: StoreTraits(copies=False),
    Condition.COPIED_CHECKSUM: StoreTraits(copies=False, knows_copied_crc32=False),
    Condition.DELETE_MANY: StoreTraits(deletes_many=False),
    Condition.DELETE_ONE: StoreTraits(deletes_one=False),
}


@pytest.fixture
def store() -> MemoryStore:
    """One that is not AWS, and honours everything."""
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    store.add_bucket("logs")
    store.endpoint_url = ENDPOINT
    return store


def ask(store: MemoryStore, *, now: float = NOW, deletes: bool = True) -> dict[Condition, Verdict]:
    found = ensure_asked(STATE, store, now, deletes=deletes)
    return {one.condition: one.verdict for one in found}


def test_a_store_like_aws_honours_every_condition_and_takes_every_way(store: MemoryStore) -> None:
    assert ask(store) == dict.fromkeys(Condition, Verdict.HONOURED)
    assert traits_for(STATE, store, NOW, deletes=True) == StoreTraits()


def test_every_condition_is_either_fatal_or_has_its_way() -> None:
    assert ENDS | WAYS.keys() == set(Condition)


@pytest.mark.parametrize("condition", sorted(WAYS))
def test_an_ignored_condition_is_found_and_another_way_is_taken(
    store: MemoryStore, condition: Condition
) -> None:
    store.ignores = {condition}
    found = ask(store)
    missing = {one for one, verdict in found.items() if verdict is Verdict.IGNORED}
    assert missing - {Condition.COPIED_CHECKSUM} == {condition} - {Condition.COPIED_CHECKSUM}
    assert traits_for(STATE, store, NOW, deletes=True) == WAYS[condition]


@pytest.mark.parametrize("condition", sorted(ENDS))
def test_an_ignored_condition_without_a_safe_way_ends_the_run_by_one_line_that_names_it(
    store: MemoryStore, condition: Condition
) -> None:
    store.ignores = {condition}
    with pytest.raises(InvalidInput) as raised:
        ask(store)
    line = str(raised.value)
    assert raised.value.field == "endpoint"
    assert ENDPOINT in line
    assert condition in line
    assert "ignores it" in line
    assert "\n" not in line


def test_what_ended_a_run_is_asked_again_by_the_next(store: MemoryStore) -> None:
    store.ignores = {Condition.CREATE}
    with pytest.raises(InvalidInput):
        ask(store)
    store.ignores = set()
    assert ask(store)[Condition.CREATE] is Verdict.HONOURED


def test_a_store_is_asked_once_a_day_and_a_second_run_costs_one_get(store: MemoryStore) -> None:
    ask(store)
    before = len(store.calls)
    ask(store, now=NOW + DAY - 1)
    assert [call.name for call in store.calls[before:]] == ["get"]
    store.ignores = {Condition.COPY}
    assert ask(store, now=NOW + DAY)[Condition.COPY] is Verdict.IGNORED


def test_a_record_of_a_day_still_to_come_is_not_believed(store: MemoryStore) -> None:
    ask(store, now=NOW + 10 * DAY)
    store.ignores = {Condition.COPY}
    assert ask(store)[Condition.COPY] is Verdict.IGNORED


def test_a_worker_goes_by_the_record_of_its_run_however_old(store: MemoryStore) -> None:
    store.ignores = {Condition.DELETE_MANY}
    ask(store)
    store.ignores = set()
    assert not traits_for(STATE, store, NOW + 9 * DAY, deletes=True).deletes_many


def test_deletes_are_asked_for_only_by_runs_that_delete(store: MemoryStore) -> None:
    kept = ask(store, deletes=False)
    assert {Condition.DELETE_MANY, Condition.DELETE_ONE}.isdisjoint(kept)
    assert ask(store)[Condition.DELETE_MANY] is Verdict.HONOURED


def test_a_probe_leaves_nothing_but_its_record_and_writes_nowhere_else(store: MemoryStore) -> None:
    ask(store)
    (key,) = store.contents("lake")
    assert key == probe_key(STATE, ENDPOINT)[1]
    assert store.unfinished_uploads("lake") == {}
    assert store.count(bucket="logs") == 0
    assert store.count() == store.count(bucket="lake", prefix="_compactor/compacted/probes/")


def test_what_may_not_be_deleted_stays_and_ends_nothing(store: MemoryStore) -> None:
    def deny(call: object) -> None:
        if getattr(call, "name", "") == "delete_source":
            raise InvalidInput("permission", "AccessDenied", "a role that allows this request")

    store.hooks.before.append(deny)
    assert ask(store, deletes=False)[Condition.CREATE] is Verdict.HONOURED


def test_buckets_and_endpoints_have_records_of_their_own(store: MemoryStore) -> None:
    ask(store)
    store.endpoint_url = "http://127.0.0.1:9001"
    store.ignores = {Condition.COPY}
    assert ask(store)[Condition.COPY] is Verdict.IGNORED


def test_a_record_that_cannot_be_read_does_not_count(store: MemoryStore) -> None:
    store.put(*probe_key(STATE, ENDPOINT), b"{broken")
    assert ask(store) == dict.fromkeys(Condition, Verdict.HONOURED)


def test_who_only_reads_asks_nothing_and_trusts_the_least(store: MemoryStore) -> None:
    assert not recorded_traits(STATE, store).knows_copied_crc32
    assert store.count("put", "create", "create_upload") == 0
    ask(store)
    assert recorded_traits(STATE, store).knows_copied_crc32


@pytest.mark.parametrize(
    "url",
    [
        "https://s3.eu-central-1.amazonaws.com",
        "https://s3.dualstack.us-east-1.amazonaws.com",
        "https://s3.cn-north-1.amazonaws.com.cn",
        "https://bucket.vpce-1a2b3c.s3.us-east-1.vpce.amazonaws.com",
    ],
)
def test_endpoints_of_aws_are_known(url: str) -> None:
    assert is_aws(url)


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9000", "https://amazonaws.com.example.org", "https://notamazonaws.com", ""],
)
def test_other_endpoints_are_not_taken_for_aws(url: str) -> None:
    assert not is_aws(url)


def test_aws_is_written_to_once_a_day_and_not_asked(store: MemoryStore) -> None:
    store.endpoint_url = "https://s3.eu-central-1.amazonaws.com"
    ask(store)
    # The second is refused, as it must be.
    assert [call.name for call in store.calls] == ["get", "create", "create"]
    assert len(store.contents("lake")) == 1
    ask(store, now=NOW + 1)
    assert store.count("create", "put") == 2
    ask(store, now=NOW + DAY)
    assert [call.name for call in store.calls][4:] == ["get", "create", "put"]
    assert traits_for(STATE, store, NOW, deletes=True) == StoreTraits()


def test_something_before_aws_that_drops_the_condition_ends_the_run(store: MemoryStore) -> None:
    store.endpoint_url = "https://s3.eu-central-1.amazonaws.com"
    store.ignores = {Condition.CREATE}
    with pytest.raises(InvalidInput, match="If-None-Match on PutObject"):
        ask(store)
    # And the next one as well: a record is there now.
    with pytest.raises(InvalidInput, match="If-None-Match on PutObject"):
        ask(store)


def test_ways_that_leave_a_moment_open_are_warned_of() -> None:
    findings = [Finding(one, Verdict.IGNORED) for one in sorted(WAYS)]
    lines = warnings_of(findings)
    assert len(lines) == 2
    assert any("DeleteObject" in line and "overwritten between" in line for line in lines)
    assert any("read back" in line for line in lines)


def test_a_refused_checksum_leaves_nothing_to_publish_with() -> None:
    finding = Finding(Condition.WHOLE_CHECKSUM, Verdict.REFUSED, "501 NotImplemented")
    with pytest.raises(InvalidInput, match=r"refuses it \(501 NotImplemented\).*published"):
        require_safe([finding], ENDPOINT)
    assert consequence(replace(finding, verdict=Verdict.HONOURED)) == ""


def test_copies_are_left_out_where_their_checksum_would_be_wrong() -> None:
    traits = traits_of([Finding(Condition.COPIED_CHECKSUM, Verdict.IGNORED)])
    assert not traits.copies
    assert not traits.knows_copied_crc32
