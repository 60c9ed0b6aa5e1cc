"""What docs/ says of settings and keys is what they say of themselves; README.md stays short."""

from __future__ import annotations

import pytest

from compactor_dev import tables

MOST_LINES = 125


@pytest.mark.parametrize("page", tables.PAGES)
def test_the_tables_of_settings_and_keys_are_up_to_date(page, repo_root):
    text = (repo_root / "docs" / page).read_text(encoding="utf-8")
    assert tables.filled(page) == text, "run python -m compactor_dev.tables"


def test_the_readme_is_read_in_one_sitting(repo_root):
    lines = (repo_root / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < MOST_LINES
