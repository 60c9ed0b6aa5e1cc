"""Handlers: discovery asks the store, workers go by what it answered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compactor.errors import InvalidInput
from compactor.orchestration.discovery_step import asked_store
from compactor_handlers import runtime
from tests.support.examples import NOW, settings
from tests.support.memory_store import ManualClock, MemoryStore
from tests.support.server_differences import Condition

CONTEXT: Any = SimpleNamespace(get_remaining_time_in_millis=lambda: 900_000)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
def store(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Not AWS; every handler of this process is given it."""
    store = MemoryStore(clock)
    store.add_bucket("lake")
    store.endpoint_url = "http://127.0.0.1:9000"
    monkeypatch.setattr(runtime, "store_for", lambda *_: store)
    monkeypatch.setattr(runtime, "SystemClock", lambda: clock)
    monkeypatch.setattr(runtime, "_known_traits", {})
    return store


def test_what_discovery_found_is_what_workers_do(store: Any) -> None:
    store.ignores = {Condition.WHOLE_CHECKSUM}
    asked, (warning,) = asked_store(settings(), store, NOW)
    assert not asked.traits.checks_crc32
    assert "read back" in warning
    assert not runtime.trusted_store(settings(), CONTEXT).traits.checks_crc32


def test_a_process_reads_the_record_once_in_ten_minutes(store: Any, clock: ManualClock) -> None:
    asked_store(settings(), store, NOW)
    before = len(store.calls)
    for _ in range(3):
        runtime.trusted_store(settings(), CONTEXT)
    assert [call.name for call in store.calls[before:]] == ["get"]
    clock.advance(601)
    runtime.trusted_store(settings(), CONTEXT)
    assert store.count("get", prefix="_compactor/compacted/probes/") >= 2


def test_a_store_that_ends_runs_blames_the_endpoint(store: Any) -> None:
    store.ignores = {Condition.PUBLISH}
    with pytest.raises(InvalidInput) as raised:
        asked_store(settings(delete_after="30d"), store, NOW)
    assert raised.value.field == "endpoint"


def test_a_state_that_may_not_be_written_blames_its_uri(store: Any) -> None:
    store.denied = {"lake"}
    with pytest.raises(InvalidInput) as raised:
        asked_store(settings(), store, NOW)
    assert raised.value.field == "s3_state_uri"


def test_on_aws_a_worker_asks_for_nothing(store: Any) -> None:
    store.endpoint_url = "https://s3.eu-central-1.amazonaws.com"
    runtime.trusted_store(settings(), CONTEXT)
    assert store.calls == []
