"""What docs/ says of settings and keys is what they say of themselves; README.md stays short."""

from __future__ import annotations

import pytest

from cdk import keys_table
from compactor_dev import settings_table

MOST_LINES = 200


@pytest.mark.parametrize("module", [settings_table, keys_table])
def test_the_tables_of_settings_and_keys_are_up_to_date(module):
    text = module.PAGE.read_text(encoding="utf-8")
    assert module.filled(text) == text, f"run python -m {module.__name__}"


def test_the_readme_is_read_in_one_sitting(repo_root):
    lines = (repo_root / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < MOST_LINES
