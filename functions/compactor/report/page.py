"""The report as one HTML page, self-contained and without scripts. Rendered only on request.

The template is rendered with autoescape, and every text is first made
:func:`compactor.escaping.visible`, so outside input can neither become markup nor hide anything.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compactor.escaping import visible
from compactor.money import dollar_text
from compactor.report.charts import histogram, trend
from compactor.report.reasons import (
    OVERSIZED,
    backlog,
    partition_count,
    why_failed,
    why_left,
)
from compactor.report.text import coverage, notes
from compactor.sizes import human_bytes, human_seconds, plural

#: Number of failures that are always visible; the others are collapsed.
OPEN_ROWS = 12
# ISO 8601 as the state machine and this program write it, always in UTC.
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)$")


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure, and what to do about it."""

    where: str
    error: str
    cause: str
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Remainder:
    """Objects or partitions that were left alone for one reason, and what to do about them."""

    reason: str
    count: str
    bytes: str
    sentence: str
    remedy: str
    example: str


def render(report: Mapping[str, Any]) -> str:
    """Return the HTML of a run report.

    Args:
        report: content of ``report.json``.
    """
    from jinja2 import (  # noqa: PLC0415 - only a run that shows a page pays for the import
        Environment,
        PackageLoader,
        StrictUndefined,
    )

    environment = Environment(
        loader=PackageLoader("compactor.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": "{:,}".format,
        "percent": "{:.2f}%".format,
        "share": "{:.0%}".format,
        "dollars": dollar_text,
    }
    line = {name: report[name] for name in ("started_at", "wall_seconds", "status")}
    line["objects"] = report["totals"]["objects_in"]
    runs = [{**run, "started": moment(run["started_at"])} for run in (*report["previous"], line)]
    return environment.get_template("report.html.j2").render(
        report=report,
        started=moment(report["started_at"]),
        verdict=verdict(report),
        failed=_failed_sentence(report),
        failures=failures(report),
        open_rows=OPEN_ROWS,
        figures=_figures(report),
        sizes=histogram(report["sizes"]["before"], report["sizes"]["after"]),
        trend=trend(runs),
        left_alone=left_alone(report),
        notes=[*coverage(report), *notes(report)],
        cost=report["cost"],
        verify=verify_command(report["settings"]),
    )


def verdict(report: Mapping[str, Any]) -> str:
    """Return a run's result in one sentence."""
    totals = report["totals"]
    before, after = totals["objects_in"], totals["objects_out"]
    if not before:
        text = report["headline"] or _nothing(report)
        return text[0].upper() + text[1:]
    left_alone = sum(entry["objects"] for entry in report["left_alone"].values())
    of_all = f"{before:,} of " if left_alone else ""
    parts = [f"{of_all}{plural(before + left_alone, 'object')} became {after:,}"]
    if left_alone:
        parts.append(f"{left_alone:,} were left alone")
    if after and before >= 2 * after:
        parts.append(f"queries open {before / after:,.0f} times fewer objects")
    if totals["records"]:
        every = "every one of " if totals["records"] > 1 else ""
        theirs = " in them" if left_alone else ""
        records = plural(totals["records"], "record")
        parts.append(f"{every}{records}{theirs} is in exactly one output")
    return "; ".join(parts) + "."


def failures(report: Mapping[str, Any]) -> list[Failure]:
    """Return everything that failed, with what to do."""
    rows = [
        _worded("the run", report["failure"]),
        _worded("Spark", report["spark_failure"].removeprefix("Spark: ")),
    ]
    failed = [one for one in report["partitions"] if one["status"] != "done"]
    rows += [
        Failure(one["path"] or "(root)", one["error"], one["cause"], *why_failed(one["error"]))
        for one in failed
    ]
    table = report["table"] or {"error": "", "cause": "", "faults": ()}
    if table["error"]:
        rows.append(Failure("table", table["error"], table["cause"], *why_failed(table["error"])))
    rows += [_worded("table", line) for line in table["faults"]]
    clean_up = report["clean_up"] or {"failures": (), "unsafe": (), "left_out": {}}
    rows += [_worded("clean-up", line) for line in (*clean_up["failures"], *clean_up["unsafe"])]
    rows += [
        _worded("clean-up", f"{count:,} more {kind}")
        for kind, count in clean_up["left_out"].items()
        if kind != "warnings"
    ]
    more = report["failed_count"] - len(failed)
    if more > 0:
        rows.append(_worded("the run", f"and {more:,} more partitions"))
    return [row for row in rows if row.cause]


def left_alone(report: Mapping[str, Any]) -> list[Remainder]:
    """Return what was left alone by reason: for its content, oversized, then by the rules."""
    rows = []
    settings = report["settings"]
    for reason, one in _most_first(report["left_alone"]):
        _, remedy = why_left(reason, settings)
        rows.append(_remainder(reason, one, one["detail"], remedy, one["example"]))
    if report["oversized"]:
        count = plural(len(report["oversized"]), "partition")
        such = ", ".join(path or "(root)" for path in report["oversized"])
        rows.append(Remainder(OVERSIZED, count, "", *why_left(OVERSIZED, settings), such))
    for reason, one in _most_first(report["skipped"]):
        sentence, remedy = why_left(reason, settings)
        rows.append(_remainder(reason, one, sentence, remedy, ", ".join(one["examples"])))
    return rows


def verify_command(settings: Mapping[str, Any]) -> str:
    """Return the shell command that verifies everything again."""
    words = (settings["s3_source_uri"], settings["s3_destination_uri"])
    return f"compactor verify {' '.join(map(shlex.quote, words))} --deep"


def moment(text: str) -> str:
    """Format a time to the second, as ``2026-01-31 06:01:02 UTC``; return other text as it is."""
    match = _MOMENT.match(text)
    return f"{match[1]} {match[2]} UTC" if match else text


def _remainder(
    reason: str, one: Mapping[str, Any], sentence: str, remedy: str, example: str
) -> Remainder:
    count, size = f"{one['objects']:,}", human_bytes(one["bytes"])
    return Remainder(reason, count, size, sentence, remedy or "nothing", example)


def _worded(where: str, line: str) -> Failure:
    """Return a failure that is known from one line, which may contain an error's name."""
    names = [word.strip(":") for word in line.split() if word.endswith(":")]
    known = (why_failed(name) for name in names if why_failed(name).sentence)
    return Failure(where, "", line, *next(known, why_failed("")))


def _failed_sentence(report: Mapping[str, Any]) -> str:
    """Return what failed, and what is safe nevertheless; empty for a run that succeeded."""
    if report["status"] != "failed":
        return ""
    failed = report["failed_count"]
    partitions = plural(partition_count(report), "partition")
    what = f"{failed:,} of {partitions} failed" if failed else "The run failed"
    return f"{what}; what was committed stands, and the same run again does the rest."


def _figures(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the most important numbers, with their labels; no zeros of an idle run."""
    totals = report["totals"]
    before, after = totals["objects_in"], totals["objects_out"]
    figures = []
    if before or after or report["left_alone"]:
        means = (totals["bytes_in"] / max(1, before), totals["bytes_out"] / max(1, after))
        figures = [
            ("Objects", f"{before:,} → {after:,}"),
            ("Bytes", f"{human_bytes(totals['bytes_in'])} → {human_bytes(totals['bytes_out'])}"),
            ("Average size", f"{human_bytes(means[0])} → {human_bytes(means[1])}"),
            ("Records", f"{totals['records']:,}"),
        ]
    figures.append(("Partitions", f"{partition_count(report):,}"))
    if report["wall_seconds"]:
        figures.append(("Wall time", human_seconds(report["wall_seconds"])))
    figures.append(("Time of all workers", human_seconds(totals["seconds"])))
    if report["cost"]:
        figures.append(("Cost, about", dollar_text(report["cost"]["dollars"])))
    for name, count in (
        ("Dead-letter records", totals["dead_letters"]),
        ("Quarantined", totals["quarantined"]),
        ("Waiting for a later run", backlog(report)),
    ):
        if count:
            figures.append((name, f"{count:,}"))
    return figures


def _nothing(report: Mapping[str, Any]) -> str:
    counts = {
        reason: one["objects"]
        for reason, one in (*report["skipped"].items(), *report["left_alone"].items())
        if one["objects"]
    }
    if not counts:
        return "Nothing was compacted: there was nothing to do."
    most = max(counts, key=lambda reason: counts[reason])
    every = plural(sum(counts.values()), "object")
    mostly = "all" if len(counts) == 1 else "mostly"
    return f"Nothing was compacted: {every} left, {mostly} {most}."


def _most_first(counts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(counts.items(), key=lambda item: (-item[1]["objects"], item[0]))


def _shown(value: object) -> object:
    """Make text visible, and shorten bar lengths to two decimals."""
    if hasattr(value, "__html__"):
        return value
    return f"{value:.2f}" if isinstance(value, float) else visible(str(value))
