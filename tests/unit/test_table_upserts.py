"""Rules of upserts: what they ask of columns, what they count, which tables belong together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compactor.errors import IntegrityError, InvalidInput
from compactor.sinks.upserts import (
    UpsertCounts,
    UpsertKey,
    fault_between,
    merge_keys,
    merge_rows,
    require_same_key,
)

KEY = UpsertKey(("id", "a`b"), ("at", "step"), {"op": ("D",)})


def test_a_rank_ends_with_the_place_of_a_record_so_that_no_two_are_equal() -> None:
    assert KEY.rank == ("__order_1", "__order_2", "__source_key", "__position")
    assert UpsertKey(("id",)).rank == ("__source_key", "__position")


def test_columns_that_are_missing_or_taken_are_named() -> None:
    columns = ["id", "a`b", "at", "__position", "__ORDER_2", "__deleted", "v", "__Upsert_row"]
    assert KEY.missing(columns) == ["step", "__source_key", "op"]
    # An output may lack what says that records delete their keys, once the table has it.
    assert KEY.missing(columns, ["id", "op", "step"]) == ["step", "__source_key"]
    assert KEY.own(columns) == ["__ORDER_2", "__deleted", "__Upsert_row"]


def test_a_column_that_is_key_and_order_is_asked_for_once() -> None:
    assert UpsertKey(("id",), ("id",)).missing([]) == ["id", "__source_key", "__position"]


def test_a_table_keeps_the_key_that_it_was_begun_with() -> None:
    require_same_key(KEY, replace(KEY), "glue:lake.people")
    require_same_key(None, None, "glue:lake.people")
    for key, known, told in (
        (
            replace(KEY, columns=("id",)),
            KEY,
            r'upsert_key: \[\'id\'\] .* \["id", "a`b"\],',
        ),
        (
            replace(KEY, order_by=("step", "at")),
            KEY,
            r'order_by: .* \["at", "step"\], which',
        ),
        (
            replace(KEY, delete_when={}),
            KEY,
            r'delete_when: no value; .* {"op": \["D"\]}, which',
        ),
        (None, KEY, r"upsert_key: \[\] .* which glue:lake.people was begun with; or another"),
        (KEY, None, r"upsert_key: .* expected \[\], which"),
    ):
        with pytest.raises(InvalidInput, match=told):
            require_same_key(key, known, "glue:lake.people")


def test_the_rows_statement_writes_whole_records() -> None:
    # What a record has not becomes null, and does not stay what an older record had.
    made = merge_rows("t1", "w", KEY, ["id", "a`b", "v"], ["id", "a`b"])
    assert made == (
        "MERGE INTO t1 t USING w s ON t.`id` <=> s.`id` AND t.`a``b` <=> s.`a``b`"
        " WHEN MATCHED AND s.`__deleted` THEN DELETE"
        " WHEN MATCHED THEN UPDATE SET t.`id` = s.`id`, t.`a``b` = s.`a``b`, t.`v` = NULL"
        " WHEN NOT MATCHED AND NOT s.`__deleted`"
        " THEN INSERT (`id`, `a``b`, `v`) VALUES (s.`id`, s.`a``b`, NULL)"
    )


def test_the_keys_statement_deletes_nothing() -> None:
    made = merge_keys("t1", "w", UpsertKey(("id",)))
    assert "DELETE" not in made
    assert made.endswith(
        " THEN INSERT (`id`, `__source_key`, `__position`, `__deleted`, `__entry`)"
        " VALUES (s.`id`, s.`__source_key`, s.`__position`, s.`__deleted`, s.`__entry`)"
    )


def test_counts_are_added_where_every_record_is_accounted_for() -> None:
    counts = UpsertCounts()
    counts.add(UpsertCounts(records=9, inserted=1, updated=2, deleted=3, superseded=2, stale=1))
    counts.add(UpsertCounts(records=1, stale=1))
    assert counts == UpsertCounts(10, 1, 2, 3, 2, 2)
    with pytest.raises(IntegrityError, match="of 2 records 1 are accounted for"):
        counts.add(UpsertCounts(records=2, inserted=1))
    assert counts.records == 10


@pytest.mark.parametrize(
    ("rows_last", "keys_last", "keys_of", "told"),
    [
        (0, None, "", ""),
        (3, 3, "one", ""),
        (4, 3, "one", ""),
        (3, None, "", "its table of keys is gone"),
        (3, 4, "one", "up to entry 3, its table of keys up to 4"),
        (3, 3, "other", "belongs to another table, other"),
        (0, 0, "", "which one is unknown"),
    ],
)
def test_keys_may_lag_their_rows_and_nothing_else(
    rows_last: int, keys_last: int | None, keys_of: str, told: str
) -> None:
    found = fault_between(rows_last, keys_last, keys_of, "one")
    assert (told in found) if told else found == ""
