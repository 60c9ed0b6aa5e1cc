"""What a table's partitions are called, what they have, and when their time is over."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactor.errors import InvalidInput
from compactor.readers.partition_columns import NoColumn, PartitionColumns, end_of
from compactor.settings.windows import expand
from tests.support.examples import settings


def columns(**given: Any) -> PartitionColumns:
    return PartitionColumns(settings(**given))


@pytest.mark.parametrize(
    ("given", "path", "names", "values"),
    [
        ({"date_format": "%Y/%m/%d"}, "2026/01/02/", "year month day", "2026 01 02"),
        ({"date_format": "dt=%Y-%m-%d"}, "dt=2026-01-02/", "dt", "2026-01-02"),
        ({"date_format": "%Y-%m-%d/%H"}, "2026-01-02/05/", "date hour", "2026-01-02 05"),
        ({"date_format": "year=%Y/day=%j"}, "year=2026/day=007/", "year day", "2026 007"),
        ({"depth": 2}, "region=eu/web/", "region level2", "eu web"),
        (
            {"s3_source_uri": "s3://source/AWSLogs/*/CloudTrail/*/", "date_format": "%Y/%m/%d"},
            "123456789012/CloudTrail/eu-west-1/2026/01/02/",
            "level1 level3 year month day",
            "123456789012 eu-west-1 2026 01 02",
        ),
    ],
)
def test_segments_that_differ_are_columns(
    given: dict[str, Any], path: str, names: str, values: str
) -> None:
    assert columns(**given).names(path) == tuple(names.split())
    assert columns(**given).values(path) == tuple(values.split())


def test_a_source_that_is_not_divided_has_no_partition_to_switch_and_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^reader_table: 'glue:a\.b' .*a date_format, a depth"):
        settings(reader_table="glue:a.b")


def test_names_are_given_one_for_each_column() -> None:
    named = columns(depth=2, reader_table="glue:a.b", reader_partitions=["Account", "region"])
    assert named.names("1/eu/") == ("account", "region")
    with pytest.raises(InvalidInput, match="2 names"):
        columns(depth=2, reader_table="glue:a.b", reader_partitions=["account"]).names("1/eu/")
    with pytest.raises(InvalidInput, match="names apart"):
        columns(depth=2).names("a=1/A=2/")


WILDCARD = "s3://source/logs/*/"


@pytest.mark.parametrize(
    ("given", "keys", "values"),
    [
        ({"s3_source_uri": WILDCARD}, ("level1",), ["a", "y", "x=y", "X=y", "z=y=y", "level1=y"]),
        (
            {"depth": 1, "reader_table": "glue:a.b", "reader_partitions": ["of"]},
            ("of",),
            ["a", "y", "x=y", "z=y"],
        ),
        ({"s3_source_uri": "s3://source/logs/x=*/"}, ("x",), ["x=a", "x=y=z", "x="]),
        ({"depth": 1}, ("x",), ["x=a", "x=y=z", "x="]),
    ],
)
def test_no_two_paths_have_the_same_values(
    given: dict[str, Any], keys: tuple[str, ...], values: list[str]
) -> None:
    found = [columns(**given).values(f"{one}/", keys) for one in values]
    stripped = keys == ("x",)
    assert found == [(one.removeprefix("x=") if stripped else one,) for one in values]


def test_a_table_without_a_column_for_a_level_is_refused() -> None:
    assert columns(depth=1).values("x=a/", ("x",)) == ("a",)
    for path, keys in (
        ("a/", ("x",)),
        ("z=a/", ("x",)),
        ("a/", ("level1", "x")),
    ):
        with pytest.raises(NoColumn, match="with reader_partitions"):
            columns(depth=1).values(path, keys)
    with pytest.raises(NoColumn):
        columns(date_format="%Y/%m").values("2026/01/", ("level1", "level2"))


@pytest.mark.parametrize("path", ["", "2026/", "2026/01/02/03/"])
def test_a_path_of_another_depth_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput, match="a path of 3 segments"):
        columns(date_format="%Y/%m/%d").values(path)


@pytest.mark.parametrize(
    ("date_format", "text", "end"),
    [
        ("%Y", "2026", datetime(2027, 1, 1, tzinfo=UTC)),
        ("%Y/%m", "2026/12", datetime(2027, 1, 1, tzinfo=UTC)),
        ("%Y/%m", "2026/02", datetime(2026, 3, 1, tzinfo=UTC)),
        ("%Y/%m/%d", "2024/02/28", datetime(2024, 2, 29, tzinfo=UTC)),
        ("dt=%Y-%m-%d/h=%H", "dt=2026-12-31/h=23", datetime(2027, 1, 1, tzinfo=UTC)),
        ("%Y/%j", "2024/366", datetime(2025, 1, 1, tzinfo=UTC)),
        ("%Y/%Y-%m-%d", "2026/2026-01-02", datetime(2026, 1, 3, tzinfo=UTC)),
    ],
)
def test_the_time_of_a_partition_ends_where_the_next_begins(
    date_format: str, text: str, end: datetime
) -> None:
    assert end_of(date_format, text) == end.timestamp()


@pytest.mark.parametrize(
    ("date_format", "text"),
    [
        ("%Y/%m/%d", "2026/13/01"),
        ("%Y/%m/%d", "2026/02/30"),
        ("%Y/%m/%d", "2026/2/1"),
        ("%Y/%Y-%m", "2025/2026-01"),
        ("%Y", "year"),
        ("%Y/%m/%d", "9999/12/31"),
    ],
)
def test_what_is_no_date_has_no_end(date_format: str, text: str) -> None:
    assert end_of(date_format, text) is None


@given(
    st.sampled_from(["%Y/%m/%d", "dt=%Y-%m-%d", "%Y/%m/%d/%H", "%Y/%j"]),
    st.datetimes(datetime(1990, 1, 1), datetime(2900, 1, 1)),  # noqa: DTZ001 - UTC is added
)
def test_the_prefix_of_a_moment_ends_after_it(date_format: str, moment: datetime) -> None:
    moment = moment.replace(tzinfo=UTC, minute=59, second=59, microsecond=0)
    end = datetime.fromtimestamp(moment.timestamp() + 1, UTC)
    (prefix,) = expand(date_format, moment, end)
    found = end_of(date_format, prefix.removesuffix("/"))
    assert found is not None
    assert moment.timestamp() < found <= moment.timestamp() + 86_400
