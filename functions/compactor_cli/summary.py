"""The report of one run at a terminal, and its totals for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from compactor.formats.declaration import parse_formats
from compactor.report.declared import by_declaration
from compactor.report.reasons import partition_count
from compactor.report.text import shown
from compactor.sizes import plural
from compactor_cli.console import counted, print_line, print_table

_SHOWN_LINES = 50


def totals_of(report: Mapping[str, Any], seconds: float, report_uri: str) -> dict[str, Any]:
    """Return the totals of a run; bytes are stored bytes.

    Args:
        report: content of ``report.json``.
        seconds: wall time.
        report_uri: URI of the full report.
    """
    totals = report["totals"]
    before, after = totals["objects_in"], totals["objects_out"]
    return {
        "run_id": report["run_id"],
        "status": report["status"],
        "partitions": partition_count(report),
        "objects_before": before,
        "objects_after": after,
        "bytes_before": totals["bytes_in"],
        "bytes_after": totals["bytes_out"],
        "average_bytes_before": round(totals["bytes_in"] / before, 1) if before else 0.0,
        "average_bytes_after": round(totals["bytes_out"] / after, 1) if after else 0.0,
        "compaction_ratio": round(before / after, 2) if after else 0.0,
        "records": totals["records"],
        "dead_letters": totals["dead_letters"],
        "dead_letter_prefixes": report["dead_letters"],
        "seconds": round(seconds, 2),
        "skipped": {reason: one["objects"] for reason, one in report["skipped"].items()},
        "quarantined": totals["quarantined"],
        "formats": by_declaration(parse_formats(report["settings"]["formats"]), totals["covered"]),
        "report_uri": report_uri,
        **{
            name: report[name]
            for name in (
                "left_alone",
                "headline",
                "oversized",
                "spark",
                "clean_up",
                "table",
                "readers",
                "cost",
                "warnings",
            )
        },
    }


def is_idle(report: Mapping[str, Any]) -> bool:
    """Return whether a run succeeded and found nothing to compact."""
    totals = report["totals"]
    done = totals["objects_in"] or totals["objects_out"] or report["spark"]
    left = report["left_alone"] or report["oversized"]
    return report["status"] == "succeeded" and not (done or left)


def print_summary(report: Mapping[str, Any], seconds: float, failures: Sequence[str] = ()) -> None:
    """Print the verdict and the figures of a run, what it left alone, its failures, its cost."""
    table = shown(report, seconds)
    print_table(table.title, table.heads, table.rows)
    *lines, last = [*counted(table.lines), ""]
    if report["cost"] is not None:
        last = lines.pop()
    for line in lines[:_SHOWN_LINES]:
        print_line(line)
    if len(lines) > _SHOWN_LINES:
        print_line(f"and {plural(len(lines) - _SHOWN_LINES, 'more line')}; see the report")
    for line in (*failures, last):
        if line:
            print_line(line)
