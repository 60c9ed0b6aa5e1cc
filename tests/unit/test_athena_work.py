"""Athena's part of an order: sent, repeated, compared, checked, and recorded in the receipt."""

from __future__ import annotations

from typing import Any

import pytest

from compactor.settings.uris import parse_location
from compactor_tables.athena_work import AthenaWork
from compactor_tables.maintenance_receipts import MaintenanceReceipt, read_receipt
from compactor_tables.orders import Condition, Order, PartitionOrder
from tests.support.athena_tables import CONFLICT, FakeAthena
from tests.support.memory_store import ManualClock, MemoryStore

DAY = 86_400.0
NOW = 1_700_000_000.0
STATE = parse_location("s3://lake/state/")
TABLE = "glue:bronze.events"


def partition(name: str) -> PartitionOrder:
    return PartitionOrder(f"kind={name}", where=(Condition("kind", "identity", name),), files=9)


class Bench:
    """A table with an old and a new snapshot, and an order for two of its partitions."""

    def __init__(self) -> None:
        self.clock = ManualClock(NOW)
        self.store = MemoryStore(self.clock)
        self.store.seed("lake", "seed", b"x", last_modified=NOW)
        self.athena = FakeAthena(self.store)
        self.athena.add_snapshot(NOW - 30 * DAY)
        self.athena.add_snapshot(NOW - 60)

    def work(self, **more: Any) -> AthenaWork:
        given: dict[str, Any] = {
            "steps": ("rewrite", "expire"),
            "partitions": (partition("a"), partition("b")),
            **more,
        }
        order = Order(run_id="r", table=TABLE, engine="athena", **given)
        athena = self.athena
        return AthenaWork(order, self.store, STATE, athena.table, athena.row, self.clock, 5.0)

    def carry_out(self, **more: Any) -> MaintenanceReceipt:
        """As the state machine does; every call is made twice."""
        work, position, answer = self.work(**more), None, None
        for _ in range(200):
            step = work.advance(position, answer)
            assert work.advance(position, answer) == step
            if step.status == "done":
                receipt = read_receipt(STATE, "r", TABLE, self.store)
                assert receipt is not None
                return receipt
            assert len(step.token) >= 32
            assert step.database == "bronze"
            self.clock.advance(1)
            position, answer = step.work, self.athena.run(step.sql, step.token, self.clock.now())
        raise AssertionError("it does not end")

    @property
    def words(self) -> list[str]:
        """The first word of each statement that was sent."""
        return [one.partition(" ")[0] for one in self.athena.sent.values()]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_partitions_are_rewritten_and_compared_before_anything_goes(bench: Bench) -> None:
    receipt = bench.carry_out()

    assert bench.words == ["OPTIMIZE", "SELECT", "OPTIMIZE", "SELECT", "ALTER", "VACUUM"]
    assert (receipt.status, receipt.error) == ("done", "")
    assert [(one.name, one.status, one.rows) for one in receipt.partitions] == [
        ("kind=a", "done", 7),
        ("kind=b", "done", 7),
    ]
    one = receipt.partitions[0]
    assert (one.files, one.bytes, one.into, one.into_bytes) == (9, 900, 1, 800)
    assert (one.before, one.after, receipt.undo) == ("101", "102", "101")
    assert (receipt.expired, receipt.at) == (1, "103")
    assert receipt.steps["vacuum"] == "1 snapshots expired, their files are gone"
    assert receipt.scanned_bytes == 6 * 25_000_000
    assert receipt.dollars == pytest.approx(6 * 25e6 / 2**40 * 5)
    assert receipt.seconds == pytest.approx(9.0)


def test_each_query_is_of_its_own_token_and_partition(bench: Bench) -> None:
    bench.carry_out(verify_rows=False)

    assert [one for one in bench.athena.sent.values() if one.startswith("OPTIMIZE")] == [
        'OPTIMIZE "events" REWRITE DATA USING BIN_PACK WHERE "kind" = \'a\'',
        'OPTIMIZE "events" REWRITE DATA USING BIN_PACK WHERE "kind" = \'b\'',
    ]


def test_of_two_writers_ours_gives_way_and_the_other_partitions_are_done(bench: Bench) -> None:
    bench.athena.reasons = {"OPTIMIZE": [CONFLICT]}

    receipt = bench.carry_out()

    assert [one.status for one in receipt.partitions] == ["gave way", "done"]
    assert receipt.status == "done"


def test_rows_that_differ_fail_loudly_and_nothing_goes(bench: Bench) -> None:
    bench.athena.counts = ("7", "6")

    receipt = bench.carry_out(partitions=(partition("a"),))

    assert receipt.status == "failed"
    assert receipt.partitions[0].why == (
        "7 rows became 6: stop its writers, and return to snapshot 101"
    )
    assert bench.words == ["OPTIMIZE", "SELECT", "ALTER"]
    assert receipt.steps["vacuum"] == "left: nothing goes where something failed"
    assert receipt.undo == "101"


def test_a_comparison_that_fails_is_no_success(bench: Bench) -> None:
    bench.athena.reasons = {"SELECT": ["COLUMN_NOT_FOUND"]}

    receipt = bench.carry_out(partitions=(partition("a"),))

    assert (receipt.status, receipt.partitions[0].status) == ("failed", "failed")
    assert "VACUUM" not in bench.words


def test_a_vacuum_that_deletes_nothing_is_found_out(bench: Bench) -> None:
    bench.athena.may_delete = False

    receipt = bench.carry_out()

    assert receipt.status == "failed"
    assert receipt.error == "AthenaFailed"
    assert "s3:DeleteObject" in receipt.cause
    assert "snap-100.avro" in receipt.cause


def test_a_vacuum_that_expires_nothing_is_found_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeAthena, "_vacuum", lambda self, at: None)

    receipt = bench.carry_out()

    assert receipt.cause == (
        "vacuum: VACUUM succeeded, and none of 1 snapshots that are due is gone"
    )


def test_properties_that_are_right_are_not_set_again(bench: Bench) -> None:
    seconds, versions = "vacuum_max_snapshot_age_seconds", "vacuum_min_snapshots_to_keep"
    bench.athena.properties = {seconds: f"{int(7 * DAY)}", versions: "1"}
    bench.athena.add_snapshot(NOW)

    bench.carry_out(steps=("expire",))

    assert bench.words == ["VACUUM"]


def test_nothing_goes_where_the_properties_could_not_be_set(bench: Bench) -> None:
    bench.athena.reasons = {"ALTER": ["denied"]}

    receipt = bench.carry_out(steps=("expire",))

    assert bench.words == ["ALTER"]
    assert (receipt.status, receipt.cause) == ("failed", "properties: denied")


def test_a_partition_that_athena_cannot_name_is_left(bench: Bench) -> None:
    bucket = PartitionOrder("id_bucket=1", where=(Condition("id", "bucket[4]", "1"),))

    receipt = bench.carry_out(steps=("rewrite",), partitions=(bucket, partition("a")))

    assert [one.status for one in receipt.partitions] == ["left", "done"]
    assert receipt.partitions[0].why == "Athena cannot choose rows by bucket[4] of id"
    assert receipt.status == "done"


def test_nothing_new_is_begun_when_time_is_over_and_what_was_begun_is_compared(
    bench: Bench,
) -> None:
    receipt = bench.carry_out(until=NOW + 1)

    assert bench.words == ["OPTIMIZE", "SELECT"]
    assert (receipt.status, len(receipt.partitions)) == ("more", 1)


def test_a_partition_with_nothing_to_rewrite_is_left_and_not_compared(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeAthena, "_apply", lambda self, word, sql, at: None)

    receipt = bench.carry_out(steps=("rewrite",))

    assert bench.words == ["OPTIMIZE", "OPTIMIZE"]
    assert [one.why for one in receipt.partitions] == ["nothing to rewrite any more"] * 2
    assert (receipt.status, receipt.undo) == ("done", "")


def test_an_order_that_is_begun_again_sends_and_counts_nothing_twice(bench: Bench) -> None:
    first = bench.carry_out()
    sent = dict(bench.athena.sent)
    bench.athena.add_snapshot(NOW + 99)

    again = bench.carry_out()

    assert bench.athena.sent == sent
    first.at = again.at
    assert again == first


def test_of_an_order_that_is_begun_again_what_was_not_answered_yet_counts(bench: Bench) -> None:
    work = bench.work(steps=("expire",))
    step = work.advance(None, None)
    answer = bench.athena.run(step.sql, step.token, NOW)
    work.advance(step.work, answer)

    receipt = bench.carry_out(steps=("expire",))

    # Of the properties that are set, Athena is not asked again.
    assert bench.words == ["ALTER", "VACUUM"]
    assert receipt.steps["vacuum"] == "1 snapshots expired, their files are gone"
    assert receipt.scanned_bytes == 2 * 25_000_000


def test_snapshots_that_a_tag_names_are_not_due(bench: Bench) -> None:
    bench.athena.refs = {"t": {"snapshot-id": 100, "type": "tag"}}

    receipt = bench.carry_out(steps=("expire",), partitions=())

    assert receipt.expired == 0
    assert receipt.status == "done"


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_others_write_beside_a_statement_is_not_in_its_comparison(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    apply = FakeAthena._apply

    def apply_and_write(self: FakeAthena, word: str, sql: str, at: float) -> None:
        if word == "OPTIMIZE" and when == "before":
            self.add_snapshot(at)
        apply(self, word, sql, at)
        if word == "OPTIMIZE" and when == "after":
            self.add_snapshot(at)

    monkeypatch.setattr(FakeAthena, "_apply", apply_and_write)

    receipt = bench.carry_out(steps=("rewrite",), partitions=(partition("a"),))

    versions = ("102", "103") if when == "before" else ("101", "102")
    assert receipt.partitions[0].status == "done"
    assert (receipt.partitions[0].before, receipt.partitions[0].after) == versions
    (comparison,) = (one for one in bench.athena.sent.values() if one.startswith("SELECT"))
    assert all(f"FOR VERSION AS OF {one} " in comparison for one in versions)
    assert (receipt.partitions[0].files, receipt.undo) == (9, versions[0])


@pytest.mark.parametrize(
    ("counts", "status", "why"),
    [
        (("7", "7"), "done", "snapshot 103 came in between"),
        (("7", "8"), "left", "snapshot 103 came in between, and its rows were not compared"),
    ],
)
def test_rows_that_others_changed_between_two_commits_of_a_statement_are_no_fault(
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    counts: tuple[str, str],
    status: str,
    why: str,
) -> None:
    apply = FakeAthena._apply

    def apply_twice(self: FakeAthena, word: str, sql: str, at: float) -> None:
        if word == "OPTIMIZE":
            apply(self, word, sql, at)
            self.add_snapshot(at)
        apply(self, word, sql, at)

    monkeypatch.setattr(FakeAthena, "_apply", apply_twice)
    bench.athena.counts = counts

    receipt = bench.carry_out(steps=("rewrite",), partitions=(partition("a"),))

    assert bench.words == ["OPTIMIZE", "SELECT"]
    (rewritten,) = receipt.partitions
    assert (rewritten.status, rewritten.files, receipt.undo) == (status, 18, "101")
    assert rewritten.why == why


def test_what_others_append_while_nothing_is_rewritten_is_no_rewrite(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeAthena, "_apply", lambda self, word, sql, at: self.add_snapshot(at))

    receipt = bench.carry_out(steps=("rewrite",), partitions=(partition("a"),))

    assert bench.words == ["OPTIMIZE"]
    assert receipt.partitions[0].why == "nothing to rewrite any more"
