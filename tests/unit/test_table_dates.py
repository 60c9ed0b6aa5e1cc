"""Dates that Python has not, in statistics and partitions: the year 0, and those after 9999."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compactor.errors import InvalidInput
from compactor.model import Partition
from compactor.sinks.table_log import TableLog
from compactor.table_formats.dates import applied, text_of
from compactor_tables.metadata.measured_iceberg import Names
from compactor_tables.metadata.measuring import measure_table
from tests.support.examples import settings
from tests.support.table_places import Place, lake_on_aws

transforms = pytest.importorskip("pyiceberg.transforms")
types = pytest.importorskip("pyiceberg.types")
duckdb = pytest.importorskip("duckdb")

A = Partition("source", "logs/a/", "a/")
# 9999-12-31T23:59:59-05:00, and a moment of the year 0.
END, BEGIN = 253_402_318_799_000_000, -62_167_219_200_000_001
MOMENTS = [BEGIN - 40_000_000_000_000_000, BEGIN, -1, 0, 951_782_400_000_000, END, 4 * END]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with lake_on_aws() as url:
        yield url


COLUMNS = {
    "microseconds": pa.array([0, END], pa.timestamp("us", "UTC")),
    "milliseconds": pa.array([0, END // 1_000], pa.timestamp("ms", "UTC")),
    "the year 0": pa.array([BEGIN, 0], pa.timestamp("us")),
    "the last there is": pa.array([0, (1 << 63) - 1], pa.timestamp("us", "UTC")),
    "days": pa.array([-800_000, 2_932_897], pa.date32()),
}


@pytest.mark.parametrize("kind", ["sql", "delta"])
@pytest.mark.parametrize("name", COLUMNS)
def test_every_moment_that_parquet_has_comes_into_a_table(kind, name, endpoint, tmp_path):
    place = Place(kind, endpoint, f"dates-{list(COLUMNS).index(name)}", tmp_path)
    place.commit(A, id=[1, 2], at=COLUMNS[name])
    assert place.publish().rows == 2
    # A later run reads the footers of what is left over alone; here it is again of this kind.
    place.commit(A, id=[3, 4], at=COLUMNS[name])
    assert place.publish().rows == 2
    assert sorted(place.rows()) == [1, 2, 3, 4]


def bounds(place: Place) -> list[tuple[int, int]]:
    """Least and greatest value of the column ``at``, as pyiceberg reads the manifests."""
    handle: Any = place.state().handle
    (number,) = (one.field_id for one in handle.schema().fields if one.name == "at")
    files = handle.inspect.files().select(["lower_bounds", "upper_bounds"]).to_pylist()
    return [
        (
            int.from_bytes(dict(one["lower_bounds"])[number], "little", signed=True),
            int.from_bytes(dict(one["upper_bounds"])[number], "little", signed=True),
        )
        for one in files
    ]


@pytest.mark.parametrize(
    ("column", "expected"),
    [("microseconds", (0, END)), ("milliseconds", (0, END)), ("days", (-800_000, 2_932_897))],
)
def test_readers_of_iceberg_prune_by_bounds_that_are_whole_numbers(column, expected, tmp_path):
    place = Place("sql", "", "bounds", tmp_path)
    place.commit(A, id=[1, 2], at=COLUMNS[column])
    place.publish()
    assert bounds(place) == [expected]


def partitioned(directory: Path, by: str) -> Place:
    place = Place("sql", "", "parts", directory)
    asked = settings(table="glue:lake.events", table_partitioning=[by]).table_partitioning
    place.settings = replace(place.settings, table_partitioning=asked)
    return place


@pytest.mark.parametrize(("unit", "shown"), [("year", "10000"), ("month", "10000-01")])
def test_an_output_after_9999_lies_in_a_partition_and_is_measured_there(unit, shown, tmp_path):
    place = partitioned(tmp_path, f"{unit}(at)")
    place.commit(A, id=[1, 2], at=pa.array([END, END], pa.timestamp("us", "UTC")))
    place.publish()
    handle: Any = place.state().handle
    ((value,),) = (tuple(one.file.partition._data) for one in handle.scan().plan_files())
    with duckdb.connect() as connection:
        asked = f"SELECT date_diff('{unit}', TIMESTAMP '1970-01-01', make_timestamp({END}))"
        assert value == connection.execute(asked).fetchone()[0]
    address = place.settings.table_address
    assert address is not None
    (found,) = measure_table(address, place.store, 0.0).partitions
    assert [one.value for one in found.where] == [shown]


@pytest.mark.parametrize(
    ("by", "shown"),
    [
        ("day(at)", r"\+10000-01-01"),
        ("hour(at)", r"\+10000-01-01-04"),
        ("at", r"\+10000-01-01T04:59:59\+00:00"),
    ],
)
def test_a_partition_that_pyiceberg_cannot_name_is_refused(by, shown, tmp_path):
    place = partitioned(tmp_path, by)
    place.commit(A, id=[1], at=pa.array([END], pa.timestamp("us", "UTC")))
    with pytest.raises(InvalidInput, match=rf"lies in {shown}, which pyiceberg cannot name"):
        place.publish()
    assert TableLog(place.store, place.settings, place.log_id).load().last == 0


def test_a_partition_that_others_made_after_9999_is_measured(tmp_path):
    place = partitioned(tmp_path, "day(at)")
    place.commit(A, id=[1], at=pa.array([0], pa.timestamp("us", "UTC")))
    place.publish()
    handle: Any = place.state().handle
    metadata = handle.metadata
    name, where = Names(metadata).partition(metadata.spec(), (2_932_897,))
    assert (name, where[0].value) == ("at_day=%2B10000-01-01", "+10000-01-01")


def test_an_output_of_several_partitions_is_refused_with_both_dates(tmp_path):
    place = partitioned(tmp_path, "day(at)")
    place.commit(A, id=[1, 2], at=COLUMNS["microseconds"])
    said = r"at is 1970-01-01T00:00:00\+00:00 to \+10000-01-01T04:59:59\+00:00"
    with pytest.raises(InvalidInput, match=said):
        place.publish()


@pytest.mark.parametrize("unit", ["year", "month", "day", "hour"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_partition_of_any_moment_is_that_of_another_calendar(unit, moment):
    transform = transforms.parse_transform(unit)
    with duckdb.connect() as connection:
        asked = f"SELECT date_diff('{unit}', TIMESTAMP '1970-01-01', make_timestamp({moment}))"
        (expected,) = connection.execute(asked).fetchone()
    assert applied(transform, types.TimestamptzType())(moment) == expected
    if unit != "hour":
        day = moment // 86_400_000_000
        assert applied(transform, types.DateType())(day) == expected


def test_a_moment_before_the_year_0_has_a_sign():
    kind, identity = types.TimestampType(), transforms.IdentityTransform()
    assert text_of(identity, kind, BEGIN) == "-0001-12-31T23:59:59.999999"
    assert text_of(identity, kind, BEGIN + 1) == "0000-01-01T00:00:00"
    assert text_of(identity, kind, 0) == "1970-01-01T00:00:00"
    assert text_of(identity, types.DateType(), 2_932_897) == "+10000-01-01"
