"""The table of settings in docs/settings.md, made from the fields themselves.

``python -m compactor_dev.settings_table`` writes it between the markers.
"""

from __future__ import annotations

from pathlib import Path

from compactor.settings.fields import FIELDS
from compactor_cli.markers import replace_between

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "settings.md"
BEGIN = "<!-- settings: made by python -m compactor_dev.settings_table -->"
END = "<!-- /settings -->"


def table() -> str:
    """Markdown, one row a field."""
    lines = ["| Field | Default | Meaning |", "|---|---|---|"]
    for spec in FIELDS.values():
        default = "required" if spec.required else f"`{spec.default_text}`"
        meaning = f"{spec.meaning} Accepted: {spec.accepted}.".replace("|", "\\|")
        lines.append(f"| `{spec.name}` | {default} | {meaning} |")
    return "\n".join(lines)


def filled(page: str) -> str:
    """The text with the table between its markers.

    Raises:
        ValueError: a marker is missing.
    """
    return replace_between(page, BEGIN, END, f"\n{table()}\n")


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
