"""The hash over rows: any order gives the same, any difference another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame

from compactor_spark.columnar.hash import RowSums, row_sums
from compactor_spark.columnar.session import columnar_session
from tests.spark.row_world import RowWorld

Rows = Callable[..., RowWorld]

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


def sums(frame: DataFrame) -> RowSums:
    return RowSums.of(frame.agg(*row_sums(frame.schema)).collect()[0])


@pytest.mark.parametrize(("one", "two"), DIFFERENT)
def test_rows_that_differ_have_other_hashes(rows: Rows, one: str, two: str) -> None:
    sql = columnar_session(rows().session).sql
    both = sql(f"select 1 as which, {one} union all select 2, {two}")
    first, second = (sums(both.where(f"which = {n}").drop("which")) for n in (1, 2))
    assert first.rows == second.rows == 1
    assert first.hash != second.hash


def test_order_does_not_matter_and_how_often_a_row_occurs_does(rows: Rows) -> None:
    session = columnar_session(rows().session)
    frame = session.sql("select id, map(id, 'a', id + 1, cast(id as string)) as m from range(500)")
    assert sums(frame) == sums(frame.orderBy("id", ascending=False).repartition(7))
    assert sums(frame.where("id < 499")) != sums(frame)
    twice, other = session.sql("select 1 as a").union(session.sql("select 1 as a")), "select 2 as a"
    assert sums(twice).hash != sums(session.sql(other).union(session.sql(other))).hash
    assert sums(frame.where("false")) == RowSums(0, "0" * 16)


def test_entries_of_a_map_have_no_order(rows: Rows) -> None:
    sql = columnar_session(rows().session).sql
    assert sums(sql("select map('a', 1, 'b', 2) as m")) == sums(
        sql("select map('b', 2, 'a', 1) as m")
    )


def test_names_of_any_kind_are_hashed(rows: Rows) -> None:
    session = columnar_session(rows().session)
    odd = "select 1 as `a.b`, 2 as `c``d`, named_struct('x.y', 3) as ` `, 4 as `ä`"
    assert sums(session.sql(odd)).rows == 1
