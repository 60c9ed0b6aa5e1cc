"""The metrics of one run, and the file in which Prometheus' node exporter finds them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from compactor.errors import InvalidInput
from compactor.model import SkipReason
from compactor.report.reasons import backlog, oldest_waiting, partition_count
from compactor_cli.command_line import Option

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

#: By name: a description, and the value, or a value for each reason.
Gauges = dict[str, tuple[str, float | Mapping[str, float]]]


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
    gauges: Gauges = {
        "run_failed": ("1 if the last run failed.", failed),
        "run_end_timestamp_seconds": ("When the last run ended.", ended_at),
        "run_duration_seconds": ("Wall time of the last run.", seconds),
        **(_of_report(report) if report is not None else {}),
    }
    places = {name: settings[f"s3_{name}_uri"] for name in ("source", "destination")}
    lines = []
    for name, (description, value) in gauges.items():
        lines += [f"# HELP compactor_{name} {description}", f"# TYPE compactor_{name} gauge"]
        for reason, number in (value if isinstance(value, Mapping) else {"": value}).items():
            labels = {**places, "reason": reason} if reason else places
            pairs = [f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items()]
            lines.append(f"compactor_{name}{{{','.join(pairs)}}} {float(number)!r}")
    return "\n".join(lines) + "\n"


def _of_report(report: Mapping[str, Any]) -> Gauges:
    totals = report["totals"]
    left_alone = {reason: entry["objects"] for reason, entry in report["left_alone"].items()}
    if earlier := report["skipped"].get(SkipReason.QUARANTINED):
        left_alone["earlier_run"] = earlier["objects"]
    gauges: Gauges = {
        "source_objects": ("Sources that the run compacted.", totals["objects_in"]),
        "source_bytes": ("Their stored bytes.", totals["bytes_in"]),
        "output_objects": ("Outputs that the run wrote.", totals["objects_out"]),
        "output_bytes": ("Their stored bytes.", totals["bytes_out"]),
        "output_records": ("Records in them, without server-side copies.", totals["records"]),
        "partitions": ("Partitions with at least one object.", partition_count(report)),
        "failed_partitions": ("Those that failed.", report["failed_count"]),
        "backlog_objects": ("Objects that a later run takes as they are.", backlog(report)),
        "left_alone_objects": ("Sources left alone because of their content.", left_alone),
    }
    if (oldest := oldest_waiting(report)) is not None:
        text = "When the oldest object of the backlog was last modified."
        gauges["oldest_candidate_timestamp_seconds"] = (text, oldest)
    if report["cost"]:
        dollars = float(report["cost"]["dollars"])
        gauges["run_cost_dollars"] = ("Cost of the last run at list prices.", dollars)
    return gauges


METRICS_FILE = Option(
    "--metrics-file",
    type=click.Path(path_type=Path),
    metavar="FILE.prom",
    common=False,
    help="also write the run's metrics here, for the textfile collector of Prometheus'"
    " node exporter",
)


def report_metrics(document: Mapping[str, Any], seconds: float) -> str:
    """Return the gauges of an earlier run, by its report."""
    started_at = datetime.fromisoformat(document["started_at"]).timestamp()
    return metrics_text(
        document["settings"],
        document,
        failed=document["status"] == "failed",
        ended_at=started_at + seconds,
        seconds=seconds,
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
