"""A proxy takes each condition out of every request: runs end with a line, or do without it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from compactor.conditions import Condition, Verdict, traits_of
from compactor.errors import SourceChanged
from compactor.model import SourceObject
from compactor.probe.probe import ask_and_record
from compactor.s3.store import S3Store, make_client
from compactor.settings.uris import S3Uri
from compactor_cli.runs import message_of
from tests.faults.fault_world import FaultWorld
from tests.support.dropped import DROPPABLE
from tests.support.fault_proxy import FaultProxy

MIB = 1024 * 1024
RACES = (Condition.WHOLE_CHECKSUM, Condition.DELETE_ONE)
ENDS = (Condition.CREATE, Condition.PUBLISH)
NOW = 1_700_000_000.0
# Dated: text of another form is left alone.
LOG_LINE = b"2026-01-02T03:04:05Z INFO a line of some length\n"


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


def asked(world: FaultWorld, store: S3Store) -> tuple[S3Store, dict[Condition, Verdict]]:
    findings = ask_and_record(S3Uri(world.lake, "_compactor/"), store, NOW, deletes=True)
    return store.with_traits(traits_of(findings)), {f.condition: f.verdict for f in findings}


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
            assert condition in line
            assert "ignores it" in line
    assert world.keys(world.lake, "compacted/") == []
    state = world.keys(world.lake, "_compactor/")
    assert not [key for key in state if "/partitions/" in key]
    world.must_be_proven()


@pytest.mark.parametrize(
    "dropped",
    [
        {Condition.READ},
        {Condition.WHOLE_CHECKSUM},
        {Condition.COPY},
        {Condition.HEAD_CHECKSUM, Condition.DELETE_MANY, Condition.DELETE_ONE},
    ],
)
def test_a_run_does_without_what_has_another_way(
    make_world: Callable[[str], FaultWorld], dropped: set[Condition]
) -> None:
    world = make_world(f"does without {sorted(dropped)}")
    seed(world)
    if Condition.COPY in dropped:
        world.seed([("day=1/large.log", LOG_LINE * (17 * MIB // len(LOG_LINE)))])
    with dropping(world.bench.proxy, *dropped):
        result = world.run(clean_up="delete", retention_days=0)
        assert result.status == "SUCCEEDED", result.cause
        # A store's clock tells whole seconds: what was committed in this one is not yet due.
        time.sleep(1.1)
        result = world.run(clean_up="delete", retention_days=0)
        assert result.status == "SUCCEEDED", result.cause
    world.must_be_complete()
    assert world.keys(world.source, "logs/") == []
    reports = [k for k in world.keys(world.lake, "_compactor/") if k.endswith("/report.json")]
    # Which of the two told it is no matter: the answers of the first are those of the second.
    key = max(reports, key=lambda one: len(json.loads(world.body(one))["warnings"]))
    warnings = json.loads(world.body(key))["warnings"]
    assert len(warnings) == len(dropped.intersection(RACES))
    assert all(any(one in line for one in dropped) for line in warnings)


@pytest.mark.parametrize("condition", DROPPABLE)
def test_a_probe_finds_just_what_is_dropped(
    make_world: Callable[[str], FaultWorld], condition: Condition
) -> None:
    world = make_world(f"finds {condition}")
    store = S3Store(make_client(world.bench.proxy.endpoint_url, connections=4), threads=2)
    _, before = asked(world, store)
    with dropping(world.bench.proxy, condition):
        _, found = asked(world, store)
    assert found == before | {condition: Verdict.IGNORED}


def test_a_source_that_changed_is_not_read_where_if_match_is_dropped(
    world: FaultWorld, store: S3Store
) -> None:
    world.seed([("a.json", b"as listed\n")])
    with dropping(world.bench.proxy, Condition.READ):
        safe, _ = asked(world, store)
        source = listed(safe, world.source)
        world.seed([("a.json", b"as it is\n.")])
        for direct in (safe._sources._direct, None):
            safe._sources._direct = direct
            (body,) = safe.read_sources([source])
            assert isinstance(body.error, SourceChanged)
        # Nor by who has not asked, where the answer tells its ETag.
        (body,) = store.read_sources([source])
        assert isinstance(body.error, SourceChanged)


@pytest.mark.parametrize("condition", [Condition.DELETE_MANY, Condition.DELETE_ONE])
def test_a_source_that_changed_is_not_deleted_where_its_condition_is_dropped(
    make_world: Callable[[str], FaultWorld], condition: Condition
) -> None:
    world = make_world(f"deletes without {condition}")
    store = S3Store(make_client(world.bench.proxy.endpoint_url, connections=4), threads=2)
    world.seed([("a.json", b"compacted\n")])
    with dropping(world.bench.proxy, condition):
        safe, _ = asked(world, store)
        source = listed(safe, world.source)
        world.seed([("a.json", b"written after\n")])
        (refused,) = safe.delete_sources([source]).refused
        assert refused.final
        assert world.keys(world.source, "logs/") == ["logs/a.json"]
        assert safe.delete_sources([listed(safe, world.source)]).refused == ()
        assert world.keys(world.source, "logs/") == []
