"""What a log remembers of contents, in eight bytes for each source."""

from __future__ import annotations

import random

import pytest

from compactor.log.content_index import UNREAD_MARK, Contents, mark_of, overwritten
from compactor.log.manifest import ManifestRow
from compactor.planning.packing import make_group
from tests.support.examples import settings, source


def row(name: str, plain_bytes: int | None = 10, crc32: int | None = 1) -> ManifestRow:
    return ManifestRow(source(name), 0, 0, plain_bytes, crc32, None)


def test_every_content_of_a_key_is_known_however_many_commits_there_are() -> None:
    chance = random.Random(1)
    contents = Contents()
    wanted: dict[str, set[int]] = {}
    for _ in range(100):
        rows = [row(f"{chance.randrange(50)}", 10, chance.randrange(2**32)) for _ in range(7)]
        contents.add(rows)
        for one in rows:
            marks = wanted.setdefault(one.source.key, set())
            marks.add(mark_of(one.plain_bytes, one.crc32))
    for again in (contents, Contents.from_bytes(contents.to_bytes())):
        for name in range(50):
            asked = source(f"{name}", etag="any")
            assert again.marks(asked) == wanted.get(asked.key, set())
    assert len(contents.to_bytes()) == 8 * 700


def test_keys_of_other_buckets_are_other_keys() -> None:
    contents = Contents()
    contents.add([row("a")])
    elsewhere = type(source("a"))("elsewhere", source("a").key, "e", 1, 0.0)
    assert contents.marks(source("a"))
    assert not contents.marks(elsewhere)


def test_what_became_void_is_forgotten_and_nothing_else() -> None:
    contents = Contents()
    contents.add([row("a"), row("b")])
    contents.add([row("a", crc32=2)])
    contents.discard([row("a"), row("b")])
    assert contents.marks(source("a")) == {mark_of(10, 2)}
    assert not contents.marks(source("b"))


@pytest.mark.parametrize(("size", "crc32"), [(0, 0), (1, 1), (65_536, 65_537), (3, 3 << 16)])
def test_no_content_looks_like_unread_content(size: int, crc32: int) -> None:
    assert mark_of(size, crc32) != UNREAD_MARK
    assert mark_of(None, None) == mark_of(size, None) == UNREAD_MARK


def test_the_values_have_one_order_of_bytes_on_every_machine() -> None:
    contents = Contents()
    contents.add([row("a"), row("b")])
    here = contents.to_bytes()
    values = [int.from_bytes(here[n : n + 8], "little") for n in (0, 8)]
    assert values == sorted(values)
    assert [value & 0xFFFF for value in values] == [mark_of(10, 1)] * 2


def test_a_checkpoint_with_half_a_content_is_damage() -> None:
    with pytest.raises(ValueError, match="a content is cut"):
        Contents.from_bytes(b"123")


def test_only_what_was_compacted_before_counts_as_overwritten() -> None:
    contents = Contents()
    contents.add([row("a", crc32=9)])
    group = contents.held_by(make_group([source("a"), source("b")], settings()), set())
    found = overwritten(group, [row("a"), row("b")])
    assert (found.objects, found.bytes, found.examples) == (1, 100, (source("a").key,))
