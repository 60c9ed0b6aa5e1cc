"""A set of sources' identities that takes little more than 16 bytes for each.

A Python set takes over 90 bytes for each: half a gigabyte for a partition of five million sources.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Set
from itertools import accumulate, pairwise, starmap
from operator import lt
from struct import iter_unpack

from compactor.model import KEY_DIGEST_BYTES

DIGEST_BYTES = 16
# Up to _FEW digests stay in a set, which is faster. Later additions stay in it too, until they
# exceed both _FEW and 1/_SHARE of all.
_FEW = 1 << 16
_SHARE = 16
# Sorted digests are found by their first two bytes.
_BLOCKS = 1 << 16


class Digests(Set[bytes]):
    """A set of identities: most of them sorted in one block of bytes, the latest in a dictionary.

    No key has two identities in it, because no key is committed with two ETags.

    Args:
        digests: 16 bytes each, those of the key first.
    """

    def __init__(self, digests: Iterable[bytes] = ()) -> None:
        self._ordered = b""
        self._starts = array("Q")
        # By the digest of the key.
        self._recent: dict[bytes, bytes] = {}
        self.update(digests)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Digests:
        """Rebuild the set from the result of :meth:`to_bytes`.

        Raises:
            ValueError: the length is not a multiple of 16.
        """
        digests = split_digests(raw)
        if len(raw) <= _FEW * DIGEST_BYTES or not _is_ordered(raw):
            return cls(digests)
        ordered = cls()
        ordered._take(raw)
        return ordered

    def to_bytes(self) -> bytes:
        """Return all digests in order, concatenated."""
        if not self._ordered:
            return b"".join(sorted(self._recent.values()))
        self._merge()
        return self._ordered

    def __contains__(self, digest: object) -> bool:
        if not isinstance(digest, bytes):
            return False
        if self._recent.get(digest[:KEY_DIGEST_BYTES]) == digest:
            return True
        return bool(self._ordered) and self._place(digest) >= 0

    def has_key_of(self, digest: bytes) -> bool:
        """Return True if the set has an identity of the same key, whatever its ETag."""
        key = digest[:KEY_DIGEST_BYTES]
        return key in self._recent or (bool(self._ordered) and self._place(key) >= 0)

    def __len__(self) -> int:
        return len(self._ordered) // DIGEST_BYTES + len(self._recent)

    def __iter__(self) -> Iterator[bytes]:
        yield from split_digests(self._ordered)
        yield from self._recent.values()

    def __and__(self, other: Iterable[object]) -> set[bytes]:
        """Return the intersection; looks up each element of ``other``, so let it be the smaller."""
        return {digest for digest in other if isinstance(digest, bytes) and digest in self}

    __rand__ = __and__

    def update(self, digests: Iterable[bytes]) -> None:
        """Add these digests."""
        recent, ordered = self._recent, self._ordered
        for digest in digests:
            if not ordered or self._place(digest) < 0:
                recent[digest[:KEY_DIGEST_BYTES]] = digest
        if len(recent) > max(_FEW, len(self) // _SHARE):
            self._merge()

    def difference_update(self, digests: Iterable[bytes]) -> None:
        """Remove these digests."""
        gone = set(digests)
        for digest in gone:
            if self._recent.get(digest[:KEY_DIGEST_BYTES]) == digest:
                del self._recent[digest[:KEY_DIGEST_BYTES]]
        if self._ordered and any(self._place(digest) >= 0 for digest in gone):
            self._take(
                b"".join(digest for digest in split_digests(self._ordered) if digest not in gone)
            )

    def _place(self, digest: bytes) -> int:
        """Return the offset of a digest, or of its beginning, in the sorted block; or -1."""
        block = digest[0] << 8 | digest[1]
        at, end = self._starts[block], self._starts[block + 1]
        at = self._ordered.find(digest, at, end)
        while at % DIGEST_BYTES and at >= 0:
            # A match may span the end of one digest and the beginning of the next.
            at = self._ordered.find(digest, at + 1, end)
        return at

    def _merge(self) -> None:
        """Merge the recent digests into the sorted block."""
        recent: dict[int, list[bytes]] = {}
        for digest in self._recent.values():
            recent.setdefault(digest[0] << 8 | digest[1], []).append(digest)
        self._recent = {}
        pieces = []
        for block in range(_BLOCKS):
            piece = self._block(block)
            if block in recent:
                piece = b"".join(sorted([*split_digests(piece), *recent[block]]))
            pieces.append(piece)
        self._take(b"".join(pieces))

    def _block(self, block: int) -> bytes:
        return self._ordered[self._starts[block] : self._starts[block + 1]] if self._starts else b""

    def _take(self, ordered: bytes) -> None:
        self._ordered = ordered
        firsts, seconds = ordered[0::DIGEST_BYTES], ordered[1::DIGEST_BYTES]
        sizes = [0]
        begin = 0
        for first in range(256):
            end = begin + firsts.count(first)
            within = seconds[begin:end]
            sizes += [DIGEST_BYTES * within.count(second) for second in range(256)]
            begin = end
        self._starts = array("Q", accumulate(sizes))


def split_digests(raw: bytes) -> Iterator[bytes]:
    """Split concatenated digests.

    Raises:
        ValueError: the last one is cut.
    """
    if len(raw) % DIGEST_BYTES:
        raise ValueError("a digest is cut")
    return (raw[at : at + DIGEST_BYTES] for at in range(0, len(raw), DIGEST_BYTES))


def _is_ordered(raw: bytes) -> bool:
    """Return True if the digests are strictly increasing, so without duplicates."""
    return all(starmap(lt, pairwise(iter_unpack(f"{DIGEST_BYTES}s", raw))))
