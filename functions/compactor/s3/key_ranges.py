"""Chooses where to cut a range of keys, so that its parts can be listed concurrently.

S3 does not show how keys are distributed. A listed page shows their density: its keys span a part
of the key space, and the next page likely spans as much again. For this, keys are read as numbers
with one digit per position, in the alphabet of the word: decimal in a date, hexadecimal in a
UUID. Any cut is correct; a good cut saves time.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

# Number of positions used, from the first in which the two keys differ. Later ones are noise.
_SIGNIFICANT = 8
_WORD = re.compile(r"[0-9A-Za-z]+")
# Each in character order. The first alphabet that has all characters of a word is used.
_ALPHABETS = (
    string.digits,
    string.digits + "abcdef",
    string.digits + "ABCDEF",
    string.digits + string.ascii_lowercase,
    string.digits + string.ascii_uppercase,
    string.digits + string.ascii_uppercase + string.ascii_lowercase,
)


def key_ahead(first: str, last: str, start: str, pages: float, *, fixed: int) -> str | None:
    """Estimate the key that is ``pages`` pages after ``start``; it need not exist.

    Args:
        first: first key of a listed page.
        last: last key of that page.
        start: key from which the same density is assumed.
        pages: distance of the cut, in such pages.
        fixed: length of the prefix that all keys share.

    Returns:
        A string greater than ``start``, or None if these keys allow no estimate.
    """
    end = _first_difference(first, last) + _SIGNIFICANT
    if end - _SIGNIFICANT >= min(len(first), len(last)) or len(start) <= fixed:
        return None
    alphabets = _alphabets(first, last, fixed, end)
    numbers = [_number(key, alphabets, fixed) for key in (first, last, start)]
    step = int((numbers[1] - numbers[0]) * pages)
    ahead = _key(numbers[2] + step, alphabets) if step > 0 else None
    if ahead is None:
        return None
    cut = start[:fixed] + ahead
    return cut if cut > start else None


def _first_difference(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _alphabets(first: str, last: str, fixed: int, end: int) -> list[str]:
    """Return the alphabet of each position from ``fixed`` to ``end``."""
    found = [{a, b} for a, b in zip(first[fixed:end], last[fixed:end], strict=False)]
    result = ["".join(sorted(one)) for one in found]
    for start, stop in _words(last[fixed : fixed + len(found)]):
        seen = set().union(*found[start:stop])
        fitting = (one for one in _ALPHABETS if seen <= set(one))
        alphabet = next(fitting, None)
        if alphabet is not None:
            result[start:stop] = [alphabet] * (stop - start)
    return result


def _words(text: str) -> Iterator[tuple[int, int]]:
    for match in _WORD.finditer(text):
        yield match.span()


def _number(key: str, alphabets: list[str], fixed: int) -> int:
    number = 0
    for position, alphabet in enumerate(alphabets, fixed):
        character = key[position : position + 1]
        # Its rank in the alphabet; a character outside the alphabet falls between two.
        digit = sum(1 for one in alphabet if one < character)
        number = number * len(alphabet) + min(digit, len(alphabet) - 1)
    return number


def _key(number: int, alphabets: list[str]) -> str | None:
    characters = []
    for alphabet in reversed(alphabets):
        number, digit = divmod(number, len(alphabet))
        characters.append(alphabet[digit])
    return None if number else "".join(reversed(characters))
