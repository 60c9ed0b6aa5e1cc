"""The model of seconds, fitted to what the bench of queries has measured, and the goals."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from compactor.planning.seconds import Engine, Stored, seconds
from compactor_dev.query_bench.access import Requests
from compactor_dev.query_bench.fit import Goal, Point, fitted, goals, main, points
from compactor_dev.query_bench.session import Turn
from compactor_dev.query_bench.table import Figure, Key, figures

TITLE = "chdb, 32"
REAL = Engine(0.25, 0.027, 4e6, readers=32)
STORED = {
    ("2k-3kb", "raw"): Stored(2_000, 6_000_000, 2_000),
    ("2k-3kb", "same"): Stored(5, 4_500_000, 5),
    ("20k-3kb", "raw"): Stored(20_000, 60_000_000, 20_000),
    ("20k-3kb", "same"): Stored(5, 45_000_000, 5),
    ("2k-120kb", "raw"): Stored(2_000, 240_000_000, 2_000),
    ("2k-120kb", "same"): Stored(5, 230_000_000, 5),
}


def measured(engine: Engine, *, off: float = 1.0) -> list[Point]:
    return [
        Point(*names, stored, seconds(engine, stored) * off, min(32, stored.objects))
        for names, stored in STORED.items()
    ]


def test_what_follows_the_model_gives_its_figures_back() -> None:
    found = fitted(TITLE, measured(REAL))
    assert found is not None
    assert found.engine.readers == 32
    assert found.engine.start_seconds == pytest.approx(0.25)
    assert found.engine.open_seconds == pytest.approx(0.027)
    assert found.engine.bytes_per_second == pytest.approx(4e6)
    assert max(map(abs, found.errors.values())) < 1e-6


def test_what_does_not_follow_it_is_told_as_its_error() -> None:
    points = measured(REAL)
    points[0] = Point("2k-3kb", "raw", points[0].stored, points[0].seconds * 2, 32)
    found = fitted(TITLE, points)
    assert found is not None
    assert found.errors["2k-3kb", "raw"] < -0.2


def test_no_figure_is_below_zero_whatever_was_measured() -> None:
    # Faster by large objects than any start would let it be.
    instant = Engine(-0.1, 0.027, 4e6, readers=32)
    found = fitted(TITLE, measured(instant))
    assert found is not None
    assert found.engine.start_seconds == 0
    assert min(found.engine.open_seconds, found.engine.bytes_per_second) > 0


def test_three_points_are_too_few_for_three_figures() -> None:
    assert fitted(TITLE, measured(REAL)[:3]) is None


def figure(median: float, gets: int, *, cold: bool = False, gain: float = 0.0) -> Figure:
    return Figure(1, median, median, Requests(gets=gets), cold, gain)


@pytest.mark.parametrize(
    ("given", "title", "raw", "same", "met"),
    [
        ("20k-3kb", "chdb, default", 20.0, 2.0, True),
        ("20k-3kb", "chdb, default", 19.0, 2.0, False),
        ("20k-3kb", "chdb, 32", 8.0, 2.0, True),
        ("20k-3kb", "chdb, 32", 7.0, 2.0, False),
        ("2k-120kb", "chdb, default", 3.9, 2.0, False),
        ("2k-120kb", "chdb, 32", 2.0, 2.0, True),
        ("2k-120kb", "chdb, 32", 1.9, 2.0, False),
    ],
)
def test_gains_are_held_against_their_goals(
    given: str, title: str, raw: float, same: float, *, met: bool
) -> None:
    found: dict[Key, Figure] = {
        (given, "group", title, "raw"): figure(raw, 2_000),
        (given, "group", title, "same"): figure(same, 5, gain=raw / same),
    }
    assert [one.met for one in goals(found)] == [met]


def test_the_exact_table_may_take_what_its_sources_and_outputs_take() -> None:
    def found(exact: float, parquet: float) -> list[Goal]:
        return list(
            goals(
                {
                    ("some", "group", TITLE, "raw"): figure(10.0, 1_000),
                    ("some", "group", TITLE, "same"): figure(2.0, 0),
                    # Half of its objects are sources: six seconds, and a tenth more.
                    ("some", "group", TITLE, "exact"): figure(exact, 500),
                    ("some", "group", TITLE, "parquet"): figure(parquet, 5),
                }
            )
        )

    assert [(one.what.split()[1], one.met) for one in found(6.5, 0.4)] == [
        ("Parquet", True),
        ("the", True),
    ]
    assert [one.met for one in found(6.7, 0.5)] == [False, False]


def results(directory: Path, name: str, cold: tuple[str, ...] = ()) -> Path:
    turns = [
        Turn(given, layout, TITLE, "group", number, one.seconds, Requests(most_gets=one.gets), 0.1)
        for one in measured(REAL)
        for given, layout in [(one.given, one.layout)]
        for number in ((0,) if layout in cold else (0, 1))
        if given == name
    ]
    sizes = {layout: one for (given, layout), one in STORED.items() if given == name}
    one: dict[str, Any] = {
        "name": name,
        "objects": {layout: size.objects for layout, size in sizes.items()},
        "bytes": {layout: size.bytes for layout, size in sizes.items()},
        "turns": [asdict(turn) for turn in turns],
    }
    file = directory / f"{name}.json"
    file.write_text(json.dumps({"sets": [one]}))
    return file


def test_several_runs_are_fitted_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [results(tmp_path, name) for name in ("2k-3kb", "20k-3kb", "2k-120kb")]
    assert main([str(one) for one in files]) == 0
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith(f"| {TITLE} | 6 |")]
    assert line == f"| {TITLE} | 6 | -0% to +0% | 32 | 0.25 | 27.0 | 4.0 |"
    assert "| AWS Storage Blog, raw | 16 | 15.5 | -3% |" in out
    assert "20k-3kb: compacted at least 4 times as fast" in out


def test_what_was_asked_once_is_no_point(tmp_path: Path) -> None:
    document = json.loads(results(tmp_path, "2k-3kb", cold=("raw",)).read_text())
    turns = [Turn(**{**one, "requests": Requests()}) for one in document["sets"][0]["turns"]]
    found = points(document["sets"], figures(turns))
    assert [one.layout for one in found[TITLE]] == ["same"]


def test_a_file_of_something_else_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    assert main([str(other)]) == 1
    assert "other.json: no results of make query-bench" in capsys.readouterr().err
