"""What was compared with a log in vain is compared again once another entry is there."""

from __future__ import annotations

from compactor.runs.source_notes import Unlike


def test_what_was_compared_in_vain_is_not_compared_again_while_nothing_is_added() -> None:
    unlike = Unlike()
    assert unlike.at(7) == set()
    unlike.add({b"a"}, 7)
    unlike.add({b"b"}, 7)
    assert unlike.at(7) == {b"a", b"b"}


def test_the_next_entry_may_have_the_content_after_all() -> None:
    unlike = Unlike()
    unlike.add({b"a"}, 7)
    assert unlike.at(8) == set()
    unlike.add({b"b"}, 8)
    assert unlike.at(8) == {b"b"}
