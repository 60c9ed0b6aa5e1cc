"""A set of digests is a set, whether it is held as one or in order in one block of bytes."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactor.log import digests
from compactor.log.digests import Digests


@pytest.fixture(autouse=True, scope="module")
def few() -> Iterator[None]:
    """Three stay a set."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digests, "_FEW", 3)
        yield


#: Alike, so that the end of one and the beginning of the next look like a third.
ALIKE = st.text("ab", min_size=16, max_size=16).map(str.encode)
ANY = st.binary(min_size=16, max_size=16)
SETS = st.sets(ALIKE | ANY, max_size=12)


@settings(max_examples=30)
@given(SETS, SETS, SETS)
def test_it_does_what_a_set_does(first: set[bytes], more: set[bytes], less: set[bytes]) -> None:
    plain, held = set(first), Digests(first)
    held.update(more)
    plain |= more
    held.difference_update(less)
    plain -= less
    assert set(held) == plain
    assert (len(held), set(held), bool(held)) == (len(plain), plain, bool(plain))
    assert less & held == less & plain
    for one in first | more | less:
        assert (one in held) == (one in plain)
    raw = held.to_bytes()
    assert raw == b"".join(sorted(plain))
    assert set(Digests.from_bytes(raw)) == plain
    shuffled = b"".join(sorted(plain, key=lambda one: bytes(one)[::-1]))
    assert Digests.from_bytes(shuffled).to_bytes() == raw


def test_the_end_of_one_and_the_beginning_of_the_next_are_no_digest() -> None:
    held = Digests.from_bytes(b"".join(sorted(b"ab" * 7 + bytes([n, n]) for n in range(97, 117))))
    between = held.to_bytes()[2:18]
    assert between not in held


def test_a_cut_digest_is_damage() -> None:
    with pytest.raises(ValueError, match="a digest is cut"):
        Digests.from_bytes(b"x" * 17)


def test_a_digest_takes_little_more_than_its_sixteen_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_FEW", 1 << 10)
    count = 200_000
    chance = random.Random(1)
    step = (1 << 128) // count
    raw = b"".join((n * step + chance.randrange(step)).to_bytes(16, "big") for n in range(count))
    tracemalloc.start()
    try:
        held = Digests.from_bytes(b"".join((raw,)))
        held.update(chance.randbytes(16) for _ in range(1_000))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(held) == count + 1_000
    # Half a megabyte of index, however many there are.
    assert taken - 8 * (1 << 16) < 18 * count
