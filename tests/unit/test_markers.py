from __future__ import annotations

import pytest

from compactor_dev.markers import replace_between


def test_only_what_stands_between_the_markers_is_replaced() -> None:
    text = "before\n<!-- a -->\nold\n<!-- /a -->\nafter\n"
    made = replace_between(text, "<!-- a -->", "<!-- /a -->", "\nnew\n")
    assert made == "before\n<!-- a -->\nnew\n<!-- /a -->\nafter\n"


@pytest.mark.parametrize("text", ["no markers", "<!-- a --> alone", "<!-- /a --> <!-- a -->"])
def test_a_text_without_both_markers_in_order_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="there is no <!-- a -->"):
        replace_between(text, "<!-- a -->", "<!-- /a -->", "new")
