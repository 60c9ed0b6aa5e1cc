"""Stores are probed before they are trusted: what is refused, and the two substitutes."""

from __future__ import annotations

import pytest

from compactor.errors import InvalidInput
from compactor.ports import Deletes, StoreTraits
from compactor.probe.probe import REMEMBERED_SECONDS, is_aws, probe_key, traits_for
from compactor.settings.uris import S3Uri
from tests.support.memory_store import Call, ManualClock, MemoryStore
from tests.support.server_differences import Condition

ENDPOINT = "http://127.0.0.1:9000"
NOW = 1_700_000_000.0
STATE = S3Uri("lake", "_compactor/compacted/")
REFUSED = {
    Condition.CREATE: "If-None-Match on PutObject",
    Condition.READ: "If-Match on GetObject",
    Condition.PUBLISH: "If-None-Match on CompleteMultipartUpload",
}
LIKE_AWS = StoreTraits(copies=False)


@pytest.fixture
def store() -> MemoryStore:
    """One that is not AWS, and honours everything."""
    store = MemoryStore(ManualClock(NOW))
    store.add_bucket("lake")
    store.add_bucket("logs")
    store.endpoint_url = ENDPOINT
    return store


def daily(store: MemoryStore, now: float = NOW) -> StoreTraits:
    return traits_for(STATE, store, now, remembered_seconds=REMEMBERED_SECONDS)


def test_a_store_that_honours_everything_only_copies_nothing(store: MemoryStore) -> None:
    assert daily(store) == LIKE_AWS


@pytest.mark.parametrize("condition", sorted(REFUSED))
def test_a_store_without_conditional_writes_or_reads_is_refused_by_name(
    store: MemoryStore, condition: Condition
) -> None:
    store.ignores = {condition}
    with pytest.raises(InvalidInput) as raised:
        daily(store)
    assert raised.value.field == "endpoint"
    line = str(raised.value)
    assert f"{ENDPOINT} ignores {REFUSED[condition]}," in line
    assert "\n" not in line
    store.ignores = set()
    assert daily(store) == LIKE_AWS, "a refusal is not remembered"


def test_a_store_that_rejects_a_conditional_request_is_refused_by_name(store: MemoryStore) -> None:
    def reject(call: Call) -> None:
        if call.name == "create":
            raise InvalidInput("request", "501 NotImplemented", "a request that this store takes")

    store.hooks.before.append(reject)
    with pytest.raises(InvalidInput, match="refuses If-None-Match on PutObject"):
        daily(store)


@pytest.mark.parametrize(
    ("ignored", "traits"),
    [
        ({Condition.WHOLE_CHECKSUM}, StoreTraits(copies=False, checks_crc32=False)),
        ({Condition.DELETE_MANY}, StoreTraits(copies=False, deletes=Deletes.SINGLE)),
        (
            {Condition.DELETE_MANY, Condition.DELETE_ONE},
            StoreTraits(copies=False, deletes=Deletes.NONE),
        ),
    ],
)
def test_what_has_a_substitute_is_recorded_for_the_workers(
    store: MemoryStore, ignored: set[Condition], traits: StoreTraits
) -> None:
    store.ignores = ignored
    assert daily(store) == traits
    store.ignores = set()
    assert traits_for(STATE, store, NOW + 9 * REMEMBERED_SECONDS) == traits


def test_a_store_is_probed_once_a_day_and_a_second_run_costs_one_get(store: MemoryStore) -> None:
    daily(store)
    before = len(store.calls)
    daily(store, NOW + REMEMBERED_SECONDS - 1)
    assert [call.name for call in store.calls[before:]] == ["get"]
    store.ignores = {Condition.WHOLE_CHECKSUM}
    assert not daily(store, NOW + REMEMBERED_SECONDS).checks_crc32


def test_a_record_of_a_day_still_to_come_is_not_used(store: MemoryStore) -> None:
    daily(store, NOW + 10 * REMEMBERED_SECONDS)
    store.ignores = {Condition.WHOLE_CHECKSUM}
    assert not daily(store).checks_crc32


def test_a_record_that_cannot_be_read_is_replaced(store: MemoryStore) -> None:
    where = probe_key(STATE, ENDPOINT)
    store.put(*where, b"{broken")
    assert daily(store) == LIKE_AWS
    assert b'"version": 1' in store.get(*where)


def test_a_probe_leaves_nothing_but_its_record_and_writes_nowhere_else(store: MemoryStore) -> None:
    daily(store)
    assert list(store.contents("lake")) == [probe_key(STATE, ENDPOINT)[1]]
    assert store.unfinished_uploads("lake") == {}
    assert store.count() == store.count(bucket="lake", prefix="_compactor/compacted/probes/")


def test_endpoints_have_records_of_their_own(store: MemoryStore) -> None:
    daily(store)
    store.endpoint_url = "http://127.0.0.1:9001"
    store.ignores = {Condition.WHOLE_CHECKSUM}
    assert not daily(store).checks_crc32


@pytest.mark.parametrize(
    "url",
    [
        "https://s3.eu-central-1.amazonaws.com",
        "https://s3.dualstack.us-east-1.amazonaws.com",
        "https://s3.cn-north-1.amazonaws.com.cn",
        "https://bucket.vpce-1a2b3c.s3.us-east-1.vpce.amazonaws.com",
    ],
)
def test_nothing_is_requested_of_aws(store: MemoryStore, url: str) -> None:
    store.endpoint_url = url
    assert daily(store) == StoreTraits()
    assert store.calls == []


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9000", "https://amazonaws.com.example.org", "https://notamazonaws.com", ""],
)
def test_other_endpoints_are_not_taken_for_aws(url: str) -> None:
    assert not is_aws(url)
