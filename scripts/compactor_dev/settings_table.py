"""Generates the table of settings in docs/settings.md from the fields.

``python -m compactor_dev.settings_table`` writes it between the markers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from compactor.settings.fields import FIELDS
from compactor.settings.specs import FieldSpec
from compactor_cli.markers import replace_between

DOCS = Path(__file__).resolve().parents[2] / "docs"


@dataclass(frozen=True, slots=True)
class MadePage:
    """A page with a generated part.

    Attributes:
        path: of the page.
        part: name of the part in its markers.
        module: the module that generates it.
        make: returns its Markdown.
    """

    path: Path
    part: str
    module: str
    make: Callable[[], str]

    def filled(self, page: str) -> str:
        """Return the page with the generated part between its markers.

        Raises:
            ValueError: a marker is missing.
        """
        begin = f"<!-- {self.part}: made by python -m {self.module} -->"
        return replace_between(page, begin, f"<!-- /{self.part} -->", f"\n{self.make()}\n")

    def write(self) -> None:
        """Rewrite the page."""
        self.path.write_text(self.filled(self.path.read_text("utf-8")), "utf-8")


def heads(name: str) -> list[str]:
    """Return the first lines of a table of fields; ``name`` heads the first column."""
    return [f"| {name} | Default | Meaning |", "|---|---|---|"]


def row(spec: FieldSpec, default: str) -> str:
    """Return the row of one field."""
    meaning = f"{spec.meaning} Accepted: {spec.accepted}.".replace("|", "\\|")
    return f"| `{spec.name}` | {default} | {meaning} |"


def table() -> str:
    """Return the table in Markdown, one row per field."""
    lines = heads("Field")
    for spec in FIELDS.values():
        lines.append(row(spec, "required" if spec.required else f"`{spec.default_text}`"))
    return "\n".join(lines)


PAGE = MadePage(DOCS / "settings.md", "settings", "compactor_dev.settings_table", table)

if __name__ == "__main__":
    PAGE.write()
