"""What Athena is asked: identifiers and values cannot break out, partitions are named exactly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor_tables.athena import (
    COUNT,
    MOST_STATEMENTS,
    OPTIMIZE,
    PROPERTIES,
    VACUUM,
    NotAddressable,
    QueryEnd,
    literal,
    predicate,
    query_end,
    sql,
    statements,
    token,
)
from compactor_tables.orders import Condition, Order, PartitionOrder

TYPES = {
    "day": "date",
    "ts": "timestamp",
    "tz": "timestamptz",
    "n": "int",
    "id": "long",
    "kind": "string",
    "price": "decimal(9,2)",
    "flag": "boolean",
    'od"d': "string",
    "weight": "double",
}


def order(*conditions: Condition, **more: Any) -> Order:
    partitions = (PartitionOrder("p", where=conditions, files=9),)
    given: dict[str, Any] = {"partitions": partitions, "steps": ("rewrite",), **more}
    return Order(run_id="r", table="glue:bronze.events", engine="athena", **given)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition("kind", "identity", "a'b"), "\"kind\" = 'a''b'"),
        (Condition("kind", "identity", None), '"kind" IS NULL'),
        (Condition('od"d', "identity", "x"), '"od""d" = \'x\''),
        (Condition("n", "identity", "-5"), '"n" = -5'),
        (Condition("id", "identity", "5"), "\"id\" = BIGINT '5'"),
        (Condition("price", "identity", "1.50"), "\"price\" = DECIMAL '1.50'"),
        (Condition("flag", "identity", "True"), '"flag" = true'),
        (Condition("day", "identity", "2026-11-01"), "\"day\" = DATE '2026-11-01'"),
        (
            Condition("ts", "identity", "2026-11-01T05:00:00"),
            "\"ts\" = TIMESTAMP '2026-11-01 05:00:00.000000'",
        ),
        (
            Condition("day", "month", "2026-12"),
            "(\"day\" >= DATE '2026-12-01' AND \"day\" < DATE '2027-01-01')",
        ),
        (
            Condition("day", "year", "2026"),
            "(\"day\" >= DATE '2026-01-01' AND \"day\" < DATE '2027-01-01')",
        ),
        (
            Condition("ts", "day", "2026-02-28"),
            (
                "(\"ts\" >= TIMESTAMP '2026-02-28 00:00:00.000000'"
                " AND \"ts\" < TIMESTAMP '2026-03-01 00:00:00.000000')"
            ),
        ),
        (
            Condition("tz", "hour", "2026-12-31-23"),
            (
                "(\"tz\" >= TIMESTAMP '2026-12-31 23:00:00.000000 UTC'"
                " AND \"tz\" < TIMESTAMP '2027-01-01 00:00:00.000000 UTC')"
            ),
        ),
        (Condition("n", "truncate[10]", "-10"), '("n" >= -10 AND "n" < 0)'),
        (Condition("n", "void", None), ""),
    ],
)
def test_a_condition_holds_for_its_partition_alone(condition: Condition, expected: str) -> None:
    assert predicate((condition,), TYPES) == expected


def test_conditions_of_several_columns_hold_together() -> None:
    where = (Condition("day", "identity", "2026-11-01"), Condition("kind", "identity", "a"))

    assert predicate(where, TYPES) == "\"day\" = DATE '2026-11-01' AND \"kind\" = 'a'"


@pytest.mark.parametrize(
    "condition",
    [
        Condition("id", "bucket[16]", "3"),
        Condition("kind", "truncate[4]", "abcd"),
        Condition("weight", "identity", "1.5"),
        Condition("nobody", "identity", "1"),
        Condition("n", "identity", "1 OR 1=1"),
        Condition("n", "day", "2026-11-01"),
        Condition("day", "day", "yesterday"),
        Condition("day", "identity", "2026-11-01' OR '1'='1"),
        Condition("flag", "identity", "maybe"),
        Condition("price", "identity", "NaN"),
        Condition("price", "identity", "1'--"),
        Condition("kind", "identity", "a\x00b"),
    ],
)
def test_what_athena_cannot_distinguish_is_not_asked(condition: Condition) -> None:
    with pytest.raises(NotAddressable):
        predicate((condition,), TYPES)


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_no_text_leaves_its_quotes(value: str) -> None:
    written = literal(value, "string")

    assert (written[0], written[-1]) == ("'", "'")
    assert "'" not in written[1:-1].replace("''", "")
    assert written[1:-1].replace("''", "'") == value


@given(st.text(), st.sampled_from(["int", "long", "date", "timestamp", "decimal(9,2)", "boolean"]))
def test_no_other_value_brings_a_quote(value: str, kind: str) -> None:
    try:
        written = literal(value, kind)
    except NotAddressable:
        return
    assert written.count("'") in (0, 2)
    assert "--" not in written.replace("DECIMAL '-", "")


def test_a_partition_is_rewritten_and_its_rows_are_compared() -> None:
    given = order(Condition("kind", "identity", "a"))
    rewrite, verify = statements(given, TYPES)

    assert (rewrite.kind, verify.kind, verify.partition) == (OPTIMIZE, COUNT, "p")
    assert sql(rewrite, given) == (
        'OPTIMIZE "events" REWRITE DATA USING BIN_PACK WHERE "kind" = \'a\''
    )
    assert sql(verify, given, ("76", "77")) == (
        'SELECT (SELECT count(*) FROM "events" FOR VERSION AS OF 76 WHERE "kind" = \'a\'),'
        ' (SELECT count(*) FROM "events" FOR VERSION AS OF 77 WHERE "kind" = \'a\')'
    )


def test_a_whole_table_has_no_condition() -> None:
    given = order(verify_rows=False)

    (rewrite,) = statements(given, TYPES)
    assert sql(rewrite, given) == 'OPTIMIZE "events" REWRITE DATA USING BIN_PACK'


def test_nothing_goes_before_the_table_keeps_what_the_order_keeps() -> None:
    day = 86_400.0
    given = order(
        steps=("expire", "orphans"),
        keep_seconds=8 * day,
        orphan_seconds=3 * day,
        keep_versions=3,
    )

    properties, vacuum = statements(given, TYPES)
    assert (properties.kind, vacuum.kind) == (PROPERTIES, VACUUM)
    assert sql(properties, given) == (
        "ALTER TABLE events SET TBLPROPERTIES ('vacuum_max_snapshot_age_seconds'='691200',"
        " 'vacuum_min_snapshots_to_keep'='3')"
    )
    assert sql(vacuum, given) == "VACUUM events"


@pytest.mark.parametrize(
    ("name", "shown"), [("_raw", "`_raw`"), ("a-b", "`a-b`"), ("Events", "`Events`")]
)
def test_vacuum_has_backticks_where_a_name_is_not_plain(name: str, shown: str) -> None:
    given = Order(run_id="r", table=f"glue:bronze.{name}", engine="athena", steps=("expire",))

    assert sql(statements(given, {})[-1], given) == f"VACUUM {shown}"


def test_a_partition_that_cannot_be_named_is_left_and_the_others_are_done() -> None:
    partitions = (
        PartitionOrder("id_bucket=3", where=(Condition("id", "bucket[16]", "3"),)),
        PartitionOrder("kind=a", where=(Condition("kind", "identity", "a"),)),
    )
    given = order(partitions=partitions, verify_rows=False)

    left, done = statements(given, TYPES)
    assert left.unfit == "Athena cannot choose rows by bucket[16] of id"
    assert (done.unfit, done.partition) == ("", "kind=a")


def test_an_execution_has_room_for_all_statements() -> None:
    partitions = tuple(
        PartitionOrder(f"n={n}", where=(Condition("n", "identity", f"{n}"),)) for n in range(2_000)
    )

    found = statements(order(partitions=partitions, steps=("rewrite", "expire")), TYPES)
    assert len(found) == MOST_STATEMENTS + 2
    assert [one.kind for one in found[-2:]] == [PROPERTIES, VACUUM]


def test_a_token_is_the_same_for_a_statement_and_another_for_the_next() -> None:
    tokens = [token(order(), number) for number in range(3)]

    assert len({*tokens}) == 3
    assert {len(one) for one in tokens} == {64}
    assert token(order(), 2) == tokens[2]


def _caught(**execution: Any) -> dict[str, str]:
    return {"Error": "States.TaskFailed", "Cause": json.dumps({"QueryExecution": execution})}


def test_a_failure_shows_what_athena_said() -> None:
    reason = "COLUMN_NOT_FOUND: no"
    end = query_end(_caught(Status={"State": "FAILED", "StateChangeReason": reason}))

    assert (end.state, end.reason, end.gave_way) == ("FAILED", reason, False)


def test_a_query_that_never_began_failed_with_what_was_caught() -> None:
    end = query_end({"Error": "States.Timeout"})

    assert (end.state, end.reason) == ("FAILED", "States.Timeout: ")


def test_a_lost_race_is_distinguished() -> None:
    reason = "ICEBERG_COMMIT_ERROR: Failed to commit Iceberg update to table: events"
    assert query_end(_caught(Status={"State": "FAILED", "StateChangeReason": reason})).gave_way


@pytest.mark.parametrize(
    ("state", "scanned", "billed"),
    [
        ("SUCCEEDED", 0, 10_000_000),
        ("SUCCEEDED", 10_000_001, 11_000_000),
        ("CANCELLED", 50_000_000, 50_000_000),
        ("CANCELLED", 0, 0),
        ("FAILED", 50_000_000, 0),
    ],
)
def test_what_was_scanned_is_billed_as_athena_does(state: str, scanned: int, billed: int) -> None:
    assert QueryEnd(state, scanned=scanned).billed_bytes == billed
