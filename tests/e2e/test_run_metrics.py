"""The metrics file of real runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from compactor_cli.commands import main
from tests.e2e.test_cli_commands import EACH, PARTITIONS, Lake


@pytest.fixture
def lake(s3) -> Lake:
    return Lake(s3)


def run(lake: Lake, file: Path, *words: str) -> tuple[int, dict[str, float]]:
    """Exit code and metrics of a run."""
    common = ("--depth", "1", "--workers", "1", "--metrics-file", str(file))
    code = main(["run", *lake.uris, *lake.endpoint, *common, *words])
    families = text_string_to_metric_families(file.read_text("utf-8"))
    return code, {sample.name: sample.value for family in families for sample in family.samples}


def test_the_oldest_candidate_is_that_of_s3_also_in_a_later_run(lake: Lake, tmp_path):
    file = tmp_path / "compactor.prom"
    assert run(lake, file)[1]["compactor_source_objects"] == PARTITIONS * EACH
    key = "logs/p0/new.json"
    lake.write(key, b'{"id":"new"}\n')
    modified = lake.client.head_object(Bucket=lake.bucket, Key=key)["LastModified"].timestamp()
    lake.write("logs/p0/newer.json", b'{"id":"newer"}\n')
    for _ in range(2):
        code, metrics = run(lake, file)
        assert (code, metrics["compactor_backlog_objects"]) == (0, 2)
        oldest = metrics["compactor_oldest_candidate_timestamp_seconds"]
        assert oldest == pytest.approx(modified)


def test_a_failed_run_says_so(lake: Lake, tmp_path):
    file = tmp_path / "compactor.prom"
    run(lake, file)
    for key in lake.keys("_compactor/compacted/partitions/p0/"):
        lake.write(key, b"damaged")
    lake.write("logs/p0/new.json", b'{"id":"new"}\n')
    young = ("--settle-seconds", "0")
    code, metrics = run(lake, file, *young)
    assert (code, metrics["compactor_run_failed"]) == (1, 1)
