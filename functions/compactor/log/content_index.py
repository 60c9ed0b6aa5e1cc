"""Which contents of which keys a log has, in eight bytes for each source.

A value is 48 bits of a digest of bucket and key, followed by a 16-bit mark derived from the size
and CRC32 of the plain bytes. The key bits are nearly unique: among a million new sources next to a
log of a hundred million, some key is mistaken for a logged one with a probability of 0.3. The mark
is only a hint: matches are looked up in the manifests.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from bisect import bisect_left
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from heapq import merge
from itertools import chain

from compactor.log.manifest import ManifestRow
from compactor.model import ObjectGroup, Skipped, SourceObject

_MARK_BITS = 16
_MASK = (1 << _MARK_BITS) - 1
_VALUE_BYTES = 8
# For copies by S3 and for rows: the bytes were not read, or the manifest does not have their CRC32.
UNREAD_MARK = 0
UNCOMPARED: frozenset[int] = frozenset()
# Sorted arrays, one per commit, kept besides the first before they are merged.
_MOST_LEVELS = 16


def mark_of(plain_bytes: int | None, crc32: int | None) -> int:
    """Return a 16-bit mark that is the same for equal contents."""
    if plain_bytes is None or crc32 is None:
        return UNREAD_MARK
    return (crc32 ^ crc32 >> _MARK_BITS ^ plain_bytes) & _MASK or 1


class Contents:
    """The contents that a log's commits hold, as sorted arrays searched by bisection."""

    def __init__(self) -> None:
        self._levels: list[array[int]] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contents) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]  # it grows

    def add(self, rows: Iterable[ManifestRow]) -> None:
        """Add the sources of a commit."""
        values = array("Q", sorted(_value(row) for row in rows))
        if values:
            self._levels.append(values)
        if len(self._levels) > _MOST_LEVELS:
            self._levels[1:] = [_merged(self._levels[1:])]

    def discard(self, rows: Iterable[ManifestRow]) -> None:
        """Remove the sources of a commit that became void."""
        self._discard({_value(row) for row in rows})

    def _discard(self, gone: Container[int]) -> None:
        kept = (array("Q", (one for one in level if one not in gone)) for level in self._levels)
        self._levels = [level for level in kept if level]

    def marks(self, source: SourceObject) -> frozenset[int]:
        """Return the marks of all contents compacted for this key; empty for a new key."""
        first = _key_bits(source) << _MARK_BITS
        last = first | _MASK
        found: frozenset[int] = frozenset()
        for level in self._levels:
            at = bisect_left(level, first)
            # For a new key, the usual case, the loop ends here.
            while at < len(level) and level[at] <= last:
                found |= {level[at] & _MASK}
                at += 1
        return found

    def has_key_of(self, rows: Iterable[ManifestRow]) -> bool:
        """Return True if any content was compacted for one of these keys."""
        return bool(self._levels) and any(self.marks(row.source) for row in rows)

    def held_by(self, group: ObjectGroup, unlike: Container[bytes]) -> ObjectGroup:
        """Return the group with the marks of what was compacted for its keys.

        Args:
            group: the group as planned.
            unlike: identities of sources known to match no committed content.
        """
        if not self._levels:
            return group
        if len(self._levels) > 2:
            self._levels[1:] = [_merged(self._levels[1:])]
        held = {one.identity: found for one in group.sources if (found := self.marks(one))}
        for identity in held:
            if identity in unlike:
                held[identity] = UNCOMPARED
        return replace(group, held=held) if held else group

    def to_bytes(self) -> bytes:
        """Return all values in order, eight bytes each, little-endian."""
        return _swapped(array("Q", merge(*self._levels))).tobytes()

    @classmethod
    def from_bytes(cls, raw: bytes) -> Contents:
        """Rebuild the contents from the result of :meth:`to_bytes`.

        Raises:
            ValueError: the length is not a multiple of the value size.
        """
        contents = cls()
        if raw:
            contents._levels.append(values_in(raw))
        return contents


def values_in(raw: bytes) -> array[int]:
    """Return the values in a result of :meth:`Contents.to_bytes`.

    Raises:
        ValueError: the length is not a multiple of the value size.
    """
    if len(raw) % _VALUE_BYTES:
        raise ValueError("a content is cut")
    return _swapped(array("Q", raw))


def overwritten(group: ObjectGroup, rows: Sequence[ManifestRow]) -> Skipped:
    """Return the compacted sources whose key had other content compacted before."""
    if not group.held:
        return Skipped(0, 0)
    over = [row.source for row in rows if row.source.identity in group.held]
    examples = tuple(source.key for source in over[:1])
    return Skipped(len(over), sum(source.size for source in over), examples)


def _merged(levels: Sequence[array[int]]) -> array[int]:
    return array("Q", sorted(chain.from_iterable(levels)))


def _value(row: ManifestRow) -> int:
    return _key_bits(row.source) << _MARK_BITS | mark_of(row.plain_bytes, row.crc32)


def _key_bits(source: SourceObject) -> int:
    text = f"{source.bucket}\0{source.key}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big")


def _swapped(values: array[int]) -> array[int]:
    if sys.byteorder == "big":
        values.byteswap()
    return values
