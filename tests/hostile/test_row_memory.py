"""A worker that writes rows stays within its memory, whatever the records do to make it grow.

As in test_memory.py. Arrow itself takes some 60 MiB of the 512.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.hostile.row_scenarios import ROW_SCENARIOS
from tests.hostile.test_memory import PEAK_BYTES, run_in_a_child

TOO_LARGE = ["document_too_large"]
# How many sources are compacted, into how many rows, and the reasons why others are not.
OUTCOMES: dict[str, tuple[int, int, list[str]]] = {
    "records_of_the_longest_size": (3, 3, []),
    "records_of_64_mib": (0, 0, TOO_LARGE),
    "a_field_of_csv_of_64_mib": (0, 0, TOO_LARGE),
    "a_line_without_end": (1, 1, TOO_LARGE),
    "dead_letters_of_the_longest_size": (3, 3, []),
    "ten_thousand_columns": (5, 500, []),
    "ten_thousand_columns_of_text": (5, 500, []),
    "ten_thousand_columns_of_csv": (5, 500, []),
    "one_list_of_7_mib": (2, 2, []),
    "one_odd_list_of_7_mib": (2, 2, []),
    "nested_100_000_deep": (5, 5, []),
    "nested_900_deep": (5, 5, []),
    "ten_thousand_tiny_sources": (10_000, 10_000, []),
    "ten_thousand_columns_of_parquet": (5, 500, []),
    "parquet_of_nulls": (10, 100_000_000, []),
}
#: Taking minutes, or ending with an error: ``python -m tests.hostile.child NAME``.
BY_HAND = {
    "a_gigabyte_of_nested_lists",
    "each_record_has_other_names",
    "tiny_records_as_rows",
    "misfits_beyond_what_is_kept",
    "a_million_tiny_misfits",
}


def test_every_scenario_has_its_outcome() -> None:
    assert ROW_SCENARIOS.keys() == OUTCOMES.keys() | BY_HAND


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from Linux's /proc")
@pytest.mark.parametrize("scenario", OUTCOMES)
def test_the_worker_stays_within_its_memory_and_decides(scenario: str, repo_root: Path) -> None:
    found = run_in_a_child(scenario, repo_root)
    assert found["peak_bytes"] < PEAK_BYTES
    assert found["status"] == "done"
    assert (found["objects_in"], found["records"], found["reasons"]) == OUTCOMES[scenario]
