"""The demonstration finds how a directory of logs is divided as scan does."""

from __future__ import annotations

from pathlib import Path

import pytest

from compactor_cli.demo_objects import from_directory

FLAT = {"s3_source_uri": "s3://demo/logs/"}


def fields(directory: Path, names: list[str]) -> dict[str, object]:
    for name in names:
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x\n")
    return from_directory(directory).fields


def test_dates_make_partitions_and_a_stray_note_does_not_hide_them(tmp_path: Path) -> None:
    names = [f"app/2026/01/{day:02}/x" for day in range(1, 20)]
    assert fields(tmp_path, ["README", *names]) == {
        "s3_source_uri": "s3://demo/logs/app/",
        "date_format": "%Y/%m/%d",
        "window": "2026-01-01..2026-01-19",
    }


def test_levels_above_the_dates_are_wildcards(tmp_path: Path) -> None:
    found = fields(tmp_path, ["a/dt=2026-03-05/x", "b/dt=2025-12-31/x"])
    assert found == {
        "s3_source_uri": "s3://demo/logs/*/",
        "date_format": "dt=%Y-%m-%d",
        "window": "2025-12-31..2026-03-05",
    }


@pytest.mark.parametrize("names", [["a.log", "b/c.log"], ["a/2026/01/02/x", "b/y/2026-01-02/z"]])
def test_without_one_layout_of_dates_all_is_one_partition(tmp_path: Path, names: list[str]) -> None:
    assert fields(tmp_path, names) == FLAT


def test_csv_is_declared_as_scan_proposes_it(tmp_path: Path) -> None:
    for n in range(9):
        file = tmp_path / "app" / f"2026/01/0{n + 1}/orders.csv"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"id,name\n%d,Li\n" % n)
    declared = from_directory(tmp_path).fields["formats"]
    assert declared == [{"match": "*.csv", "format": "csv", "header": True}]
