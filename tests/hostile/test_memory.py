"""A worker stays within its memory, whatever the sources do to make it grow.

Each scenario runs in a process of its own. A worker is promised to stay below 512 MiB; what a
real one holds beside this (the interpreter with its clients, and sources read ahead) takes 128
of them, so that these must do with the rest.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.scenarios import SCENARIOS

MIB = 1 << 20
PEAK_BYTES = (512 - 128) * MIB

# What becomes of the sources: how many are compacted, into how many outputs, and the reasons why
# the others are not.
OUTCOMES: dict[str, tuple[int, int, list[str]]] = {
    "gzip_bomb": (1, 1, ["decompression_bomb"]),
    "gzip_bomb_of_members": (1, 1, ["decompression_bomb"]),
    "small_gzip_bombs": (30, 1, []),
    "zstd_windows": (3, 1, []),
    "zstd_lies": (1, 1, ["corrupt_compression", "decompression_bomb"]),
    "one_long_line": (1, 1, []),
    "one_long_plain_line": (1, 1, []),
    "one_long_json_line": (0, 0, ["unknown_format"]),
    "one_long_csv_field": (0, 0, ["document_too_large"]),
    "documents_of_the_largest_size": (2, 1, []),
    "documents_of_the_largest_size_on_lines": (2, 1, []),
    "undelimited_of_the_largest_size": (2, 1, []),
    "tiny_records": (3, 1, []),
    "tiny_records_on_lines": (3, 1, []),
    "spaced_records_on_lines": (4, 2, []),
    "tiny_undelimited": (1, 1, []),
    "tiny_undelimited_with_line_breaks": (3, 3, []),
    "blanks_around_documents": (3_000, 6, []),
    "headers_that_all_differ": (12, 12, []),
    "one_long_header": (600, 1, []),
    "blank_lines": (5, 1, []),
}


def run_in_a_child(scenario: str, root: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.child", scenario],
        cwd=root,
        env={"PYTHONPATH": f"{root / 'functions'}:{root}"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_scenario_has_its_outcome() -> None:
    assert SCENARIOS.keys() == OUTCOMES.keys()


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from Linux's /proc")
@pytest.mark.parametrize("scenario", OUTCOMES)
def test_the_worker_stays_within_its_memory_and_decides(scenario: str, repo_root: Path) -> None:
    found = run_in_a_child(scenario, repo_root)
    assert found["peak_bytes"] < PEAK_BYTES
    compacted, outputs, reasons = OUTCOMES[scenario]
    assert found["status"] == "done"
    assert (found["objects_in"], found["objects_out"]) == (compacted, outputs)
    assert found["reasons"] == reasons
    assert bool(found["quarantined"]) is bool(reasons)
