"""What README.md says of the settings is what the settings say of themselves."""

from __future__ import annotations

from compactor_dev.settings_table import README, filled


def test_the_table_of_settings_in_the_readme_is_up_to_date():
    text = README.read_text(encoding="utf-8")
    assert filled(text) == text, "run python -m compactor_dev.settings_table"
