"""`compactor demo --ingest` as a person starts it: objects, events, runs, a table."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.progress_lines import without_progress

pytestmark = pytest.mark.timeout(600)
# Neither Spark nor Java is looked for.
ENVIRONMENT = {
    **os.environ,
    "JAVA_HOME": "/nowhere",
    "SPARK_HOME": "/nowhere",
    "PYTHONPATH": os.pathsep.join(sys.path),
}
LONGEST_SECONDS = 300


def _demo(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "compactor_cli", "demo", "--ingest", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
        env=ENVIRONMENT,
    )


def test_without_java_every_row_is_in_the_table_once_as_another_engine_counts_it() -> None:
    ended = _demo("--objects", "40", "--workers", "2", "--json")
    assert (ended.returncode, without_progress(ended.stderr)) == (0, "")
    shown = json.loads(ended.stdout)
    assert shown["holds"]
    assert (shown["objects"], shown["produced_rows"], shown["rows"]) == (40, 800, 800)
    assert (shown["doubled"], shown["missing"]) == (0, 0)
    # One for each format at least.
    assert 2 <= shown["data_files"] == shown["snapshots"] <= shown["runs"]
    assert 0 < shown["freshness_p50"] <= shown["freshness_p99"] < LONGEST_SECONDS


def test_logs_of_a_directory_do_not_go_with_it() -> None:
    ended = _demo("--source", ".")
    assert ended.returncode == 2
    assert "--source and --ingest exclude each other" in ended.stderr
