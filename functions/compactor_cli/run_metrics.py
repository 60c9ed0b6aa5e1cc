"""The metrics of one run, and the file in which Prometheus' node exporter finds them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from compactor.errors import InvalidInput
from compactor.model import SkipReason
from compactor.report.reasons import backlog, oldest_waiting, partition_count

_TOTALS = (
    ("source_objects", "objects_in", "Sources that the run compacted."),
    ("source_bytes", "bytes_in", "Their stored bytes."),
    ("output_objects", "objects_out", "Outputs that the run wrote."),
    ("output_bytes", "bytes_out", "Their stored bytes."),
    ("output_records", "records", "Records in them; those of server-side copies are not counted."),
)
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class _Gauge(NamedTuple):
    name: str
    description: str
    value: float
    labels: Mapping[str, str] = {}


def metrics_text(
    settings: Mapping[str, Any],
    report: Mapping[str, Any] | None,
    *,
    failed: bool,
    ended_at: float,
    seconds: float,
) -> str:
    """Return the gauges of a run in Prometheus' text format.

    Args:
        settings: of the run, as a document.
        report: its report.json; None if it left none.
        failed: whether it failed; reaching a time limit is no failure.
        ended_at: UNIX seconds.
        seconds: wall time.
    """
    gauges = [
        _Gauge("run_failed", "1 if the last run failed.", failed),
        _Gauge("run_end_timestamp_seconds", "When the last run ended.", ended_at),
        _Gauge("run_duration_seconds", "Wall time of the last run.", seconds),
        *(_of_report(report) if report is not None else ()),
    ]
    lines, headed = [], ""
    for gauge in gauges:
        if gauge.name != headed:
            lines.append(f"# HELP compactor_{gauge.name} {gauge.description}")
            lines.append(f"# TYPE compactor_{gauge.name} gauge")
            headed = gauge.name
        labels = {
            "source": settings["s3_source_uri"],
            "destination": settings["s3_destination_uri"],
            **gauge.labels,
        }
        pairs = [f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items()]
        lines.append(f"compactor_{gauge.name}{{{','.join(pairs)}}} {float(gauge.value)!r}")
    return "\n".join(lines) + "\n"


def add_metrics_file(parser: argparse.ArgumentParser) -> None:
    """Add ``--metrics-file``."""
    parser.add_argument(
        "--metrics-file",
        type=Path,
        metavar="FILE.prom",
        help="also write the run's metrics here, for the textfile collector of Prometheus'"
        " node exporter",
    )


def write_metrics(text: str, file: Path) -> None:
    """Replace the file; a reader sees the old metrics or the new ones.

    Raises:
        InvalidInput: it is not writable.
    """
    # The node exporter reads only names that end with .prom.
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.write_text(text, "utf-8")
        partial.replace(file)
    except OSError as error:
        raise InvalidInput("--metrics-file", str(file), f"a writable file ({error})") from None


def _of_report(report: Mapping[str, Any]) -> Iterator[_Gauge]:
    for name, key, description in _TOTALS:
        yield _Gauge(name, description, report["totals"][key])
    yield _Gauge("partitions", "Partitions with at least one object.", partition_count(report))
    yield _Gauge("failed_partitions", "Those that failed.", report["failed_count"])
    yield _Gauge("backlog_objects", "Objects that a later run takes as they are.", backlog(report))
    oldest = oldest_waiting(report)
    if oldest is not None:
        description = "When the oldest object of the backlog was last modified."
        yield _Gauge("oldest_candidate_timestamp_seconds", description, oldest)
    left_alone = {reason: entry["objects"] for reason, entry in report["left_alone"].items()}
    earlier = report["skipped"].get(SkipReason.QUARANTINED)
    if earlier:
        left_alone["earlier_run"] = earlier["objects"]
    for reason, objects in left_alone.items():
        description = "Sources left alone because of their content."
        yield _Gauge("left_alone_objects", description, objects, {"reason": reason})
    if report["cost"]:
        dollars = report["cost"]["dollars"]
        yield _Gauge("run_cost_dollars", "Cost of the last run at list prices.", float(dollars))
