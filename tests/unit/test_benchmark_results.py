from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from compactor_dev.benchmark import results, table
from compactor_dev.benchmark.results import Measurement, SetResult, Spread, summarise, times
from compactor_dev.benchmark.table import BEGIN, END, figure, regenerate, render

WHOLE = Measurement(
    data_set="json-4k",
    client="worker",
    lane="25 ms",
    round=1,
    objects=1_000,
    of_objects=1_000,
    bytes_in=4_000_000,
    outputs=1,
    bytes_out=1_000_000,
    seconds=2.0,
    cpu_seconds=0.5,
    start_seconds=0.5,
    start_cpu_seconds=0.25,
    peak_bytes=100_000_000,
    equal=True,
)
SAMPLE = replace(
    WHOLE, client="seed", objects=100, bytes_in=400_000, seconds=10.51, cpu_seconds=1.25
)


def result(*measurements: Measurement) -> SetResult:
    return SetResult(
        title="1,000 x 4 KB",
        objects=1_000,
        measured_at="2026-11-21T10:00:00+00:00",
        machine={"processors": "2"},
        upload_bytes_per_second=150e6,
        ceiling={"25 ms": {"gets_per_second": 8_500.0, "bytes_per_second": 34e6}},
        measurements=list(measurements),
    )


def test_speed_and_cpu_of_a_whole_set_include_its_start() -> None:
    assert WHOLE.objects_per_second == 500
    assert WHOLE.mb_per_second == 2.0
    assert WHOLE.cpu_ms_per_object == 0.5
    assert WHOLE.size_ratio == 0.25


def test_a_sample_is_scaled_to_the_whole_set_but_starts_once() -> None:
    # 0.5 s of start, then 10.01 s for a tenth of the set.
    assert SAMPLE.objects_per_second == pytest.approx(1_000 / 100.6)
    assert SAMPLE.cpu_ms_per_object == pytest.approx(0.25 + 10.0)
    assert SAMPLE.mb_per_second == pytest.approx(4.0 / 100.6)


def test_a_median_is_not_moved_by_one_slow_round() -> None:
    rounds = [replace(WHOLE, seconds=seconds) for seconds in (2.0, 20.0, 1.0)]
    speed = summarise(rounds).objects_per_second
    assert speed == Spread(median=500, low=50, high=1_000)


def test_a_summary_shows_the_worst_memory_and_any_difference() -> None:
    rounds = [WHOLE, replace(WHOLE, peak_bytes=300_000_000, equal=False), WHOLE]
    summary = summarise(rounds)
    assert summary.peak_bytes == 300_000_000
    assert not summary.equal


def test_ratios_are_those_of_medians() -> None:
    both = result(WHOLE, SAMPLE)
    ratio = times(both.summary("worker", "25 ms"), both.summary("seed", "25 ms"))
    assert ratio == pytest.approx(50.3)
    assert times(both.summary("worker", "25 ms"), both.summary("seed", "0 ms")) is None


def test_lanes_and_clients_stay_in_the_order_measured() -> None:
    both = result(SAMPLE, replace(WHOLE, lane="0 ms"), WHOLE)
    assert both.clients == ["seed", "worker"]
    assert both.lanes == ["25 ms", "0 ms"]


def test_results_survive_being_stored(tmp_path: Path) -> None:
    kept = tmp_path / "bench.json"
    before = {"json-4k": result(WHOLE, SAMPLE)}
    kept.write_text(results.to_json(before), encoding="utf-8")
    assert results.load(kept) == before


@pytest.mark.parametrize("text", [None, "", "{}", '{"version":0}', '{"version":1,"sets":{"a":{}}}'])
def test_what_no_run_of_this_version_left_counts_as_nothing(
    tmp_path: Path, text: str | None
) -> None:
    kept = tmp_path / "bench.json"
    if text is not None:
        kept.write_text(text, encoding="utf-8")
    assert results.load(kept) == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5_234.6, "5,230"),
        (34.12, "34.1"),
        (0.1687, "0.169"),
        (1, "1.00"),
        (999.6, "1,000"),
        (12_345_678, "12,300,000"),
        (0, "0.00"),
    ],
)
def test_figures_have_three_significant_digits(value: float, text: str) -> None:
    assert figure(value) == text


def test_a_row_shows_speed_spread_ratio_cost_and_equality() -> None:
    rounds = [WHOLE, replace(WHOLE, round=2, seconds=4.0), replace(WHOLE, round=3, seconds=1.0)]
    cells = table.cells(result(*rounds, SAMPLE), "worker", "25 ms")
    assert cells == [
        "**s3-compactor worker**",
        "25 ms",
        "500 (250 to 1,000)",
        "50.3 x",
        "2.00",
        "0.500",
        "100",
        "0.250",
        "equal",
    ]


def test_a_client_that_was_not_measured_has_no_row() -> None:
    assert table.cells(result(WHOLE), "seed", "25 ms") is None
    assert "one object at a time" not in render({"json-4k": result(WHOLE)})


def test_a_sample_is_marked_as_one() -> None:
    cells = table.cells(result(SAMPLE), "seed", "25 ms")
    assert cells is not None
    assert cells[0] == "one object at a time (boto3) ¹"


def test_outputs_that_differ_stand_out() -> None:
    assert "**differ**" in render({"json-4k": result(replace(WHOLE, equal=False))})


def test_every_row_of_a_table_has_a_cell_for_every_head() -> None:
    lines = render({"json-4k": result(WHOLE, SAMPLE)}).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 4
    assert {row.count("|") for row in rows} == {len(table.HEADS) + 1}


def test_the_server_s_own_ceiling_stands_beside_the_clients() -> None:
    text = render({"json-4k": result(WHOLE)})
    assert "8,500 GET/s and 34.0 MB/s at 25 ms; uploads 150 MB/s" in text


def test_what_the_worker_keeps_under_faults_is_told() -> None:
    disturbed = replace(WHOLE, lane="25 ms, faults", seconds=2.5)
    assert "keeps 80% of its speed" in render({"json-4k": result(WHOLE, disturbed)})
    assert "keeps" not in render({"json-4k": result(WHOLE)})


def test_the_requests_of_a_second_run_are_told() -> None:
    again = replace(WHOLE, detail={"second_run_requests": {"LIST": 21, "GET": 1}})
    text = render({"json-4k": result(again)})
    assert "A second run over the unchanged set: 1 GET, 21 LIST." in text


def test_regenerating_twice_changes_nothing(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"# x\n{BEGIN}{END}\n", encoding="utf-8")
    measured = {"json-4k": result(WHOLE, SAMPLE)}
    assert regenerate(page, measured)
    once = page.read_text(encoding="utf-8")
    assert "s3-compactor worker" in once
    assert regenerate(page, measured)
    assert page.read_text(encoding="utf-8") == once


def test_a_page_without_markers_stays_as_it_is(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    assert not regenerate(page, {"json-4k": result(WHOLE)})
    page.write_text("# x\n", encoding="utf-8")
    assert not regenerate(page, {"json-4k": result(WHOLE)})
    assert page.read_text(encoding="utf-8") == "# x\n"


def test_nothing_measured_is_told_as_such() -> None:
    assert render({}) == render({"json-4k": result()}) == "Not measured yet."
