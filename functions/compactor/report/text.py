"""A report as text: its figures before and after, and a line for everything else it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from compactor.cleaning.clean_up_report import CleanUpReport
from compactor.formats.declaration import parse_formats
from compactor.readers.outcome import Outcomes
from compactor.report.cost import RunCost
from compactor.report.declared import coverage_lines
from compactor.report.reasons import dead_letter_line, first_of, hint_of, partition_count
from compactor.report.rendering import Shown
from compactor.sinks.table_receipts import TableReceipt
from compactor.sizes import human_bytes, plural


def shown(report: Mapping[str, Any], seconds: float) -> Shown:
    """Return the figures of a run, what it left alone, its notes, and what it cost.

    Args:
        report: content of ``report.json``.
        seconds: wall time to show.
    """
    totals = report["totals"]
    rows = [("Partitions", f"{partition_count(report):,}", "")]
    news = report["headline"]
    if totals["objects_in"] or totals["objects_out"]:
        rows += _figures(totals)
    else:
        # All other figures would be zero.
        news = news or "nothing compacted"
    rows.append(("Seconds", "", f"{seconds:,.1f}"))
    lines = coverage(report)
    for reason, one in sorted(report["skipped"].items()):
        objects = plural(one["objects"], "object")
        lines.append(f"left alone: {objects}, {reason}{hint_of(reason)}")
    for reason, one in report["left_alone"].items():
        example = f"{one['example']}: {one['detail']}"
        lines.append(f"left alone: {plural(one['objects'], 'source')}, {reason}, such as {example}")
    if report["oversized"]:
        lines.append(f"left for Spark: {first_of(report['oversized'])}")
    lines += notes(report)
    if report["cost"] is not None:
        lines.append(msgspec.convert(report["cost"], RunCost).line)
    title = f"Run {report['run_id']}: {report['status']}{f', {news}' if news else ''}"
    return Shown(title, ("", "Before", "After"), rows, lines)


def coverage(report: Mapping[str, Any]) -> list[str]:
    """Return what each declaration covers of the run's objects; nothing if there were none."""
    covered = report["totals"]["covered"]
    return coverage_lines(parse_formats(report["settings"]["formats"]), covered) if covered else []


def notes(report: Mapping[str, Any]) -> list[str]:
    """Return the warnings, and a line for everything that followed compaction."""
    dead_letters = report["totals"]["dead_letters"]
    lines = [f"warning: {line}" for line in report["warnings"]]
    if dead_letters:
        lines.append(dead_letter_line(dead_letters, report["dead_letters"]))
    if report["spark"]:
        lines.append(f"by Spark: {first_of(report['spark'])}")
    if report["table"] is not None:
        lines.append(msgspec.convert(report["table"], TableReceipt).line)
    if report["readers"] is not None:
        lines.append(msgspec.convert(report["readers"], Outcomes).line)
    if report["clean_up"] is not None:
        lines += _clean_up_notes(msgspec.convert(report["clean_up"], CleanUpReport))
    return lines


def _figures(totals: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    before, after = totals["objects_in"], totals["objects_out"]
    sizes = (totals["bytes_in"], totals["bytes_out"])
    averages = (sizes[0] / max(1, before), sizes[1] / max(1, after))
    records = totals["records"]
    return [
        ("Objects", f"{before:,}", f"{after:,}"),
        ("Bytes", human_bytes(sizes[0]), human_bytes(sizes[1])),
        ("Average size", human_bytes(averages[0]), human_bytes(averages[1])),
        ("Records", f"{records + totals['dead_letters']:,}", f"{records:,}"),
        ("Compaction ratio", "", f"{before / after:,.1f} : 1" if after else "-"),
    ]


def _clean_up_notes(clean_up: CleanUpReport) -> list[str]:
    deleted = plural(clean_up.deleted, "source")
    commits = plural(clean_up.commits, "commit")
    size = human_bytes(clean_up.deleted_bytes)
    lines = [f"clean-up: {deleted} of {commits} deleted, {size}"]
    for count, noun, what in (
        (clean_up.refused, "source", "not deleted by S3"),
        (clean_up.changed, "source", "replaced by another object, which is left alone"),
        (clean_up.markers, "delete", "left a noncurrent version, which is still paid for"),
        (clean_up.uploads_aborted, "unfinished upload", "aborted"),
    ):
        if count:
            lines.append(f"clean-up: {plural(count, noun)} {what}")
    lines += [f"clean-up: {line}" for line in clean_up.warnings]
    lines += [f"clean-up: {one.key} was not deleted: {one.reason}" for one in clean_up.refusals]
    return lines
