"""Generates the table of rules in docs/maintenance.md from the fields.

``python -m compactor_dev.rules_table`` writes it between the markers.
"""

from __future__ import annotations

from compactor_dev.settings_table import DOCS, MadePage, heads, row
from compactor_tables.policies import RULE_FIELDS


def table() -> str:
    """Return the table in Markdown, one row per field."""
    lines = heads("Field")
    for spec in RULE_FIELDS.values():
        lines.append(row(spec, "required" if spec.required else f"`{spec.default_text}`"))
    return "\n".join(lines)


PAGE = MadePage(DOCS / "maintenance.md", "rules", "compactor_dev.rules_table", table)

if __name__ == "__main__":
    PAGE.write()
