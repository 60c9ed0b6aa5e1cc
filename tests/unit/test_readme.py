"""What docs/ says of settings and keys is what they say of themselves; README.md stays short."""

from __future__ import annotations

import pytest

from compactor_dev import keys_table, rules_table, settings_table

MOST_LINES = 125


@pytest.mark.parametrize("page", [settings_table.PAGE, rules_table.PAGE, keys_table.PAGE])
def test_the_tables_of_settings_and_keys_are_up_to_date(page):
    text = page.path.read_text(encoding="utf-8")
    assert page.filled(text) == text, f"run python -m {page.module}"


def test_the_readme_is_read_in_one_sitting(repo_root):
    lines = (repo_root / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < MOST_LINES
