"""Undoes framing: turns a source's slice of an output back into the source's plain bytes."""

from __future__ import annotations

from typing import NamedTuple

from compactor.formats.framing import Edit, Framed

__all__ = ["Edit", "Kept", "SliceFacts", "restore_slice"]

# A tuple of three, one of its numbers, and its list slot; its bytes are counted separately.
_EDIT_BYTES = 104


class SliceFacts(NamedTuple):
    """What a manifest keeps of :class:`~compactor.formats.framing.Framed`; same meanings."""

    records: int
    dropped_prefix: bytes = b""
    dropped_suffix: bytes = b""
    appended: int = 0
    newlines_stand_for: bytes | None = None
    edits: tuple[Edit, ...] = ()


class Kept:
    """What one output's manifest keeps to restore its sources, with equal bytes stored once.

    Args:
        most_bytes: approximate memory limit; the first source may exceed it.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._shared: dict[bytes, bytes] = {}
        # Facts without edits, which many sources share.
        self._facts: dict[tuple[object, ...], SliceFacts] = {}

    def has_room(self, framed: Framed) -> bool:
        """Return True if a source with new facts may still be kept."""
        return not self._bytes or self._bytes + self._cost(framed) <= self._most_bytes

    def known(self, framed: Framed) -> SliceFacts | None:
        """Return the facts of a source if an earlier one had the same, else None."""
        return self._facts.get(framed[2:])

    def take(self, framed: Framed) -> SliceFacts:
        """Return the facts needed to undo the framing of one source, and keep them."""
        found = self.known(framed)
        if found is not None:
            return found
        self._bytes += self._cost(framed)
        prefix, suffix = framed.dropped_prefix, framed.dropped_suffix
        prefix = self._shared.setdefault(prefix, prefix)
        suffix = self._shared.setdefault(suffix, suffix)
        facts = SliceFacts(framed.records, prefix, suffix, *framed[5:])
        if not facts.edits:
            self._facts[facts] = facts
        return facts

    def _cost(self, framed: Framed) -> int:
        """Return how many bytes the source would add."""
        cost = 0
        for part in (framed.dropped_prefix, framed.dropped_suffix):
            if part and part not in self._shared:
                cost += len(part)
        if framed.edits:
            cost += sum(_EDIT_BYTES + len(edit.original) for edit in framed.edits)
        return cost


def restore_slice(slice_bytes: bytes | memoryview, facts: SliceFacts) -> bytes:
    """Return the plain bytes of a source from its slice of the output."""
    body = memoryview(slice_bytes)[: len(slice_bytes) - facts.appended]
    pieces: list[bytes | memoryview] = [facts.dropped_prefix]
    if facts.edits:
        pieces += _unedited(body, facts.edits)
    elif facts.newlines_stand_for is not None:
        pieces.append(bytes(body).replace(b"\n", facts.newlines_stand_for))
    else:
        pieces.append(body)
    pieces.append(facts.dropped_suffix)
    return b"".join(pieces)


def _unedited(body: memoryview, edits: tuple[Edit, ...]) -> list[bytes | memoryview]:
    pieces: list[bytes | memoryview] = []
    at = 0
    for edit in edits:
        pieces += (body[at : edit.offset], edit.original)
        at = edit.offset + edit.inserted
    pieces.append(body[at:])
    return pieces
