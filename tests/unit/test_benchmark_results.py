from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from compactor_dev.benchmark import results, table
from compactor_dev.benchmark.results import Measurement, SetResult, Spread, disturbance, summarise
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
    user_seconds=0.375,
    kernel_seconds=0.125,
    start_seconds=0.5,
    start_user_seconds=0.1875,
    start_kernel_seconds=0.0625,
    peak_bytes=100_000_000,
    instructions=None,
    others=0.01,
    equal=True,
)
SAMPLE = replace(
    WHOLE,
    client="seed",
    objects=100,
    bytes_in=400_000,
    seconds=10.51,
    user_seconds=0.9375,
    kernel_seconds=0.3125,
)
LOOP = replace(WHOLE, client="obstore", seconds=1.0, user_seconds=0.15, kernel_seconds=0.1)


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
    assert (WHOLE.user_ms_per_object, WHOLE.kernel_ms_per_object) == (0.375, 0.125)
    assert WHOLE.size_ratio == 0.25


def test_a_sample_is_scaled_to_the_whole_set_but_starts_once() -> None:
    # 0.5 s of start, then 10.01 s for a tenth of the set.
    assert SAMPLE.objects_per_second == pytest.approx(1_000 / 100.6)
    assert SAMPLE.cpu_ms_per_object == pytest.approx(0.25 + 10.0)
    assert SAMPLE.user_ms_per_object == pytest.approx(0.1875 + 7.5)
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


def test_a_ratio_is_formed_within_each_round_and_not_of_medians() -> None:
    # The second minute was slow for both, and the third for the worker alone.
    worker = [(1, 2.0, 0.3), (2, 20.0, 0.4), (3, 8.0, 0.5)]
    loop = [(1, 1.0, 0.2), (2, 10.0, 0.2), (3, 2.0, 0.2)]
    measured = [
        replace(one, round=number, seconds=seconds, user_seconds=cpu, kernel_seconds=0.0)
        for one, rounds in ((UNSTARTED, worker), (LOOP_UNSTARTED, loop))
        for number, seconds, cpu in rounds
    ]
    found = result(*measured).ratio("worker", "obstore", "25 ms")
    assert found is not None
    # Of medians it would be 2 / 8.
    assert found.speed == Spread(median=0.5, low=0.25, high=0.5)
    assert found.cpu.median == pytest.approx(2.0)
    assert (found.cpu.low, found.cpu.high) == pytest.approx((1.5, 2.5))


UNSTARTED, LOOP_UNSTARTED = (
    replace(one, start_seconds=0.0, start_user_seconds=0.0, start_kernel_seconds=0.0)
    for one in (WHOLE, LOOP)
)


def test_a_round_of_one_client_alone_has_no_ratio() -> None:
    both = result(WHOLE, replace(WHOLE, round=2), replace(LOOP, round=2), replace(LOOP, lane="x"))
    found = both.ratio("worker", "obstore", "25 ms")
    assert found is not None
    assert found.speed == Spread(0.5, 0.5, 0.5)
    assert result(WHOLE, replace(LOOP, round=2)).ratio("worker", "obstore", "25 ms") is None
    assert both.ratio("worker", "seed", "25 ms") is None


def test_a_sample_s_instructions_are_not_told_because_its_start_is_among_them() -> None:
    assert replace(WHOLE, instructions=3_000_000).instructions_per_object == 3_000
    assert replace(SAMPLE, instructions=3_000_000).instructions_per_object is None
    assert WHOLE.instructions_per_object is None


def test_a_measurement_beside_others_is_told_with_its_share() -> None:
    worst = replace(WHOLE, round=2, others=0.314)
    told = disturbance(result(WHOLE, worst, replace(LOOP, others=0.051)))
    assert told == (
        "Not quiet: in 2 of 3 measurements others used more than 5% of the processors,"
        " at most 31% (worker, 25 ms, round 2)."
    )
    assert disturbance(result(WHOLE, replace(WHOLE, others=0.05))) is None


def test_lanes_and_clients_stay_in_the_order_measured() -> None:
    both = result(SAMPLE, replace(WHOLE, lane="0 ms"), WHOLE)
    assert both.clients == ["seed", "worker"]
    assert both.lanes == ["25 ms", "0 ms"]


def test_results_survive_being_stored(tmp_path: Path) -> None:
    kept = tmp_path / "bench.json"
    before = {"json-4k": result(WHOLE, SAMPLE)}
    kept.write_text(results.to_json(before), encoding="utf-8")
    assert results.load(kept) == before


def test_what_follows_from_results_is_kept_beside_them() -> None:
    document = json.loads(results.to_json({"json-4k": result(WHOLE, LOOP)}))["sets"]["json-4k"]
    assert document["summaries"]["25 ms"]["worker"]["user_ms_per_object"] == 0.375
    assert document["ratios"]["25 ms"]["worker"]["obstore"]["speed"]["median"] == 0.5


def test_results_of_the_version_before_are_not_read(tmp_path: Path) -> None:
    kept = tmp_path / "bench.json"
    document = results.to_json({"json-4k": result(WHOLE)})
    kept.write_text(document.replace('"version": 2', '"version": 1'), encoding="utf-8")
    assert kept.read_text(encoding="utf-8") != document
    assert results.load(kept) == {}


@pytest.mark.parametrize("text", [None, "", "{}", '{"version":0}', '{"version":2,"sets":{"a":{}}}'])
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


def test_a_row_begins_with_the_cpu_an_object_takes() -> None:
    assert table.HEADS[2].startswith("CPU ms/object")
    assert table.HEADS.index("Objects/s (min to max)") > table.HEADS.index("user + kernel")
    rounds = [WHOLE, replace(WHOLE, round=2, seconds=4.0), replace(WHOLE, round=3, seconds=1.0)]
    loops = [replace(LOOP, round=number) for number in (1, 2, 3)]
    cells = table.cells(result(*rounds, *loops, SAMPLE), "worker", "25 ms")
    assert cells == [
        "**s3-compactor worker**",
        "25 ms",
        "0.500",
        "0.375 + 0.125",
        "",
        "500 (250 to 1,000)",
        "2.00",
        "0.500 (0.250 to 1.00)",
        "50.3",
        "2.00",
        "100",
        "0.250",
        "equal",
    ]


def test_a_column_of_which_nothing_was_measured_is_left_out() -> None:
    plain, _ = table.rows_of(result(WHOLE, LOOP))
    assert "Instructions/object" not in plain
    assert "Objects/s / one at a time's" not in plain
    counted, rows = table.rows_of(result(replace(WHOLE, instructions=345_678_000), LOOP, SAMPLE))
    assert counted == list(table.HEADS)
    assert [row[4] for row in rows] == ["346,000", "", ""]


def test_the_parts_of_the_cpu_are_as_exact_as_their_sum() -> None:
    assert table.parts(0.2549, 0.0959) == "0.255 + 0.096"
    assert table.parts(612.3, 336.4) == "612 + 336"


def test_what_the_worker_is_beside_the_loop_is_said_lane_by_lane() -> None:
    over_tls = [replace(one, lane="25 ms, TLS") for one in (WHOLE, LOOP)]
    said = table.sentences(result(WHOLE, LOOP, SAMPLE, *over_tls))
    assert [one.partition(":")[0] for one in said] == ["25 ms", "25 ms", "25 ms, TLS"]
    assert "2.00 times the bare loop's CPU an object and has 0.500 times its objects/s" in said[0]
    assert "50.3 times as fast as one at a time" in said[1]


def test_what_was_not_quiet_stands_below_its_table() -> None:
    busy = render({"json-4k": result(replace(WHOLE, others=0.4))})
    assert busy.index("| **s3-compactor worker**") < busy.index("Not quiet: in 1 of 1")
    assert "Not quiet" not in render({"json-4k": result(WHOLE)})


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
    heads, _ = table.rows_of(result(WHOLE, SAMPLE))
    assert {row.count("|") for row in rows} == {len(heads) + 1}
    assert {len(table.cells(result(one), one.client, "25 ms") or ()) for one in (WHOLE, LOOP)} == {
        len(table.HEADS)
    }


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
