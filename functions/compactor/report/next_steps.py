"""What to do after a run, from its report: the most urgent first. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compactor.report import view
from compactor.report.idle_reasons import too_large
from compactor.report.sentences import rejected_line
from compactor.sizes import plural

# More than these would hide the most urgent ones.
_MOST_LINES = 8
_NOTHING = "Nothing to do: nothing failed, and no object waits or was left for a setting."


def next_steps(report: Mapping[str, Any]) -> list[str]:
    """Return a line for each failure, rejected records, and what was left and may be taken.

    Args:
        report: content of ``report.json``.
    """
    lines = []
    if report["status"] == "failed":
        what = plural(report["failed_count"], "failed partition")
        what = what if report["failed_count"] else "the failed run"
        lines.append(f"{what}: do what the table above says, then start the same run again")
    lines += [
        f"{_objects(one)} left alone, {_cause(one)}: {one['remedy']}"
        for one in view.left_rows(report)
        if one["remedy"]
    ]
    if report["totals"].get("rejects_waiting"):
        lines.append(rejected_line(report["totals"]["rejects_waiting"], report["rejects"]))
    if report["oversized"]:
        lines.append(too_large(len(report["oversized"])))
    lines += [
        f"{_objects(one)} left, {one['why']}: {one['remedy']}"
        for one in view.skipped_rows(report)
        if one["remedy"] not in {"", "nothing"}
    ]
    more = len(lines) - _MOST_LINES
    shown = lines[:_MOST_LINES] + ([f"and {more} more, in the tables below"] if more > 0 else [])
    return [line[0].upper() + line[1:] for line in shown] or [_NOTHING]


def _objects(row: Mapping[str, str]) -> str:
    return f"{row['objects']} object{'' if row['objects'] == '1' else 's'}"


def _cause(row: Mapping[str, str]) -> str:
    """Return why the objects were left, without the bytes that the details end with."""
    return row["why"].partition("; it starts with ")[0] or row["reason"]
