"""What keys lie beyond those that were listed, estimated from single pages of them.

S3 does not say how keys are spread. So it is asked for the page after some keys that need not
exist: that shows which characters keys have at which place, where they end, and how dense they are.
Keys are then numbers, each place a digit in the alphabet of the characters seen there.
"""

from __future__ import annotations

import math
import statistics
import string
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from compactor.model import SourceObject

# Places that count after what all keys share: finer is noise.
_DEPTH = 64
# LISTs of a survey; of these so many show how dense keys are, and the others where they end.
_MOST_PROBES, _DENSITIES = 40, 16
# Multiples of the golden section lie evenly, and repeat no digit.
_GOLDEN = 0x9E3779B97F4A7C15
# Beyond so many places, where keys end shows less than a hundredth of how many there are.
_PLACES_OF_THE_END = 2
_ASCII_END, _LAST_CHARACTER = 0x7F, 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_HEXADECIMAL = string.digits + "abcdef"
# The first that has all characters seen at a place is taken.
_ALPHABETS = (
    string.digits,
    _HEXADECIMAL,
    _HEXADECIMAL.upper(),
    string.digits + string.ascii_lowercase,
    string.digits + string.ascii_letters,
)


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What is known of the keys after a place.

    Attributes:
        pages: that they fill, about.
    """

    space: KeySpace
    pages: float
    after: str
    end: str

    def cuts(self, many: int) -> list[str]:
        """Keys in order that cut what was surveyed into at most so many ranges, all within it."""
        first, last = self.space.number(self.after), self.space.number(self.end)
        keys = (self.space.key(first + (last - first) * n // many) for n in range(1, many))
        return sorted({key for key in keys if self.after < key < self.end})


NextPage = Callable[[str], Sequence[SourceObject]]
"""The page of objects after a key; empty after the last one."""


def survey(next_page: NextPage, after: str) -> Surveyed:
    """Look at the keys after ``after``."""
    probes = _Probes(next_page)
    page = probes.after(after)
    if not page:
        return Surveyed(KeySpace(""), 0.0, after, after)
    end = _end(probes, page[-1].key)
    # Between the two, all keys have in common what these have.
    shared = _shared(page[0].key, end)
    # Those pages have few characters, as all first seconds of hours have no minutes.
    wide = KeySpace(shared, probes.keys, wide=True)
    cuts = (key for key in wide.scattered(after, end, probes.left) if after < key < end)
    pages = [(after, page), *((cut, probes.after(cut)) for cut in cuts)]
    space = KeySpace(shared, probes.keys)
    full = [(cut, page) for cut, page in pages if len(page) == probes.full]
    taken = [max(1, space.number(page[-1].key) - space.number(cut)) for cut, page in full]
    whole = space.number(end) - space.number(after)
    # One page may show a gap; half of them show more, and half less.
    return Surveyed(space, whole / statistics.median(taken) if taken else 1.0, after, end)


def _after_kind(character: str) -> int:
    """The code after the last digit, for a digit; likewise for letters, and for all of ASCII."""
    kinds = (last for first, last in ("09", "AZ", "az") if first <= character <= last)
    return next((ord(last) + 1 for last in kinds), _ASCII_END)


def _shared(one: str, other: str) -> str:
    """What both begin with."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(character for character, _ in pairs)


class _Probes:
    """Asks for single pages, as many as it may."""

    def __init__(self, next_page: NextPage) -> None:
        self._next_page = next_page
        self.left = _MOST_PROBES
        self.keys: list[str] = []
        self.full = 1

    def after(self, key: str) -> Sequence[SourceObject]:
        """The page after a key."""
        self.left -= 1
        page = self._next_page(key)
        self.full = max(self.full, len(page))
        self.keys += [one.key for one in page]
        return page


def _end(probes: _Probes, last: str) -> str:
    """A key that none follows, and little precedes; ``last`` is one that is there."""
    at = 0
    for _ in range(_PLACES_OF_THE_END):
        at, last = _first_to_grow(probes, last, at)
        last = _grown(probes, last, at)
        if probes.left <= _DENSITIES:
            break
        at += 1
    # Whatever is after the places that are known.
    return last[:at] + chr(_LAST_CHARACTER)


def _first_to_grow(probes: _Probes, last: str, at: int) -> tuple[int, str]:
    """The first place from ``at`` on where a key has a larger character; and such a key."""
    low, high, step = at, len(last), 1
    while low < high and probes.left > _DENSITIES:
        # It is mostly the next one, and far away where all keys have much in common.
        middle = min(low + step - 1, (low + high) // 2)
        step *= 2
        page = probes.after(last[: middle + 1] + chr(_LAST_CHARACTER))
        if page:
            # It shares what was found to be the largest, and maybe more than that.
            last, high = page[-1].key, middle
        else:
            low = middle + 1
    return low, last


def _grown(probes: _Probes, last: str, at: int) -> str:
    """A key with the largest character at a place, of those that are alike before it."""
    top = _LAST_CHARACTER + 1
    while at < len(last) and probes.left > _DENSITIES:
        low = ord(last[at])
        middle = (low + top) // 2
        if low < _ASCII_END < top:
            middle = _after_kind(last[at])
        if middle in _SURROGATES:
            # No key has one: they are halves of characters.
            middle = _SURROGATES.stop
        if not low < middle < top:
            break
        page = probes.after(last[:at] + chr(middle))
        if page:
            last = max(last, page[-1].key)
        else:
            top = middle
    return last


def _filled(seen: set[str], wide: bool) -> list[str]:
    """Characters in order, with those that are likely between the first and the last one."""
    first, last = min(seen), max(seen)
    usual = next((one for one in _ALPHABETS if seen <= set(one)), "")
    return sorted(seen | {one for one in usual if wide or first < one < last})


class KeySpace:
    """Keys as numbers, in their order.

    Args:
        shared: what all of them begin with.
        keys: some of them.
        wide: any place may have other characters than are seen there, of the same kind.
    """

    def __init__(self, shared: str, keys: Iterable[str] = (), *, wide: bool = False) -> None:
        self._shared = shared
        seen: list[set[str]] = [set() for _ in range(_DEPTH)]
        for key in keys:
            for characters, one in zip(seen, key[len(shared) :], strict=False):
                characters.add(one)
        self._alphabets = [_filled(characters, wide) for characters in seen if characters]
        self._most = math.prod(map(len, self._alphabets)) - 1

    def number(self, key: str) -> int:
        """A number for a key, which never decreases from key to key."""
        if not key.startswith(self._shared):
            return 0 if key < self._shared else self._most
        number, rest = 0, key[len(self._shared) :]
        # What is not known here, or not there, counts as what is next to it.
        before, beyond = False, False
        for place, alphabet in enumerate(self._alphabets):
            last = len(alphabet) - 1
            digit = last if beyond else 0
            if not before and not beyond and place < len(rest):
                digit = bisect_left(alphabet, rest[place])
                beyond = digit > last
                before = not beyond and alphabet[digit] != rest[place]
            number = number * len(alphabet) + min(digit, last)
        return number

    def scattered(self, after: str, until: str, many: int) -> Iterator[str]:
        """A number of keys between two, with all characters at all places, in no order."""
        first, last = self.number(after), self.number(until)
        for one in range(1, many + 1):
            yield self.key(first + ((last - first) * (one * _GOLDEN % (1 << 64)) >> 64))

    def key(self, number: int) -> str:
        """A key with this number; it need not exist."""
        digits = []
        for alphabet in reversed(self._alphabets):
            number, digit = divmod(number, len(alphabet))
            digits.append(alphabet[digit])
        return self._shared + "".join(reversed(digits))
