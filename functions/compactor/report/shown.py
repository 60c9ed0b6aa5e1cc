"""Results of a run and of the commands as text, and as a table for a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compactor.report.html import escape, human_bytes
from compactor.shown import visible

if TYPE_CHECKING:
    from compactor.report.report import RunReport


@dataclass(frozen=True, slots=True)
class Shown:
    """A title, a table (its first column to the left), and lines below it."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    lines: Sequence[str] = ()

    def as_text(self) -> str:
        """Lines of text, the columns aligned."""
        table = [[visible(cell) for cell in row] for row in (self.heads, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if number else cell.ljust(width)
                for number, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        return "\n".join([visible(self.title), *lines, *map(visible, self.lines)])

    def as_html(self) -> str:
        """A fragment without scripts and styles of its own; every value is escaped."""
        heads = "".join(f"<th>{escape(head)}</th>" for head in self.heads)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        lines = "".join(f"<div>{escape(line)}</div>" for line in self.lines)
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<div><b>{escape(self.title)}</b>{table}{lines}</div>"


def shown_run(report: RunReport) -> Shown:
    """A run in numbers, before and after; and a line for whatever it left alone or failed at."""
    totals = report.totals
    ratio = totals.objects_in / totals.objects_out if totals.objects_out else 0.0
    sizes = (totals.bytes_in, totals.bytes_out)
    counts = (totals.objects_in, totals.objects_out)
    averages = [size / max(1, count) for size, count in zip(sizes, counts, strict=True)]
    rows = (
        ("Partitions", f"{len(report.partitions) + len(report.oversized):,}", ""),
        ("Objects", *(f"{count:,}" for count in counts)),
        ("Bytes", *map(human_bytes, sizes)),
        ("Average size", *map(human_bytes, averages)),
        ("Records", f"{totals.records + totals.rejected:,}", f"{totals.records:,}"),
        ("Compaction ratio", "", f"{ratio:,.1f} : 1" if ratio else "-"),
    )
    lines = [line for line in (report.headline, report.cause) if line]
    lines += [f"left alone: {one.objects:,}, {why}" for why, one in sorted(report.skipped.items())]
    lines += [
        f"left alone: {one.objects:,}, {why}, such as {one.example}"
        for why, one in report.left_alone.items()
    ]
    lines += [f"left for Spark: {path or '(root)'}" for path in report.oversized]
    lines += [f"warning: {line}" for line in report.warnings]
    if report.clean_up is not None:
        lines.append(f"clean-up: {report.clean_up.deleted:,} sources deleted")
    return Shown(f"Run {report.run_id}: {report.status}", ("", "Before", "After"), rows, lines)
