"""The table of settings in README.md, made from the fields themselves.

``python -m compactor_dev.settings_table`` writes it between the markers.
"""

from __future__ import annotations

from pathlib import Path

from compactor.settings.fields import FIELDS
from compactor_cli.markers import replace_between

README = Path(__file__).resolve().parents[2] / "README.md"
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


def filled(readme: str) -> str:
    """The text with the table between its markers.

    Raises:
        ValueError: a marker is missing.
    """
    return replace_between(readme, BEGIN, END, f"\n{table()}\n")


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
