"""The pages of docs/decisions, and their index."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_decision_is_in_the_index_under_its_title(repo_root: Path) -> None:
    decisions = repo_root / "docs" / "decisions"
    titles = {
        page.name: page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        for page in decisions.glob("[0-9]*.md")
    }
    index = (decisions / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(\d{4})\]\((\S+)\) (.+)$", index, re.MULTILINE)
    assert {name: f"{number}. {title}" for number, name, title in listed} == titles
    assert "docs/decisions/README.md" in (repo_root / "README.md").read_text(encoding="utf-8")
