"""Athena's loop killed around each of its writes, and begun again: nothing is done twice.

Right after a write, and right before the next: in between Athena may have done what it was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import msgspec
import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")

from compactor_tables.lease import LEASE_SECONDS
from compactor_tables.maintenance_receipts import MaintenanceReceipt
from compactor_tables.maintenance_report import read_report
from tests.support.killed_athena import PARTITIONS, TABLE, AthenaWorld
from tests.support.killed_tables import DAY, STATE
from tests.support.memory_hooks import Crashed

_FILES = 9 * len(PARTITIONS)


def killed_worlds(monkeypatch: pytest.MonkeyPatch) -> Iterator[AthenaWorld]:
    """Of each write one whose run was killed right before it, and one that was right behind."""
    whole = AthenaWorld(monkeypatch)
    writes = whole.writes(lambda: whole.run("one"))
    assert writes > 10
    for number in range(1, writes + 1):
        for kill in (AthenaWorld.kill_before, AthenaWorld.kill_after):
            world = AthenaWorld(monkeypatch)
            kill(world, number)
            with suppress(Crashed):
                world.run("one")
            world.store.hooks.clear()
            yield world


def receipt_of(world: AthenaWorld, run_id: str) -> MaintenanceReceipt:
    found = world.receipt(run_id)
    assert found is not None
    return found


def told(receipt: MaintenanceReceipt) -> dict[str, object]:
    """All but the snapshots, which are numbered as they come."""
    found: dict[str, object] = msgspec.to_builtins(receipt)
    return found


def check_end(world: AthenaWorld, run_id: str) -> None:
    lease = world.leases.look(TABLE)
    assert lease is not None
    assert lease.run_id == ""
    report = read_report(STATE, run_id, world.store)
    assert report is not None
    assert (report.status, report.totals.files) == ("succeeded", _FILES)


def test_begun_again_by_its_name_it_does_and_records_what_it_would_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = AthenaWorld(monkeypatch)
    assert whole.run("one")["status"] == "succeeded"
    # Without the two runs that did a part of the work.
    assert receipt_of(whole, "one").scanned_bytes == (len(whole.athena.sent) - 2) * 25_000_000
    for world in killed_worlds(monkeypatch):
        world.patch()
        world.clock.advance(60)
        assert world.run("one")["status"] == "succeeded"
        check_end(world, "one")
        assert list(world.athena.sent.values()) == list(whole.athena.sent.values())
        assert told(receipt_of(world, "one")) == told(receipt_of(whole, "one"))


def test_the_next_run_after_the_lease_does_its_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for world in killed_worlds(monkeypatch):
        world.patch()
        world.clock.advance(LEASE_SECONDS + DAY)
        assert world.run("two")["status"] == "succeeded"
        check_end(world, "two")


def test_the_next_run_leaves_the_table_while_the_lease_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for world in killed_worlds(monkeypatch):
        world.patch()
        lease, sent = world.leases.look(TABLE), dict(world.athena.sent)
        assert world.run("two")["status"] == "succeeded"
        if lease is not None and lease.run_id:
            assert world.athena.sent == sent
            assert world.leases.look(TABLE) == lease


@pytest.mark.parametrize("stored", [True, False])
def test_an_answer_that_is_an_error_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, stored: bool
) -> None:
    whole = AthenaWorld(monkeypatch)
    writes = whole.writes(lambda: whole.run("one"))
    for number in range(1, writes + 1):
        world = AthenaWorld(monkeypatch)
        world.fail_at(number, stored=stored)
        assert world.run("one")["status"] == "succeeded"
        assert world.errors, number
        check_end(world, "one")
        assert list(world.athena.sent.values()) == list(whole.athena.sent.values())
        assert told(receipt_of(world, "one")) == told(receipt_of(whole, "one"))
