"""The hashes over rows: any order gives the same, any difference others."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from compactor_spark.maintain.rows import sums_of
from compactor_spark.session import pinned_session
from compactor_tables.table_engine import RowSums

DIFFERENT = [
    ("null as a, 1 as b", "1 as a, null as b"),
    ("array() as a", "cast(null as array<void>) as a"),
    ("array(null, 1) as a", "array(1, null) as a"),
    ("array(array(1), array(2)) as a", "array(array(1, 2), array()) as a"),
    ("named_struct('x', null, 'y', 1) as a", "named_struct('x', 1, 'y', null) as a"),
    ("map('k', null) as a", "map() as a"),
    ("map('k', map(1, 'x')) as a", "map('k', map(1, 'y')) as a"),
    ("'' as a", "null as a"),
    ("'ab' as a, 'c' as b", "'a' as a, 'bc' as b"),
    ("timestamp '2026-01-01 00:00:00.000001' as a", "timestamp '2026-01-01 00:00:00' as a"),
]


@pytest.fixture
def session(spark_session: SparkSession) -> SparkSession:
    return pinned_session(spark_session)


@pytest.mark.parametrize(("one", "two"), DIFFERENT)
def test_rows_that_differ_have_other_hashes(session: SparkSession, one: str, two: str) -> None:
    sql = session.sql
    both = sql(f"select 1 as which, {one} union all select 2, {two}")
    first, second = (sums_of(both.where(f"which = {n}").drop("which")) for n in (1, 2))
    assert first.rows == second.rows == 1
    assert first.first != second.first
    assert first.second != second.second


def test_order_does_not_matter_and_how_often_a_row_occurs_does(session: SparkSession) -> None:
    frame = session.sql("select id, map(id, 'a', id + 1, cast(id as string)) as m from range(500)")
    assert sums_of(frame) == sums_of(frame.orderBy("id", ascending=False).repartition(7))
    assert sums_of(frame.where("id < 499")) != sums_of(frame)
    twice, other = session.sql("select 1 as a").union(session.sql("select 1 as a")), "select 2 as a"
    assert sums_of(twice).first != sums_of(session.sql(other).union(session.sql(other))).first
    assert sums_of(frame.where("false")) == RowSums(0, 0, 0)


def test_entries_of_a_map_have_no_order(session: SparkSession) -> None:
    sql = session.sql
    assert sums_of(sql("select map('a', 1, 'b', 2) as m")) == sums_of(
        sql("select map('b', 2, 'a', 1) as m")
    )


def test_names_of_any_kind_are_hashed(session: SparkSession) -> None:
    odd = "select 1 as `a.b`, 2 as `c``d`, named_struct('x.y', 3) as ` `, 4 as `ä`"
    assert sums_of(session.sql(odd)).rows == 1
