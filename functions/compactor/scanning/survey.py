"""Estimates the number of keys after those that were listed, from single pages.

S3 does not report how keys are distributed. So the pages after some keys, which need not exist, are
requested: they show which characters occur at which position, where the keys end, and how dense
they are. Keys are then treated as numbers, whose digits are the characters seen at each position.
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

# Number of positions that count after the shared prefix; beyond these there is only noise.
_DEPTH = 64
# LISTs of a survey; _DENSITIES of them measure density, and the others search for the end.
_MOST_PROBES, _DENSITIES = 40, 16
# Multiples of the golden ratio are evenly distributed, and do not repeat.
_GOLDEN = 0x9E3779B97F4A7C15
# Further positions of the last key change the number of keys by less than one percent.
_PLACES_OF_THE_END = 2
_ASCII_END, _LAST_CHARACTER = 0x7F, 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_HEXADECIMAL = string.digits + "abcdef"
# The first alphabet that contains all characters seen at a position is used.
_ALPHABETS = (
    string.digits,
    _HEXADECIMAL,
    _HEXADECIMAL.upper(),
    string.digits + string.ascii_lowercase,
    string.digits + string.ascii_letters,
)


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What is known about the keys after a given key.

    Attributes:
        pages: approximate number of pages that they fill.
    """

    space: KeySpace
    pages: float
    after: str
    end: str

    def cuts(self, many: int) -> list[str]:
        """Return at most ``many - 1`` sorted keys that divide the surveyed range."""
        first, last = self.space.number(self.after), self.space.number(self.end)
        keys = (self.space.key(first + (last - first) * n // many) for n in range(1, many))
        return sorted({key for key in keys if self.after < key < self.end})


NextPage = Callable[[str], Sequence[SourceObject]]
"""The page of objects after a key; empty after the last one."""


def survey(next_page: NextPage, after: str) -> Surveyed:
    """Survey the keys after ``after``."""
    probes = _Probes(next_page)
    page = probes.after(after)
    if not page:
        return Surveyed(KeySpace(""), 0.0, after, after)
    end = _end(probes, page[-1].key)
    # All keys between these two have this prefix.
    shared = _shared(page[0].key, end)
    # The pages so far may show few characters, so allow others of the same kind.
    wide = KeySpace(shared, probes.keys, wide=True)
    cuts = (key for key in wide.scattered(after, end, probes.left) if after < key < end)
    pages = [(after, page), *((cut, probes.after(cut)) for cut in cuts)]
    space = KeySpace(shared, probes.keys)
    full = [(cut, page) for cut, page in pages if len(page) == probes.full]
    taken = [max(1, space.number(page[-1].key) - space.number(cut)) for cut, page in full]
    whole = space.number(end) - space.number(after)
    # The median, because a single page may lie in a gap.
    return Surveyed(space, whole / statistics.median(taken) if taken else 1.0, after, end)


def _after_kind(character: str) -> int:
    """Return the code after the last digit for a digit; likewise for letters, else ASCII's end."""
    kinds = (last for first, last in ("09", "AZ", "az") if first <= character <= last)
    return next((ord(last) + 1 for last in kinds), _ASCII_END)


def _shared(one: str, other: str) -> str:
    """Return the common prefix."""
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(character for character, _ in pairs)


class _Probes:
    """Requests single pages, up to a limit."""

    def __init__(self, next_page: NextPage) -> None:
        self._next_page = next_page
        self.left = _MOST_PROBES
        self.keys: list[str] = []
        self.full = 1

    def after(self, key: str) -> Sequence[SourceObject]:
        """Return the page after a key."""
        self.left -= 1
        page = self._next_page(key)
        self.full = max(self.full, len(page))
        self.keys += [one.key for one in page]
        return page


def _end(probes: _Probes, last: str) -> str:
    """Return an upper bound of the keys that is close to the last; ``last`` is an existing key."""
    at = 0
    for _ in range(_PLACES_OF_THE_END):
        at, last = _first_to_grow(probes, last, at)
        last = _grown(probes, last, at)
        if probes.left <= _DENSITIES:
            break
        at += 1
    # Covers anything at the positions that were not searched.
    return last[:at] + chr(_LAST_CHARACTER)


def _first_to_grow(probes: _Probes, last: str, at: int) -> tuple[int, str]:
    """Find the first position from ``at`` where a later key has a larger character."""
    low, high, step = at, len(last), 1
    while low < high and probes.left > _DENSITIES:
        # It is usually the next position, but far away if keys share a long prefix.
        middle = min(low + step - 1, (low + high) // 2)
        step *= 2
        page = probes.after(last[: middle + 1] + chr(_LAST_CHARACTER))
        if page:
            # That key shares the largest characters found so far, and possibly more.
            last, high = page[-1].key, middle
        else:
            low = middle + 1
    return low, last


def _grown(probes: _Probes, last: str, at: int) -> str:
    """Return a key with the largest character at a position, among keys equal before it."""
    top = _LAST_CHARACTER + 1
    while at < len(last) and probes.left > _DENSITIES:
        low = ord(last[at])
        middle = (low + top) // 2
        if low < _ASCII_END < top:
            middle = _after_kind(last[at])
        if middle in _SURROGATES:
            # Surrogates are no characters, so no key has one.
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
    """Return the sorted alphabet of a position, with likely characters filled in."""
    first, last = min(seen), max(seen)
    usual = next((one for one in _ALPHABETS if seen <= set(one)), "")
    return sorted(seen | {one for one in usual if wide or first < one < last})


class KeySpace:
    """Maps keys to numbers in the same order.

    Args:
        shared: prefix of all keys.
        keys: some of them.
        wide: positions may have other characters of the same kind than those seen.
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
        """Return a key's number, which never decreases from one key to the next."""
        if not key.startswith(self._shared):
            return 0 if key < self._shared else self._most
        number, rest = 0, key[len(self._shared) :]
        # An unknown or missing character counts as the nearest known one.
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
        """Yield ``many`` keys between two, in no order, with varied characters at all positions."""
        first, last = self.number(after), self.number(until)
        for one in range(1, many + 1):
            yield self.key(first + ((last - first) * (one * _GOLDEN % (1 << 64)) >> 64))

    def key(self, number: int) -> str:
        """Return a key with this number; it need not exist."""
        digits = []
        for alphabet in reversed(self._alphabets):
            number, digit = divmod(number, len(alphabet))
            digits.append(alphabet[digit])
        return self._shared + "".join(reversed(digits))
