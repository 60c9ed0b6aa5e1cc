"""A proxy takes each condition out of every request: runs end with a line, or do without it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from compactor.errors import InvalidInput, SourceChanged
from compactor.model import SourceObject
from compactor.probe.probe import probe
from compactor.s3.store import S3Store, make_client
from compactor.settings.uris import S3Uri
from compactor_cli.failures import message_of
from tests.faults.fault_world import FaultWorld
from tests.support.fault_proxy import FaultProxy
from tests.support.server_differences import Condition

ENDS = {
    Condition.CREATE: "If-None-Match on PutObject",
    Condition.PUBLISH: "If-None-Match on CompleteMultipartUpload",
}


@contextmanager
def dropping(proxy: FaultProxy, *conditions: Condition) -> Iterator[None]:
    proxy.drops = frozenset(conditions)
    try:
        yield
    finally:
        proxy.drops = frozenset()


def seed(world: FaultWorld) -> None:
    world.seed(
        (f"day=1/{n}.json", b"".join(b'{"n": %d, "m": %d}\n' % (n, m) for m in range(3)))
        for n in range(5)
    )


@pytest.fixture
def store(world: FaultWorld) -> S3Store:
    """The product's own, through the proxy."""
    return S3Store(make_client(world.bench.proxy.endpoint_url, connections=4), threads=2)


def probed(world: FaultWorld, store: S3Store) -> S3Store:
    return store.with_traits(probe(S3Uri(world.lake, "_compactor/"), store))


def listed(store: S3Store, bucket: str) -> SourceObject:
    (one,) = [one for page in store.list_objects(bucket, "logs/") for one in page]
    return one


@pytest.mark.parametrize("condition", ENDS)
def test_a_run_whose_commits_could_be_written_over_ends_before_its_first_write(
    make_world: Callable[[str], FaultWorld], condition: Condition
) -> None:
    world = make_world(f"ends without {condition}")
    seed(world)
    with dropping(world.bench.proxy, condition):
        for _ in range(2):
            result = world.run()
            assert result.status == "FAILED"
            line = message_of(result.cause)
            assert f"ignores {ENDS[condition]}" in line
    assert world.keys(world.lake, "compacted/") == []
    state = world.keys(world.lake, "_compactor/")
    assert not [key for key in state if "/partitions/" in key]
    world.must_be_proven()


@pytest.mark.parametrize(
    "dropped", [{Condition.WHOLE_CHECKSUM}, {Condition.DELETE_MANY}], ids=["checksum", "deletes"]
)
def test_a_run_substitutes_what_it_can(
    make_world: Callable[[str], FaultWorld], dropped: set[Condition]
) -> None:
    world = make_world(f"does without {sorted(dropped)}")
    seed(world)
    with dropping(world.bench.proxy, *dropped):
        result = world.run(delete_after="0d")
        assert result.status == "SUCCEEDED", result.cause
        # A store's clock tells whole seconds: what was committed in this one is not yet due.
        time.sleep(1.1)
        result = world.run(delete_after="0d")
        assert result.status == "SUCCEEDED", result.cause
    world.must_be_complete()
    assert world.keys(world.source, "logs/") == []


def test_a_source_that_changed_is_not_read_where_if_match_is_dropped(
    world: FaultWorld, store: S3Store
) -> None:
    world.seed([("a.json", b"as listed\n")])
    source = listed(store, world.source)
    with dropping(world.bench.proxy, Condition.READ):
        with pytest.raises(InvalidInput, match="If-Match on GetObject"):
            probed(world, store)
        world.seed([("a.json", b"as it is\n.")])
        (body,) = store.read_sources([source])
        assert isinstance(body.error, SourceChanged)


def test_a_source_that_changed_is_not_deleted_where_its_condition_is_dropped(
    make_world: Callable[[str], FaultWorld],
) -> None:
    world = make_world("deletes one by one")
    store = S3Store(make_client(world.bench.proxy.endpoint_url, connections=4), threads=2)
    world.seed([("a.json", b"compacted\n")])
    with dropping(world.bench.proxy, Condition.DELETE_MANY):
        safe = probed(world, store)
        source = listed(safe, world.source)
        world.seed([("a.json", b"written after\n")])
        (refused,) = safe.delete_sources([source]).refused
        assert refused.final
        assert world.keys(world.source, "logs/") == ["logs/a.json"]
        assert safe.delete_sources([listed(safe, world.source)]).refused == ()
        assert world.keys(world.source, "logs/") == []


def test_no_source_is_deleted_where_both_conditions_are_dropped(
    make_world: Callable[[str], FaultWorld],
) -> None:
    world = make_world("deletes nothing")
    store = S3Store(make_client(world.bench.proxy.endpoint_url, connections=4), threads=2)
    world.seed([("a.json", b"compacted\n")])
    with dropping(world.bench.proxy, Condition.DELETE_MANY, Condition.DELETE_ONE):
        safe = probed(world, store)
        (refused,) = safe.delete_sources([listed(safe, world.source)]).refused
        assert "no source is deleted" in refused.reason
    assert world.keys(world.source, "logs/") == ["logs/a.json"]
