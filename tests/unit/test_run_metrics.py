"""The metrics of a run, as Prometheus' own parser reads them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from compactor.errors import InvalidInput
from compactor.log.counts import LeftAlone
from compactor.model import Skipped, SkipReason
from compactor.partition.receipts import Counts
from compactor_cli.run_metrics import metrics_text, write_metrics
from tests.conftest import REPO_ROOT
from tests.support.desk import Desk

PLACES = {"source": 's3://odd/"a\\b\n/', "destination": "s3://lake/compacted/"}


def text_of(document: dict[str, Any] | None, *, failed: bool = False) -> str:
    settings = {f"s3_{name}_uri": uri for name, uri in PLACES.items()}
    return metrics_text(settings, document, failed=failed, ended_at=1_700_000_000.5, seconds=12.25)


def report() -> dict[str, Any]:
    desk = Desk("a/", "b/")
    counts = Counts(objects_in=7, bytes_in=700, objects_out=2, bytes_out=500, records=70)
    young, few = Skipped(5, 50, ("x",), 900.0), Skipped(1, 10, ("y",), 800.0)
    settled = Skipped(9, 90, ("z",), 100.0)
    skipped = {SkipReason.TOO_YOUNG: young, SkipReason.TOO_FEW: few, SkipReason.COMMITTED: settled}
    left = {"unknown_format": LeftAlone(3, 30, "a/n.bin", "")}
    desk.receipt("a/", counts=counts, skipped=skipped, left_alone=left)
    desk.receipt(
        "b/", skipped={SkipReason.QUARANTINED: Skipped(4, 40), SkipReason.TOO_YOUNG: Skipped(1, 1)}
    )
    document: dict[str, Any] = msgspec.to_builtins(desk.report())
    return document


def parsed(text: str) -> dict[tuple[str, str], float]:
    """The value of each metric, by name and reason; each has the places and is a gauge."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert (family.type, bool(family.documentation)) == ("gauge", True)
        for sample in family.samples:
            labels = dict(sample.labels)
            assert {name: labels.pop(name) for name in PLACES} == PLACES
            key = sample.name.removeprefix("compactor_"), labels.pop("reason", "")
            assert (labels, key in found) == ({}, False)
            found[key] = sample.value
    return found


def test_every_metric_of_a_report_is_read_by_prometheus() -> None:
    found = parsed(text_of(report()))
    dollars = found.pop(("run_cost_dollars", ""))
    assert dollars >= 0
    assert found == {
        ("run_failed", ""): 0,
        ("run_end_timestamp_seconds", ""): 1_700_000_000.5,
        ("run_duration_seconds", ""): 12.25,
        ("source_objects", ""): 7,
        ("source_bytes", ""): 700,
        ("output_objects", ""): 2,
        ("output_bytes", ""): 500,
        ("output_records", ""): 70,
        ("partitions", ""): 2,
        ("failed_partitions", ""): 0,
        ("backlog_objects", ""): 7,
        ("oldest_candidate_timestamp_seconds", ""): 800,
        ("left_alone_objects", "unknown_format"): 3,
        ("left_alone_objects", "earlier_run"): 4,
    }


def test_a_run_without_a_report_still_says_that_it_failed() -> None:
    found = parsed(text_of(None, failed=True))
    names = ("run_failed", "run_end_timestamp_seconds", "run_duration_seconds")
    assert (tuple(name for name, _ in found), found["run_failed", ""]) == (names, 1)


def test_a_file_is_replaced_as_a_whole_and_may_be_read_by_others(tmp_path: Path) -> None:
    file = tmp_path / "compactor.prom"
    file.write_text("old")
    with file.open() as reader:
        write_metrics(text_of(report()), file)
        assert reader.read() == "old"
    other = tmp_path / "other"
    other.touch()
    assert (file.stat().st_mode, sorted(tmp_path.iterdir())) == (
        other.stat().st_mode,
        [file, other],
    )
    assert parsed(file.read_text("utf-8"))


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"--metrics-file: .*nowhere.*a writable file"):
        write_metrics(text_of(None), tmp_path / "nowhere" / "a.prom")


def test_the_example_of_alert_rules_uses_metrics_that_exist() -> None:
    page = (REPO_ROOT / "docs" / "monitoring.md").read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (group,) = yaml.safe_load(text)["groups"]
    used = {
        name for rule in group["rules"] for name in re.findall(r"compactor_(\w+)", rule["expr"])
    }
    emitted = {name for name, _ in parsed(text_of(report()))}
    documented = set(re.findall(r"`(\w+)`", page.split("## Alert rules")[0]))
    assert len(group["rules"]) == 5
    assert used <= emitted <= documented
