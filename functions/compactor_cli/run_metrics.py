"""The metrics of one run, and the file in which Prometheus' node exporter finds them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from compactor.errors import InvalidInput
from compactor.model import SkipReason
from compactor.report.sentences import backlog, oldest_waiting, partition_count

_TOTALS = (
    ("source_objects", "objects_in", "Sources that the run compacted."),
    ("source_bytes", "bytes_in", "Their stored bytes."),
    ("output_objects", "objects_out", "Outputs that the run wrote."),
    ("output_bytes", "bytes_out", "Their stored bytes."),
    ("output_records", "records", "Records in them; those of server-side copies are not counted."),
)
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


@dataclass(frozen=True, slots=True)
class Metric:
    """One gauge; ``name`` lacks the prefix of the program and ends with its unit."""

    name: str
    description: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measured:
    """What the metrics of a run are computed from.

    Attributes:
        places: its source and destination, by these names.
        failed: whether it failed; reaching a time limit is no failure.
        ended_at: UNIX seconds.
        seconds: wall time.
        document: its report.json; None if it left none.
    """

    places: Mapping[str, str]
    failed: bool
    ended_at: float
    seconds: float
    document: Mapping[str, Any] | None

    def metrics(self) -> Iterator[Metric]:
        """Yield each metric; those of one name follow each other."""
        yield Metric("run_failed", "1 if the last run failed.", float(self.failed))
        yield Metric("run_end_timestamp_seconds", "When the last run ended.", self.ended_at)
        yield Metric("run_duration_seconds", "Wall time of the last run.", self.seconds)
        if self.document is not None:
            yield from _of_report(self.document)

    def as_text(self) -> str:
        """Return the metrics in Prometheus' text format."""
        lines = []
        for name, same in groupby(self.metrics(), lambda one: one.name):
            for number, one in enumerate(same):
                if not number:
                    lines += [f"# HELP compactor_{name} {one.description}"]
                    lines += [f"# TYPE compactor_{name} gauge"]
                labels = {**self.places, **one.labels}.items()
                shown = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels)
                lines.append(f"compactor_{name}{{{shown}}} {one.value!r}")
        return "\n".join(lines) + "\n"


def places_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of a run's metrics, from its settings as a document."""
    return {
        "source": settings["s3_source_uri"],
        "destination": settings["s3_destination_uri"],
    }


def add_metrics_file(parser: argparse.ArgumentParser) -> None:
    """Add ``--metrics-file``."""
    parser.add_argument(
        "--metrics-file",
        type=Path,
        metavar="FILE.prom",
        help="also write the run's metrics here, for the textfile collector of Prometheus'"
        " node exporter",
    )


def write_metrics(measured: Measured, file: Path) -> None:
    """Replace the file; a reader sees the old metrics or the new ones.

    Raises:
        InvalidInput: it is not writable.
    """
    # The node exporter reads only names that end with .prom.
    partial = file.with_name(f".{file.name}.partial")
    try:
        partial.write_text(measured.as_text(), "utf-8")
        partial.replace(file)
    except OSError as error:
        raise InvalidInput("--metrics-file", str(file), f"a writable file ({error})") from None


def _of_report(report: Mapping[str, Any]) -> Iterator[Metric]:
    for name, key, description in _TOTALS:
        yield Metric(name, description, float(report["totals"][key]))
    partitions = float(partition_count(report))
    yield Metric("partitions", "Partitions with at least one object.", partitions)
    yield Metric("failed_partitions", "Those that failed.", float(report["failed_count"]))
    waiting = float(backlog(report))
    yield Metric("backlog_objects", "Objects that a later run takes as they are.", waiting)
    oldest = oldest_waiting(report)
    if oldest is not None:
        description = "When the oldest object of the backlog was last modified."
        yield Metric("oldest_candidate_timestamp_seconds", description, oldest)
    left = {why: one["objects"] for why, one in report["left_alone"].items()}
    earlier = report["skipped"].get(SkipReason.QUARANTINED)
    if earlier:
        left["earlier_run"] = earlier["objects"]
    for reason, objects in left.items():
        description = "Sources left alone because of their content."
        yield Metric("left_alone_objects", description, float(objects), {"reason": reason})
    if report["cost"]:
        dollars = float(report["cost"]["dollars"])
        yield Metric("run_cost_dollars", "Cost of the last run at list prices.", dollars)
