"""Glue's optimizers: set up as an order wants them, watched, and reported."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from compactor.errors import AlreadyExists, ObjectMissing, TransientStoreError
from compactor.settings.tables import TableAddress, parse_table
from compactor.settings.uris import parse_location
from compactor_tables import document_keys as places
from compactor_tables.maintenance_receipts import MaintenanceReceipt, read_receipt
from compactor_tables.optimizers import (
    MOST_LOOKS,
    OptimizerWork,
    holds,
    switched_on,
    wanted,
)
from compactor_tables.orders import Order
from tests.support.document_tables import table_of
from tests.support.memory_store import ManualClock, MemoryStore

DAY = 86_400.0
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
STATE = parse_location("s3://lake/state/")
TABLE = parse_table("glue:bronze.events")
ROLE = "arn:aws:iam::123456789012:role/optimizers"


@dataclass
class FakeGlue:
    """Implements :class:`compactor_tables.service_ports.Optimizers`."""

    found: dict[str, dict[str, Any]] = field(default_factory=dict)
    history: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)

    def look(self, table: TableAddress, kind: str) -> Mapping[str, Any] | None:
        given = self.found.get(kind)
        return None if given is None else {"type": kind, "configuration": given}

    def create(self, table: TableAddress, kind: str, configuration: Mapping[str, Any]) -> None:
        if kind in self.found:
            raise AlreadyExists(kind)
        self.changes.append(f"create {kind}")
        self.found[kind] = dict(configuration)

    def update(self, table: TableAddress, kind: str, configuration: Mapping[str, Any]) -> None:
        if kind not in self.found:
            raise ObjectMissing(kind)
        self.changes.append(f"update {kind}")
        self.found[kind] = dict(configuration)

    def runs(self, table: TableAddress, kind: str, most: int) -> Sequence[Mapping[str, Any]]:
        return self.history.get(kind, [])[:most]


def run(minutes: int, event: str = "completed", hours: float = 0.25, **more: Any) -> dict[str, Any]:
    """A run that began so many minutes after noon."""
    began = NOON + timedelta(minutes=minutes)
    figures = {"NumberOfFilesCompacted": 90, "NumberOfBytesCompacted": 9_000, "DpuHours": hours}
    ended = (
        {} if event in ("starting", "in_progress") else {"endTimestamp": began + timedelta(0, 60)}
    )
    return {
        "eventType": event,
        "startTimestamp": began,
        "compactionMetrics": {"IcebergMetrics": figures},
        **ended,
        **more,
    }


def order(**more: Any) -> Order:
    given: dict[str, Any] = {"run_id": "r", "steps": ("rewrite", "expire", "orphans"), **more}
    return Order(table=TABLE.text, engine="glue", **given)


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock(NOON.timestamp())
        self.store = MemoryStore(self.clock)
        self.store.seed("lake", "seed", b"x", last_modified=0.0)
        self.glue = FakeGlue()

    def look(self, looks: int = 0, **more: Any) -> str:
        work = OptimizerWork(
            order(**more), self.store, STATE, self.glue, self.clock, ROLE, dollars_per_dpu_hour=0.44
        )
        return work.look(looks)

    def receipt(self, run_id: str = "r") -> MaintenanceReceipt:
        found = read_receipt(STATE, run_id, TABLE.text, self.store)
        assert found is not None
        return found


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_an_order_is_a_configuration_of_each_optimizer() -> None:
    given = order(
        how="zorder", min_files=9, keep_seconds=8.5 * DAY, undo_seconds=DAY, keep_versions=3
    )

    common = {"roleArn": ROLE, "enabled": True}
    assert wanted(given, ROLE) == {
        "compaction": {
            **common,
            "compactionConfiguration": {
                "icebergConfiguration": {"strategy": "z-order", "minInputFiles": 9}
            },
        },
        "retention": {
            **common,
            "retentionConfiguration": {
                "icebergConfiguration": {
                    "snapshotRetentionPeriodInDays": 9,
                    "numberOfSnapshotsToRetain": 3,
                    "cleanExpiredFiles": True,
                }
            },
        },
        "orphan_file_deletion": {
            **common,
            "orphanFileDeletionConfiguration": {
                "icebergConfiguration": {"orphanFileRetentionPeriodInDays": 7}
            },
        },
    }


def test_snapshots_stay_as_long_as_a_rewrite_can_be_undone() -> None:
    given = wanted(order(steps=("expire",), keep_seconds=7 * DAY, undo_seconds=10 * DAY), ROLE)

    inner = given["retention"]["retentionConfiguration"]["icebergConfiguration"]
    assert inner["snapshotRetentionPeriodInDays"] == 10


def test_optimizers_that_are_missing_are_made(bench: Bench) -> None:
    assert bench.look() == "done"

    assert bench.glue.found == wanted(order(), ROLE)
    assert bench.receipt().steps["compaction set"] == "made"
    assert bench.receipt().status == "done"


def test_those_that_are_right_are_left_alone_with_what_else_they_say(bench: Bench) -> None:
    given = wanted(order(), ROLE)
    for kind, one in given.items():
        bench.glue.found[kind] = {**one, "vpcConfiguration": {"glueConnectionName": "vpc"}}
    del bench.glue.found["retention"]["retentionConfiguration"]["icebergConfiguration"][
        "cleanExpiredFiles"
    ]

    bench.look()

    assert bench.glue.changes == ["update retention"]
    assert bench.glue.found["retention"]["vpcConfiguration"] == {"glueConnectionName": "vpc"}
    assert all(holds(bench.glue.found[kind], wanted(order(), ROLE)[kind]) for kind in given)


def test_runs_are_reported_once(bench: Bench) -> None:
    bench.glue.history = {
        "compaction": [run(20), run(10, hours=0.5)],
        "retention": [
            run(
                5,
                compactionMetrics={},
                retentionMetrics={
                    "IcebergMetrics": {"NumberOfDataFilesDeleted": 7, "DpuHours": 0.1}
                },
            )
        ],
    }
    bench.look()

    receipt = bench.receipt()
    assert [(one.files, one.bytes, one.seconds) for one in receipt.partitions] == [
        (90, 9_000, 60.0),
        (90, 9_000, 60.0),
    ]
    assert receipt.dpu_hours == pytest.approx(0.85)
    assert receipt.dollars == pytest.approx(0.85 * 0.44)
    assert receipt.deleted_files == 7
    assert receipt.steps["compaction"] == "2 runs, 0.75 DPU-hours"

    bench.glue.history["compaction"].insert(0, run(30))
    bench.look(run_id="r2")
    kept = bench.store.get(*places.optimizers_key(STATE, TABLE))
    assert {*json.loads(kept)} == {*table_of("OptimizerLooks")}
    assert bench.receipt("r2").steps["compaction"] == "1 runs, 0.25 DPU-hours"


def test_a_call_that_is_made_twice_keeps_what_the_first_one_reported(bench: Bench) -> None:
    bench.glue.history = {"compaction": [run(20)]}
    bench.look()
    first = bench.receipt()

    bench.look()

    assert bench.receipt() == first


def test_a_run_that_goes_on_is_waited_for_and_not_for_ever(bench: Bench) -> None:
    bench.glue.history = {"compaction": [run(20, "in_progress"), run(10)]}

    assert bench.look(0) == "more"
    assert bench.look(MOST_LOOKS - 1) == "done"
    assert bench.receipt().steps["compaction"] == "1 runs, 0.25 DPU-hours"


def test_a_run_that_goes_on_is_not_waited_for_when_time_is_over(bench: Bench) -> None:
    bench.glue.history = {"compaction": [run(20, "starting")]}

    assert bench.look(0, until=bench.clock.now()) == "done"


def test_a_failure_is_reported_with_its_reason(bench: Bench) -> None:
    bench.glue.history = {"compaction": [run(20, "failed", error="no s3:PutObject")]}
    bench.look()

    receipt = bench.receipt()
    assert (receipt.status, receipt.error) == ("failed", "OptimizerFailed")
    assert receipt.cause == "compaction: no s3:PutObject"
    assert "1 failed: no s3:PutObject" in receipt.steps["compaction"]


def test_a_failure_before_a_success_is_no_failure_now(bench: Bench) -> None:
    bench.glue.history = {"compaction": [run(20), run(10, "failed", error="throttled")]}
    bench.look()

    assert bench.receipt().status == "done"
    assert "1 failed: throttled" in bench.receipt().steps["compaction"]


def test_one_that_glue_suspended_stays_so_and_is_reported(bench: Bench) -> None:
    bench.glue.found = wanted(order(), ROLE)
    bench.glue.found["compaction"]["enabled"] = False
    bench.glue.history = {
        "compaction": [run(n, "failed", error=f"no right {n}") for n in (40, 30, 20, 10)]
    }
    bench.look()

    receipt = bench.receipt()
    assert bench.glue.changes == []
    assert (receipt.status, receipt.error) == ("failed", "OptimizerSuspended")
    assert "suspended compaction after 4 failures" in receipt.cause
    assert receipt.cause.endswith("no right 40")


def test_one_that_was_switched_off_is_switched_on_as_the_rule_says(bench: Bench) -> None:
    bench.glue.found = wanted(order(), ROLE)
    bench.glue.found["compaction"]["enabled"] = False
    bench.glue.history = {"compaction": [run(n, "failed", error="x") for n in (40, 30, 20)]}
    bench.look()

    assert bench.glue.changes == ["update compaction"]
    assert bench.glue.found["compaction"]["enabled"] is True


def test_one_that_another_made_meanwhile_is_taken_as_it_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = {"roleArn": "other", "enabled": True}
    original = bench.glue.look

    def look(table: TableAddress, kind: str) -> Mapping[str, Any] | None:
        found = original(table, kind)
        bench.glue.found.setdefault(kind, dict(others))
        return found

    monkeypatch.setattr(bench.glue, "look", look)
    bench.look(steps=("rewrite",))

    assert bench.glue.changes == ["update compaction"]
    assert bench.glue.found["compaction"]["roleArn"] == ROLE


def test_a_call_that_dies_before_it_remembers_reports_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.glue.history = {"compaction": [run(20)]}
    original, puts = bench.store.put, []

    def put(bucket: str, key: str, body: bytes, *, content_type: str = "") -> None:
        puts.append(key)
        if key.endswith("optimizers.json"):
            raise TransientStoreError("gone")
        original(bucket, key, body, content_type=content_type)

    monkeypatch.setattr(bench.store, "put", put)
    with pytest.raises(TransientStoreError):
        bench.look()
    monkeypatch.undo()

    bench.look()

    assert bench.receipt().steps["compaction"] == "1 runs, 0.25 DPU-hours"


def test_who_owns_a_table_is_seen_by_what_is_switched_on() -> None:
    glue = FakeGlue({"retention": {"enabled": True}, "compaction": {"enabled": False}})

    assert switched_on(TABLE, glue) == ["retention"]
    assert switched_on(parse_table("delta:s3://lake/gold/"), glue) == []
