"""Results of runs and commands as text, and as tables for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from compactor.escaping import visible


@dataclass(frozen=True, slots=True)
class Shown:
    """A title, a table with its first column left-aligned, and lines below it."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    lines: Sequence[str] = ()

    def as_text(self) -> str:
        """Return lines of text with aligned columns."""
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
        """Return an HTML fragment without scripts or styles; every value is escaped."""
        heads = "".join(f"<th>{escape(visible(head))}</th>" for head in self.heads)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(visible(cell))}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        lines = "".join(f"<div>{escape(visible(line))}</div>" for line in self.lines)
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return f"<div><b>{escape(visible(self.title))}</b>{table}{lines}</div>"
