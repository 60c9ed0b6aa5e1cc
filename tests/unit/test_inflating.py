"""Compressed sources are inflated ahead, and come in the order and with the errors they had."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator

import pytest

from compactor.errors import TransientStoreError, UnreadableSource
from compactor.outputs import plain_content as inflating
from compactor.outputs.plain_content import inflated
from compactor.ports import SourceBody
from tests.support.examples import settings, source

SETTINGS = settings()
TEXTS = [f'{{"n":{number}}}\n'.encode() * (1 + number % 4_000) for number in range(0, 20_000, 997)]


@pytest.fixture(params=[1, 2])
def processors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    count: int = request.param
    monkeypatch.setattr(inflating, "processors", lambda: count)
    monkeypatch.setattr(inflating, "_LEAST_BYTES", 100)
    return count


def body(number: int) -> SourceBody:
    """Every third is not compressed, every fifth comes in chunks."""
    text = TEXTS[number]
    stored = text if number % 3 == 0 else gzip.compress(text)
    one = source(f"raw/{number:02d}.json", size=len(stored))
    if number % 5 == 0:
        return SourceBody(one, chunks=lambda: iter([stored[:7], stored[7:]]))
    return SourceBody(one, stored)


def test_contents_are_those_of_their_sources_in_order(processors: int) -> None:
    bodies = [body(number) for number in range(len(TEXTS))]
    found = [(one.source, plain().whole(1 << 30)) for one, plain in inflated(bodies, SETTINGS)]
    assert found == [(one.source, text) for one, text in zip(bodies, TEXTS, strict=True)]


def test_what_ends_the_bodies_comes_after_the_last_of_them(processors: int) -> None:
    def failing() -> Iterator[SourceBody]:
        yield from (body(number) for number in range(3))
        raise TransientStoreError("the store is gone")

    found: list[bytes] = []
    pairs = inflated(failing(), SETTINGS)
    for _ in range(3):
        _, plain = next(pairs)
        found.append(plain().whole(1 << 30))
    assert found == TEXTS[:3]
    with pytest.raises(TransientStoreError, match="gone"):
        next(pairs)


def test_damage_is_reported_where_the_content_is_asked_for(processors: int) -> None:
    torn = gzip.compress(TEXTS[7])[:-30]
    bodies = [body(1), SourceBody(source("raw/torn.json", size=len(torn)), torn), body(2)]
    asked = [plain for _, plain in list(inflated(bodies, SETTINGS))]
    assert asked[0]().whole(1 << 30) == TEXTS[1]
    with pytest.raises(UnreadableSource, match="ends within"):
        asked[1]().whole(1 << 30)
    assert asked[2]().whole(1 << 30) == TEXTS[2]


def test_few_are_held_ahead_of_the_one_that_is_placed(processors: int) -> None:
    taken = []

    def bodies() -> Iterator[SourceBody]:
        for number in range(len(TEXTS)):
            taken.append(number)
            yield body(number)

    for placed, _ in enumerate(inflated(bodies(), SETTINGS)):
        assert len(taken) <= placed + 1 + 4


def test_no_thread_is_left_when_no_more_is_wanted() -> None:
    pairs = inflated([body(number) for number in (1, 2, 4, 7, 8, 11)], SETTINGS)
    next(pairs)
    del pairs
    assert not [one for one in threading.enumerate() if one.name.startswith("inflate")]
