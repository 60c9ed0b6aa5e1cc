"""Athena's part of an order: sent, repeated, compared, checked, and recorded in the receipt."""

from __future__ import annotations

from typing import Any

import pytest

from compactor.errors import IntegrityError
from compactor.settings.uris import parse_location
from compactor_tables.athena import MOST_TRIES
from compactor_tables.athena_work import AthenaWork
from compactor_tables.maintenance_receipts import MaintenanceReceipt, Position, read_receipt
from compactor_tables.measures import PartitionValue
from compactor_tables.orders import Condition, Order, PartitionOrder
from compactor_tables.snapshots import read_state
from compactor_tables.touched_partitions import Touched
from tests.support.athena_tables import CONFLICT, MORE_OPTIMIZE, MORE_VACUUM, FakeAthena
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
        told = self.athena
        return AthenaWork(order, self.store, STATE, told, told, told, self.clock, 5.0)

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


def test_a_statement_that_takes_more_runs_is_sent_again(bench: Bench) -> None:
    bench.athena.reasons = {"OPTIMIZE": [MORE_OPTIMIZE] * 3, "VACUUM": [MORE_VACUUM]}

    receipt = bench.carry_out()

    assert bench.words.count("OPTIMIZE") == 5
    assert bench.words.count("VACUUM") == 2
    assert receipt.status == "done"
    assert len(receipt.partitions) == 2


def test_a_statement_that_always_takes_more_runs_comes_to_an_end(bench: Bench) -> None:
    bench.athena.reasons = {"OPTIMIZE": [MORE_OPTIMIZE] * 1_000}

    receipt = bench.carry_out(steps=("rewrite",), partitions=(partition("a"),))

    assert bench.words == ["OPTIMIZE"] * MOST_TRIES
    assert receipt.status == "failed"
    assert receipt.partitions[0].why == MORE_OPTIMIZE


def test_of_two_writers_ours_gives_way_and_the_other_partitions_are_done(bench: Bench) -> None:
    bench.athena.reasons = {"OPTIMIZE": [CONFLICT]}

    receipt = bench.carry_out()

    assert [one.status for one in receipt.partitions] == ["gave way", "done"]
    assert receipt.status == "done"


def test_rows_that_differ_fail_loudly_and_nothing_goes(bench: Bench) -> None:
    bench.athena.counts = {"after": ("6", "AB")}

    receipt = bench.carry_out(partitions=(partition("a"),))

    assert receipt.status == "failed"
    assert receipt.partitions[0].why == (
        "its rows are not those of before: 7 with hash AB, and now 6 with AB"
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
    assert "1 of 1 files" in receipt.cause


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


def test_a_cancelled_query_is_asked_again_as_another_one(bench: Bench) -> None:
    work = bench.work()
    first = work.advance(None, None)
    cancelled = {"QueryExecution": {"Status": {"State": "CANCELLED"}, "QueryExecutionId": "q"}}

    second = work.advance(first.work, cancelled)

    assert (second.sql, second.status) == (first.sql, "query")
    assert second.token != first.token
    assert second.work == Position(0, 1, "101")


def kind(name: str) -> list[Touched]:
    return [Touched(0, f"kind={name}", (PartitionValue("kind", "identity", name),))]


CLOSED: dict[str, Any] = {"closed_before": NOW - 3_600, "measured": "101", "verify_rows": False}


def test_a_partition_that_was_written_since_the_plan_is_left(bench: Bench) -> None:
    bench.athena.wrote = {bench.athena.add_snapshot(NOW - 5): kind("a")}

    receipt = bench.carry_out(**CLOSED)

    assert [one for one in bench.athena.sent.values() if one.startswith("OPTIMIZE")] == [
        'OPTIMIZE "events" REWRITE DATA USING BIN_PACK WHERE "kind" = \'b\''
    ]
    assert [(one.status, one.why) for one in receipt.partitions] == [
        ("left", "snapshot 102 wrote it since"),
        ("done", ""),
    ]
    assert receipt.status == "done"


def test_each_partition_is_looked_at_right_before_it_is_rewritten(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = FakeAthena._apply

    def apply_and_write(self: FakeAthena, word: str, sql: str, at: float) -> None:
        apply(self, word, sql, at)
        if word == "OPTIMIZE":
            self.wrote[self.add_snapshot(at)] = kind("b")

    monkeypatch.setattr(FakeAthena, "_apply", apply_and_write)

    receipt = bench.carry_out(steps=("rewrite",), **CLOSED)

    assert bench.words == ["OPTIMIZE"]
    assert [(one.name, one.status) for one in receipt.partitions] == [
        ("kind=a", "done"),
        ("kind=b", "left"),
    ]


@pytest.mark.parametrize(
    ("touched", "leaves"),
    [
        (kind("c"), False),
        # Of an older division of the table, which says less.
        ([Touched(1, "", ())], True),
        ([Touched(1, "id=7", (PartitionValue("id", "identity", "7"),))], True),
        ([Touched(1, "kind=b", (PartitionValue("kind", "identity", "b"),))], False),
    ],
)
def test_only_what_may_share_rows_with_a_partition_counts(
    bench: Bench, touched: list[Touched], leaves: bool
) -> None:
    bench.athena.wrote = {bench.athena.add_snapshot(NOW - 5): touched}

    receipt = bench.carry_out(steps=("rewrite",), partitions=(partition("a"),), **CLOSED)

    assert (receipt.partitions[0].status == "left") is leaves


def test_rewrites_of_others_and_what_the_plan_has_seen_do_not_count(bench: Bench) -> None:
    bench.athena.wrote = {"101": kind("a")}
    bench.athena.wrote[bench.athena.add_snapshot(NOW - 5, operation="replace")] = kind("a")

    receipt = bench.carry_out(steps=("rewrite",), partitions=(partition("a"),), **CLOSED)

    assert receipt.partitions[0].status == "done"


def test_where_the_planned_snapshot_is_gone_all_since_the_time_count(bench: Bench) -> None:
    bench.athena.wrote = {"101": kind("a")}
    unknown = {**CLOSED, "measured": "7"}

    receipt = bench.carry_out(steps=("rewrite",), partitions=(partition("a"),), **unknown)

    assert receipt.partitions[0].why == "snapshot 101 wrote it since"
    bench = Bench()
    del bench.athena.snapshots[0]
    bench.athena.add_snapshot(NOW - 5)
    receipt = bench.carry_out(steps=("rewrite",), partitions=(partition("a"),), **unknown)
    assert "have expired" in receipt.partitions[0].why


def test_a_partition_that_is_written_between_two_runs_of_a_statement_is_left_there(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def more(self: FakeAthena, sql: str, token: str, at: float) -> dict[str, Any]:
        self.sent[token] = sql
        self.add_snapshot(at, operation="replace")
        self.wrote[self.add_snapshot(at)] = kind("a")
        failed = {"Status": {"State": "FAILED", "StateChangeReason": MORE_OPTIMIZE}}
        return {"QueryExecution": failed}

    monkeypatch.setattr(FakeAthena, "run", more)

    one = {**CLOSED, "steps": ("rewrite",), "partitions": (partition("a"),), "verify_rows": True}
    receipt = bench.carry_out(**one)

    assert bench.words == ["OPTIMIZE"]
    (left,) = receipt.partitions
    assert (left.status, left.before, receipt.undo) == ("left", "101", "101")
    assert "a part of it was rewritten before that" in left.why


def test_an_order_that_is_begun_again_sends_and_counts_nothing_twice(bench: Bench) -> None:
    bench.athena.reasons = {"OPTIMIZE": [MORE_OPTIMIZE]}
    bench.athena.wrote = {bench.athena.add_snapshot(NOW - 5): kind("b")}
    first = bench.carry_out(**CLOSED)
    sent = dict(bench.athena.sent)
    bench.athena.wrote[bench.athena.add_snapshot(NOW + 99)] = kind("a")

    again = bench.carry_out(**CLOSED)

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
    body = bench.store.get("lake", f"t/metadata/{bench.athena.version}.metadata.json")
    state = read_state("x", body)
    tagged = read_state("x", body.replace(b'"refs": {}', b'"refs": {"t": {"snapshot-id": 100}}'))

    assert [one.snapshot_id for one in state.due(NOW, DAY, 1)] == [100]
    assert tagged.due(NOW, DAY, 1) == []
    assert state.due(NOW, DAY, 2) == []
    assert state.due(NOW, 31 * DAY, 1) == []


def test_metadata_that_is_invalid_is_reported() -> None:
    with pytest.raises(
        IntegrityError, match=r"s3://lake/m is damaged: .* no metadata of an Iceberg"
    ):
        read_state("s3://lake/m", b"\x1f\x8bbroken")


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_others_write_beside_a_statement_is_not_in_its_comparison(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    apply = FakeAthena._apply

    def apply_and_write(self: FakeAthena, word: str, sql: str, at: float) -> None:
        if word == "OPTIMIZE" and when == "before":
            self.wrote[self.add_snapshot(at)] = kind("a")
        apply(self, word, sql, at)
        if word == "OPTIMIZE" and when == "after":
            self.wrote[self.add_snapshot(at)] = kind("a")

    monkeypatch.setattr(FakeAthena, "_apply", apply_and_write)

    one = {**CLOSED, "steps": ("rewrite",), "partitions": (partition("a"),), "verify_rows": True}
    receipt = bench.carry_out(**one)

    versions = ("102", "103") if when == "before" else ("101", "102")
    assert receipt.partitions[0].status == "done"
    assert (receipt.partitions[0].before, receipt.partitions[0].after) == versions
    (comparison,) = (one for one in bench.athena.sent.values() if one.startswith("SELECT"))
    assert all(f"FOR VERSION AS OF {one} " in comparison for one in versions)
    assert (receipt.partitions[0].files, receipt.undo) == (9, versions[0])


def test_what_others_write_between_two_commits_of_a_statement_is_reported(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = FakeAthena._apply

    def apply_twice(self: FakeAthena, word: str, sql: str, at: float) -> None:
        apply(self, word, sql, at)
        self.wrote[self.add_snapshot(at)] = kind("a")
        apply(self, word, sql, at)

    monkeypatch.setattr(FakeAthena, "_apply", apply_twice)

    one = {**CLOSED, "steps": ("rewrite",), "partitions": (partition("a"),), "verify_rows": True}
    receipt = bench.carry_out(**one)

    assert bench.words == ["OPTIMIZE"]
    (left,) = receipt.partitions
    assert (left.status, left.files, receipt.undo) == ("left", 18, "101")
    assert left.why == "snapshot 103 wrote it in between, and its rows were not compared"


def test_what_others_append_while_nothing_is_rewritten_is_no_rewrite(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeAthena, "_apply", lambda self, word, sql, at: self.add_snapshot(at))

    receipt = bench.carry_out(steps=("rewrite",), partitions=(partition("a"),))

    assert bench.words == ["OPTIMIZE"]
    assert receipt.partitions[0].why == "nothing to rewrite any more"
