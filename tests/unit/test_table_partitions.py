"""Partitions of an Iceberg table, by columns and transforms; read by pyiceberg and DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compactor.errors import InvalidInput
from compactor.model import Partition
from tests.support.examples import settings
from tests.support.parquet_outputs import commit_rows
from tests.support.table_places import Place

pytest.importorskip("pyiceberg")
duckdb = pytest.importorskip("duckdb")

A, B, C = (Partition("source", f"logs/{name}/", f"{name}/") for name in "abc")
TABLE = {"table": "glue:lake.events"}
Partitioned = Callable[..., Place]


@pytest.fixture
def partitioned(tmp_path: Path) -> Partitioned:
    def make(*by: str, **given: Any) -> Place:
        place = Place("sql", "", "parts", tmp_path)
        asked = settings(**TABLE, table_partitioning=list(by)).table_partitioning
        place.settings = replace(place.settings, table_partitioning=asked, **given)
        return place

    return make


def rows_by_partition(place: Place) -> dict[Any, int]:
    """As pyiceberg's own look at the table says."""
    handle: Any = place.state().handle
    found = handle.inspect.partitions().to_pylist()
    return {tuple(one["partition"].values()): one["record_count"] for one in found}


def counted_by_duckdb(place: Place, row_filter: str | None = None) -> int:
    """Rows in the files that pyiceberg does not prune for a filter, as DuckDB counts them."""
    handle: Any = place.state().handle
    scan = handle.scan() if row_filter is None else handle.scan(row_filter=row_filter)
    with scan.to_duckdb("events") as connection:
        (count,) = connection.execute("SELECT count(*) FROM events").fetchone()
    return int(count)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def wall(text: str) -> datetime:
    """Of a column without a zone."""
    return datetime.fromisoformat(text)


# How they are written.


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("day(ts)", "day(ts)"),
        ("DAYS( ts )", "day(ts)"),
        ("years(ts)", "year(ts)"),
        ("months(ts)", "month(ts)"),
        ("hour(ts)", "hour(ts)"),
        ("truncate(8,name)", "truncate(8, name)"),
        ("bucket(16, id)", "bucket(16, id)"),
        ("country", "country"),
        ("a column", "a column"),
    ],
)
def test_transforms_are_written_as_in_partitioned_by(given, kept):
    assert settings(**TABLE, table_partitioning=[given]).table_partitioning == (kept,)


@pytest.mark.parametrize(
    "given",
    [
        ["week(ts)"],
        ["day(8, ts)"],
        ["truncate(name)"],
        ["truncate(0, name)"],
        ["bucket(id, 16)"],
        ["bucket(4294967296, id)"],
        ["day()"],
        ["day(hour(ts))"],
        ["day(ts"],
        ["day(ts)", "days(ts)"],
        ["day(ts)", "hour(ts)"],
        ["bucket(8, id)", "bucket(16, id)"],
        ["day(ts)", "ts_day"],
        ["day", "day"],
        [""],
        "day(ts)",
    ],
)
def test_what_is_no_partitioning_is_reported_with_what_is(given):
    with pytest.raises(InvalidInput, match=r"each once, of columns and of year\(ts\)"):
        settings(**TABLE, table_partitioning=given)


# Outputs that lie in one.


def test_a_table_is_partitioned_by_columns_with_one_value_in_an_output(partitioned):
    place = partitioned("day")
    place.commit(A, id=[1, 2], day=["mon", "mon"])
    place.commit(B, id=[3], day=pa.array([None], pa.string()))
    place.publish()
    assert rows_by_partition(place) == {("mon",): 2, (None,): 1}
    assert counted_by_duckdb(place, "day = 'mon'") == 2


_TIMES = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("by", "kind", "outputs", "values"),
    [
        (
            "day(ts)",
            _TIMES,
            [
                [at("2026-11-21T00:00:00"), at("2026-11-21T23:59:59.999999")],
                [at("2026-11-22T00:00:00")],
                [at("1969-12-31T23:59:59.999999")],
            ],
            [date(2026, 11, 21), date(2026, 11, 22), date(1969, 12, 31)],
        ),
        (
            "month(ts)",
            pa.timestamp("ms"),
            [
                [wall("2026-11-01"), wall("2026-11-30T23:59")],
                [wall("2026-12-01")],
                [wall("1969-12-31")],
            ],
            [(2026 - 1970) * 12 + 10, (2026 - 1970) * 12 + 11, -1],
        ),
        (
            "year(ts)",
            pa.date32(),
            [[date(2026, 1, 1), date(2026, 12, 31)], [date(1969, 7, 20)], [date(2027, 1, 1)]],
            [56, -1, 57],
        ),
        (
            "hour(ts)",
            _TIMES,
            [
                [at("1970-01-02T03:00:00"), at("1970-01-02T03:59:59.999999")],
                [at("1970-01-02T04:00:00")],
                [at("1969-12-31T23:00:00")],
            ],
            [27, 28, -1],
        ),
        (
            "truncate(3, ts)",
            pa.string(),
            [["abc", "abcd", "abc\U0001f600"], ["ab"], ["äöüß"]],
            ["abc", "ab", "äöü"],
        ),
        ("truncate(10, ts)", pa.int64(), [[10, 19], [-1, -10], [0]], [10, -10, 0]),
        (
            "truncate(50, ts)",
            pa.decimal128(9, 2),
            [[Decimal("10.65"), Decimal("10.50")], [Decimal("-0.01")], [Decimal("0.49")]],
            [Decimal("10.50"), Decimal("-0.50"), Decimal("0.00")],
        ),
    ],
)
def test_an_output_within_one_value_of_a_transform_lies_there(
    partitioned, by, kind, outputs, values
):
    place = partitioned(by)
    for partition, column in zip((A, B, C), outputs, strict=True):
        place.commit(partition, ts=pa.array(column, kind))
    place.publish()
    sizes = dict(zip(values, map(len, outputs), strict=True))
    assert rows_by_partition(place) == {(value,): size for value, size in sizes.items()}
    assert counted_by_duckdb(place) == sum(sizes.values())
    for column in outputs:
        # Pruned by partition, so that a wrong one loses the row.
        text = str(column[-1]).replace(" ", "T", 1)
        wanted = text if isinstance(column[-1], int | Decimal) else f"'{text}'"
        assert counted_by_duckdb(place, f"ts = {wanted}") == 1, text


@pytest.mark.parametrize(
    ("kind", "value", "hashed"),
    [
        # The test vectors of the specification, "Appendix B: 32-bit Hash Requirements".
        (pa.int32(), 34, 2017239379),
        (pa.int64(), 34, 2017239379),
        (pa.decimal128(9, 2), Decimal("14.20"), -500754589),
        (pa.date32(), date(2017, 11, 16), -653330422),
        (pa.timestamp("us"), wall("2017-11-16T22:31:08"), -2047944441),
        (pa.string(), "iceberg", 1210000089),
        (pa.binary(), b"\x00\x01\x02\x03", -188683207),
    ],
)
def test_an_output_with_one_value_lies_in_its_bucket(partitioned, kind, value, hashed):
    place = partitioned("bucket(16, id)")
    place.commit(A, id=pa.array([value, value], kind))
    place.publish()
    assert rows_by_partition(place) == {((hashed & 0x7FFFFFFF) % 16,): 2}


def test_several_transforms_divide_a_table_together(partitioned):
    place = partitioned("day(ts)", "country", "bucket(4, tenant)")
    for partition, country in ((A, "de"), (B, "fr")):
        times = pa.array([at("2026-11-21T10:00:00"), at("2026-11-21T11:00:00")], _TIMES)
        place.commit(partition, ts=times, country=[country] * 2, tenant=[34, 34])
    place.publish()
    found = rows_by_partition(place)
    assert found == {(date(2026, 11, 21), one, 2017239379 % 4): 2 for one in ("de", "fr")}
    names = [one.name for one in place.state().handle.metadata.spec().fields]
    assert names == ["ts_day", "country", "tenant_bucket"]
    assert counted_by_duckdb(place, "country = 'fr' and ts >= '2026-11-21T00:00:00+00:00'") == 2


# Outputs that do not, or of which nothing tells.


@pytest.mark.parametrize(
    ("by", "column", "said"),
    [
        ("day", ["mon", "tue"], "has rows of several: day is mon to tue"),
        ("day", ["mon", None], "has rows of several: day is null in some, and mon in others"),
        (
            "day(day)",
            pa.array([at("2026-11-21T23:59:59"), at("2026-11-22T00:00:00")], _TIMES),
            r"has rows of several: day is 2026-11-21T23:59:59\+00:00 to 2026-11-22T00:00:00\+00:00",
        ),
        ("truncate(2, day)", ["abc", "acc"], "has rows of several: day is abc to acc"),
        ("bucket(4, day)", [1, 2], r"day is 1 to 2, and bucket\[4\] keeps no order"),
    ],
)
def test_an_output_of_several_partitions_is_refused_with_its_bounds(partitioned, by, column, said):
    place = partitioned(by)
    place.commit(A, id=[1, 2], day=column)
    with pytest.raises(InvalidInput, match=rf"/compacted/a/compacted-.*parquet.*{said}"):
        place.publish()
    assert place.catalog.load(place.log_id) is None
    # Nothing was named, and no table was made: another partitioning is free.
    place.settings = replace(place.settings, table_partitioning=())
    place.publish()
    assert counted_by_duckdb(place) == 2


def test_what_was_refused_comes_in_once_the_table_is_divided_otherwise(partitioned):
    place = partitioned("day(ts)")
    place.commit(A, ts=pa.array([at("2026-11-21T10:00:00")], _TIMES))
    place.publish()
    place.commit(B, ts=pa.array([at("2026-11-21T10:00:00"), at("2026-11-22T10:00:00")], _TIMES))
    (fault,) = place.publish().faults
    assert "has rows of several" in fault
    handle: Any = place.state().handle
    with handle.update_spec() as spec:
        spec.remove_field("ts_day")
        spec.add_field("ts", "month", "ts_month")
    place.publish()
    assert counted_by_duckdb(place) == 3
    assert counted_by_duckdb(place, "ts >= '2026-11-22T00:00:00+00:00'") == 1


def test_an_output_without_statistics_is_in_no_partition(partitioned):
    place = partitioned("day")
    table = pa.table({"id": [1], "day": ["mon"]})
    commit_rows(place.store, place.settings, A, table, write_statistics=False)
    with pytest.raises(InvalidInput, match="unknown partition: its footer has no bounds of day"):
        place.publish()


def test_bounds_of_a_table_without_metrics_are_those_of_the_footer(partitioned):
    place = partitioned("day(ts)")
    place.commit(A, ts=pa.array([at("2026-11-21T10:00:00")], _TIMES))
    place.publish()
    handle: Any = place.state().handle
    with handle.transaction() as transaction:
        transaction.set_properties({"write.metadata.metrics.default": "none"})
    place.commit(B, ts=pa.array([at("2026-11-22T10:00:00")], _TIMES))
    place.publish()
    assert rows_by_partition(place) == {(date(2026, 11, 21),): 1, (date(2026, 11, 22),): 1}


def test_floats_prove_no_partition(partitioned):
    place = partitioned("x")
    place.commit(A, x=[1.0, float("nan")], y=[1, 1])
    with pytest.raises(InvalidInput, match="a column that identity takes: y; x is double"):
        place.publish()


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("day(name)", "a column that day takes: ts; name is string"),
        ("hour(id)", "a column that hour takes: ts; id is long"),
        ("truncate(4, ts)", "a column that truncate takes: id, name; ts is timestamptz"),
        ("nothing", "one of the columns id, name, ts"),
        ("day(nothing)", "one of the columns id, name, ts"),
    ],
)
def test_a_transform_that_does_not_fit_its_column_is_reported_before_anything_is_named(
    partitioned, by, said
):
    place = partitioned(by)
    moment = pa.array([at("2026-11-21T10:00:00")], _TIMES)
    place.commit(A, id=[1], name=["a"], ts=moment, inside=[{"z": 1}])
    with pytest.raises(InvalidInput, match=said):
        place.publish()
    assert place.catalog.load(place.log_id) is None
    assert not [key for key in place.store.contents(place.bucket) if "/table/" in key]


def test_a_column_that_is_called_as_a_field_of_the_partitioning_is_reported(partitioned):
    place = partitioned("day(ts)", schema_evolution="add_columns")
    moment = pa.array([at("2026-11-21T10:00:00")], _TIMES)
    place.commit(A, ts=moment)
    place.publish()
    place.commit(B, ts=moment, ts_day=["saturday"])
    (fault,) = place.publish().faults
    assert "outputs without column ts_day, as a partition" in fault


def test_a_table_is_not_made_of_a_column_that_is_called_as_its_partitioning(partitioned):
    place = partitioned("day(ts)")
    place.commit(A, ts=pa.array([at("2026-11-21T10:00:00")], _TIMES), ts_day=["saturday"])
    with pytest.raises(InvalidInput, match="outputs without a column ts_day"):
        place.publish()


@pytest.mark.parametrize(
    ("by", "kind", "extreme", "usual"),
    [
        ("truncate(10, v)", pa.int32(), -(2**31), 25),
        ("truncate(10, v)", pa.int64(), -(2**63), 25),
        ("truncate(50, v)", pa.decimal128(9, 2), Decimal("-9999999.99"), Decimal("10.65")),
        ("truncate(50, v)", pa.decimal128(38, 2), Decimal("-" + "9" * 36 + ".99"), Decimal(10)),
        ("day(ts)", pa.string(), "\ud7ff" * 40, "usual"),
    ],
)
def test_an_output_that_no_manifest_can_name_is_set_aside_and_the_others_come_in(
    partitioned, by, kind, extreme, usual
):
    place = partitioned(by)
    same = {"ts": pa.array([at("2026-11-21T00:00:00")], _TIMES)} if by == "day(ts)" else {}
    place.commit(A, v=pa.array([usual], kind), **same)
    assert not place.publish().faults
    place.commit(B, v=pa.array([extreme], kind), **same)
    place.commit(C, v=pa.array([usual], kind), **same)
    aside = len(place.publish().faults)
    assert aside == 1 or by == "day(ts)"
    assert sum(rows_by_partition(place).values()) == 3 - aside
    assert counted_by_duckdb(place) == 3 - aside
