"""Statistics in Delta's log hide no row from readers that skip files by them."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from compactor.table_formats.delta_statistics import statistics_of

NOON = datetime(2026, 1, 31, 12, 0, 0, 123_456, tzinfo=UTC)
COLUMNS: dict[str, tuple[str, pa.Array]] = {
    "flag": ("boolean", pa.array([True, True, None])),
    "whole": ("long", pa.array([-5, 1 << 62, None])),
    "double": ("double", pa.array([-0.0, float("nan"), 7.25])),
    "single": ("float", pa.array([0.1, float("inf"), None], pa.float32())),
    "money": ("decimal(10,2)", pa.array([Decimal("-0.07"), Decimal("1.10"), None])),
    "digits": (
        "decimal(38,2)",
        pa.array(
            [Decimal("-14285714285714285714285714285714285.71"), Decimal("9" * 36), None],
            pa.decimal128(38, 2),
        ),
    ),
    "moment": ("timestamp", pa.array([NOON] * 3, pa.timestamp("us", "UTC"))),
    "ends": ("date", pa.array([date(2026, 1, 1), date(9999, 12, 31), None])),
    "text": ("string", pa.array(["\U00020000" * 70, "a", ""])),
    "bytes": ("binary", pa.array([b"a", b"\xff", None])),
    "nothing": ("long", pa.array([None, None, None], pa.int64())),
}


BOUNDED = [one for one in COLUMNS if one not in {"double", "single", "digits"}]


def log_of(directory: Path, names: list[str]) -> str:
    """A table of one file with these columns, and what its log says of them."""
    (directory / "_delta_log").mkdir(parents=True)
    path = directory / "a.parquet"
    pq.write_table(pa.table({name: COLUMNS[name][1] for name in names}), path)
    fields = [
        {"name": name, "type": COLUMNS[name][0], "nullable": True, "metadata": {}} for name in names
    ]
    statistics = statistics_of(pq.read_metadata(path))
    schema = json.dumps({"type": "struct", "fields": fields})
    actions = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": "0",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema,
                "partitionColumns": [],
                "configuration": {},
            }
        },
        {
            "add": {
                "path": "a.parquet",
                "partitionValues": {},
                "size": path.stat().st_size,
                "modificationTime": 0,
                "dataChange": True,
                "stats": statistics,
            }
        },
    ]
    (directory / "_delta_log" / f"{0:020}.json").write_text(
        "\n".join(json.dumps(one, ensure_ascii=False) for one in actions)
    )
    return statistics


@pytest.mark.parametrize("name", [one for one in COLUMNS if one != "nothing"])
@pytest.mark.parametrize("beside", [list(BOUNDED), list(COLUMNS)], ids=["bounded", "all"])
def test_a_filter_on_each_value_finds_its_rows(
    name: str, beside: list[str], tmp_path: Path
) -> None:
    log_of(tmp_path, beside if name in beside else [*beside, name])
    dataset = DeltaTable(tmp_path).to_pyarrow_dataset()
    frame = pl.scan_delta(str(tmp_path))
    for value in COLUMNS[name][1].drop_null():
        condition = ds.field(name) == value
        expected = ds.dataset(tmp_path / "a.parquet").to_table(filter=condition).num_rows
        assert dataset.to_table(filter=condition).num_rows == expected, value
        if name not in {"double", "digits"}:
            literal = pl.lit(value.as_py(), dtype=frame.collect_schema()[name])
            assert frame.filter(pl.col(name) == literal).collect().height == expected, value


def test_bounds_are_never_within_the_values(tmp_path: Path) -> None:
    found = json.loads(log_of(tmp_path, BOUNDED))
    least, greatest = found["minValues"], found["maxValues"]
    assert (least["moment"], greatest["moment"]) == (
        "2026-01-31T12:00:00.123Z",
        "2026-01-31T12:00:00.124Z",
    )
    assert (least["money"], greatest["money"]) == (-0.07, 1.1)
    assert found["nullCount"]["nothing"] == 3
    assert greatest["text"] == "\U00020000" * 63 + "\U00020001"


@pytest.mark.parametrize("name", ["double", "single", "digits"])
def test_a_column_whose_greatest_value_is_unknown_takes_the_bounds_of_all(
    name: str, tmp_path: Path
) -> None:
    found = json.loads(log_of(tmp_path, [*BOUNDED, name]))
    assert found.keys() == {"numRecords", "nullCount"}


def test_without_a_bound_of_one_column_there_is_none_of_any(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"id": [1], "name": ["x"]})
    pq.write_table(table, path, write_statistics=["id"])
    assert json.loads(statistics_of(pq.read_metadata(path))) == {
        "numRecords": 1,
        "nullCount": {"id": 0},
    }
