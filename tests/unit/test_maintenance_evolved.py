"""Files of older partition specs of real tables: which are planned, and by which condition."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg")

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.update.spec import UpdateSpec
from pyiceberg.transforms import IdentityTransform, parse_transform
from pyiceberg.types import DecimalType, LongType, NestedField, StringType, TimestampType

from compactor_tables.metadata.measuring import measure_table
from compactor_tables.orders import Condition
from compactor_tables.policies import read_policies
from compactor_tables.table_planning import TablePlan, plan_table
from tests.support.maintained_tables import IcebergLake, Named

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "ts", TimestampType(), required=False),
    NestedField(3, "country", StringType(), required=False),
    NestedField(4, "price", DecimalType(9, 2), required=False),
)
FIRST = 20_758  # 2026-11-01
SECOND = FIRST + 1


def spec(*fields: tuple[int, str]) -> PartitionSpec:
    return PartitionSpec(
        *(
            PartitionField(source, 1_000 + number, parse_transform(transform), f"p{number}")
            for number, (source, transform) in enumerate(fields)
        )
    )


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path)


def make(lake: IcebergLake, by: PartitionSpec, values: Sequence[Any], version: str = "2") -> Table:
    """A table with six small files of such a partition."""
    table = lake.create("events", SCHEMA, by, **{"format-version": version})
    lake.name(table, [Named(5, partition=tuple(values)) for _ in range(6)])
    return table


def change(table: Table, act: Callable[[UpdateSpec], object]) -> None:
    with table.update_spec() as update:
        act(update)


def add_country(table: Table) -> None:
    change(table, lambda update: update.add_field("country", IdentityTransform(), "country"))


def plan(lake: IcebergLake, later_seconds: float = 86_400.0) -> TablePlan:
    address, now = lake.address("events"), time.time() + later_seconds
    measure = measure_table(address, lake.store, now)
    policies = read_policies([{"match": ["*"], "engine": "spark"}])
    return plan_table(measure, policies.of(measure.name), now)


def selected(table: Table, day: int) -> int:
    """Files that a scan for a day opens, by pyiceberg's own planning."""
    wanted = f"ts >= '2026-11-{day:02}T00:00:00' and ts < '2026-11-{day + 1:02}T00:00:00'"
    return len([*table.refresh().scan(wanted).plan_files()])


def test_files_of_before_a_field_was_added_are_planned_by_their_day(lake):
    table = make(lake, spec((2, "day")), [FIRST])
    lake.name(table, [Named(5, partition=(SECOND,)) for _ in range(2)])
    add_country(table)
    lake.name(table, [Named(5, partition=(day, "de")) for day in (FIRST, SECOND, SECOND + 1)])
    lake.name(table, [Named(5, partition=(SECOND + 1, "at")) for _ in range(7)])
    found = plan(lake)
    assert [(one.name, one.files, one.left) for one in found.partitions] == [
        ("p0=2026-11-01", 7, ""),
        ("p0=2026-11-02", 3, "nothing to rewrite"),
        ("p0=2026-11-03/country=at", 7, ""),
        ("p0=2026-11-03/country=de", 1, "nothing to rewrite"),
    ]
    first, second = found.order("r").partitions
    assert (first.spec, first.files) == (0, 6)
    assert first.where == (Condition("ts", "day", "2026-11-01"),)
    assert second.where == (
        Condition("ts", "day", "2026-11-03"),
        Condition("country", "identity", "at"),
    )
    # By pyiceberg, a condition on the column itself selects just as many.
    assert [selected(table, day) for day in (1, 2, 3)] == [7, 3, 8]


def test_a_file_that_came_into_the_day_opens_all_of_it(lake):
    table = make(lake, spec((2, "day")), [FIRST])
    add_country(table)
    lake.name(table, [Named(5, partition=(FIRST, "de"))])
    (only,) = plan(lake, later_seconds=60.0).partitions
    assert only.left.startswith("written ")
    assert only.files == 7


@pytest.mark.parametrize(
    ("transform", "source", "value", "text"),
    [
        ("identity", 3, "a/b", "a/b"),
        ("identity", 2, None, None),
        ("hour", 2, FIRST * 24 + 3, "2026-11-01-03"),
        ("month", 2, 682, "2026-11"),
        ("year", 2, 56, "2026"),
        ("truncate[10]", 1, 20, "20"),
    ],
)
def test_a_range_of_values_is_a_condition(lake, transform, source, value, text):
    table = make(lake, spec((source, transform)), [value])
    change(table, lambda update: update.add_field("price", IdentityTransform(), "price"))
    (only,) = plan(lake).order("r").partitions
    column = {1: "id", 2: "ts", 3: "country"}[source]
    assert only.where == (Condition(column, transform, text),)
    assert only.files == 6


@pytest.mark.parametrize(
    ("by", "values", "why"),
    [
        (spec((1, "bucket[4]")), [3], "bucket[4] of id, which is no range of its values"),
        (spec((3, "truncate[2]")), ["de"], "truncate[2] of country, which is no range"),
        (spec(), [], "older partition spec, without partitions"),
    ],
)
def test_what_no_condition_names_is_left_with_the_reason(lake, by, values, why):
    table = make(lake, by, values)
    change(table, lambda update: update.add_field("price", IdentityTransform(), "price"))
    found = plan(lake)
    assert why in found.partitions[0].left
    assert found.order("r").partitions == ()


def test_a_field_that_was_removed_since_leaves_its_files(lake):
    table = make(lake, spec((2, "hour")), [FIRST * 24])
    change(table, lambda update: update.remove_field("p0"))
    change(table, lambda update: update.add_field("ts", parse_transform("day"), "day"))
    lake.name(table, [Named(5, partition=(FIRST,)) for _ in range(6)])
    found = plan(lake)
    assert found.order("r").partitions == ()
    today, before = found.partitions
    assert today.left == "files of an older partition spec may have rows of it"
    assert "by hour of ts, which the table's own has not" in before.left


def test_a_field_without_values_leaves_its_files(lake):
    table = make(lake, spec((2, "day"), (3, "identity")), [FIRST, "de"], version="1")
    change(table, lambda update: update.remove_field("p1"))
    lake.name(table, [Named(5, partition=(SECOND, None)) for _ in range(6)])
    change(table, lambda update: update.add_field("price", IdentityTransform(), "price"))
    found = plan(lake)
    assert {one.name: one.left.partition(", ")[2] for one in found.partitions} == {
        "p0=2026-11-01/p1=de": "by identity of country, which the table's own has not",
        "p0=2026-11-02/p1=null": "by void of country, which is no range of its values",
    }


def test_a_column_that_has_the_name_of_a_dropped_one_is_another(lake):
    table = make(lake, spec((3, "identity")), ["de"])
    change(table, lambda update: update.remove_field("p0"))
    with table.update_schema() as update:
        update.delete_column("country")
    with table.update_schema() as update:
        update.add_column("country", StringType())
    add_country(table)
    lake.name(table, [Named(5, partition=("de",)) for _ in range(6)])
    change(table, lambda update: update.add_field("price", IdentityTransform(), "price"))
    found, older = plan(lake), "its files are of an older partition spec"
    assert found.order("r").partitions == ()
    assert {one.name: one.left for one in found.partitions} == {
        "p0=de": f"{older}, by identity of country#3, which the table's own has not",
        "country=de": "files of an older partition spec may have rows of it",
    }
