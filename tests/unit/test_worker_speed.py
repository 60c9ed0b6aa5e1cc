from __future__ import annotations

import re
from pathlib import Path

import pytest

from compactor.discovery import speed as worker_speed
from compactor.discovery.speed import (
    CLOUDTRAIL_GZIP,
    LINES,
    LINES_GZIP,
    ROWS,
    ROWS_GZIP,
    ROWS_PARQUET,
    SPEEDS,
    WorkerSpeed,
    speed_for,
)
from compactor_dev.bench import speeds, worker
from compactor_dev.bench.datasets import SETS
from compactor_dev.bench.worker_results import WORKER, Measurement, Results
from tests.support.examples import settings


def test_seconds_grow_with_objects_and_with_bytes() -> None:
    speed = WorkerSpeed(per_million_objects=200, per_gb=10)
    assert speed.seconds(1_000_000, 0) == 200
    assert speed.seconds(0, 3 * 10**9) == 30
    assert speed.seconds(500_000, 10**9) == 110


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("a/b.json", LINES),
        ("a/b.csv", LINES),
        ("a/no-extension", LINES),
        ("a/b.json.gz", LINES_GZIP),
        ("a/b.log.zst", LINES_GZIP),
        ("a/1_CloudTrail_eu-west-1_x.json.gz", CLOUDTRAIL_GZIP),
        ("a/1_CloudTrail_eu-west-1_x.json", CLOUDTRAIL_GZIP),
    ],
)
def test_a_key_decides_which_speed_counts(key, kind) -> None:
    assert speed_for(key, settings()) is SPEEDS[kind]


@pytest.mark.parametrize(
    ("key", "given", "kind"),
    [
        ("a/b.json", {"output_format": "parquet"}, ROWS),
        ("a/1_CloudTrail_eu-west-1_x.json.gz", {"output_format": "parquet"}, ROWS_GZIP),
        ("a/b.parquet", {"format": "parquet"}, ROWS_PARQUET),
    ],
)
def test_rows_have_speeds_of_their_own(key, given, kind) -> None:
    assert speed_for(key, settings(**given)) is SPEEDS[kind]


@pytest.mark.parametrize(
    ("processors", "objects", "size"),
    [(6.0, 180.0, 10.0), (2.0, 180.0, 10.0), (1.0, 200.0, 20.0), (0.5, 400.0, 40.0)],
)
def test_fewer_processors_take_longer_and_more_than_two_are_not_faster(
    processors: float, objects: float, size: float
) -> None:
    speed = WorkerSpeed(per_million_objects=180, per_gb=10).on(processors)
    assert speed.per_million_objects == pytest.approx(objects)
    assert speed.per_gb == pytest.approx(size)


def measured(objects: int, object_bytes: int, *seconds: float) -> list[Measurement]:
    return [
        Measurement(
            candidate=WORKER,
            lane="25 ms",
            round=number,
            objects=objects,
            of_objects=objects,
            bytes_in=objects * object_bytes,
            bytes_out=0,
            seconds=taken + 0.5,
            user_seconds=taken,
            kernel_seconds=0.0,
            start_seconds=0.5,
            start_user_seconds=0.2,
            start_kernel_seconds=0.0,
            peak_bytes=1,
            load=0.0,
            equal=True,
            second_run={},
        )
        for number, taken in enumerate(seconds, 1)
    ]


def every_set(per_object: float, per_byte: float) -> Results:
    found = {}
    for small, large in speeds.PAIRS.values():
        for name, objects, size in ((small, 10_000, 4_000), (large, 1_000, 100_000)):
            taken = objects * (per_object + size * per_byte)
            found[name] = measured(objects, size, taken, 9 * taken, taken)
    return found


def test_the_table_is_solved_from_two_sets_of_each_kind() -> None:
    found = speeds.solve(every_set(per_object=1.995e-4, per_byte=1.15e-8))
    assert found == dict.fromkeys(speeds.PAIRS, WorkerSpeed(per_million_objects=200, per_gb=12))


def test_a_kind_that_was_not_measured_has_no_speed() -> None:
    results = every_set(1e-4, 1e-8)
    del results["cloudtrail"]
    assert set(speeds.solve(results)) == SPEEDS.keys() - {CLOUDTRAIL_GZIP}


def test_the_table_of_the_module_can_be_rewritten(tmp_path) -> None:
    source = Path(worker_speed.__file__).read_text(encoding="utf-8")
    module = tmp_path / "worker_speed.py"
    module.write_text(source)
    found = speeds.solve(every_set(per_object=1.995e-4, per_byte=1.15e-8))
    assert speeds.write_speeds(module, found)
    table = re.findall(r"^    ([A-Z_]+): WorkerSpeed\((.*)\),$", module.read_text(), re.MULTILINE)
    assert {getattr(worker_speed, name) for name, _ in table} == set(SPEEDS)
    assert {figures for _, figures in table} == {"per_million_objects=200, per_gb=12"}
    # The table is all that changed.
    speeds.write_speeds(module, SPEEDS)
    assert module.read_text() == source


def test_documents_show_each_set_that_was_measured(tmp_path, monkeypatch) -> None:
    page, module = tmp_path / "performance.md", tmp_path / "speed.py"
    page.write_text("before\n<!-- bench -->\nold\n<!-- /bench -->\nafter\n", encoding="utf-8")
    module.write_text(Path(worker_speed.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(worker, "_PAGE", page)
    monkeypatch.setattr(worker, "_SPEEDS", module)
    worker._write(every_set(per_object=1.995e-4, per_byte=1.15e-8))
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- bench -->\n| Sources | Lane | CPU ms/object: worker |")
    assert text.count(" | 25 ms | ") == 2 * len(SPEEDS)
    assert text.endswith("<!-- /bench -->\nafter\n")
    assert module.read_text(encoding="utf-8").count("per_million_objects=200") == len(SPEEDS)


def test_every_pair_names_known_sets_that_differ_in_size_alone() -> None:
    for small, large in speeds.PAIRS.values():
        one, other = SETS[small], SETS[large]
        assert (one.kind, one.gzip, one.to_rows) == (other.kind, other.gzip, other.to_rows)
        assert one.rows < other.rows
