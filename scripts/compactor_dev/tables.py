"""Generates the tables of fields in docs/ from the fields: ``python -m compactor_dev.tables``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compactor.settings.fields import FIELDS
from compactor.settings.specs import FieldSpec
from compactor_dev import REPOSITORY
from compactor_dev.markers import replace_between
from compactor_tables.policies import RULE_FIELDS

#: Pages of docs/, and the name in its markers of the generated part of each.
PAGES = {
    "settings.md": "settings",
    "maintenance.md": "rules",
}


def filled(name: str) -> str:
    """Return a page with its table between its markers.

    Raises:
        ValueError: a marker is missing.
    """
    part = PAGES[name]
    text = (REPOSITORY / "docs" / name).read_text("utf-8")
    begin = f"<!-- {part}: made by python -m compactor_dev.tables -->"
    return replace_between(text, begin, f"<!-- /{part} -->", f"\n{_table(name)}\n")


def _table(name: str) -> str:
    specs = FIELDS if name == "settings.md" else RULE_FIELDS
    return "\n".join(_rows("Field", specs.values()))


def _rows(head: str, specs: Iterable[FieldSpec]) -> Iterator[str]:
    yield f"| {head} | Default | Meaning |"
    yield "|---|---|---|"
    for spec in specs:
        default = "required" if spec.required else f"`{spec.default_text}`"
        meaning = f"{spec.meaning} Accepted: {spec.accepted}.".replace("|", "\\|")
        yield f"| `{spec.name}` | {default} | {meaning} |"


if __name__ == "__main__":
    for page in PAGES:
        (REPOSITORY / "docs" / page).write_text(filled(page), "utf-8")
