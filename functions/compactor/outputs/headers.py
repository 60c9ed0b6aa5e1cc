"""Confirm that what sources of one group begin with is a header, before any of it is left out.

One source proves little: that its first record looks like names, and the records below do not.
What several sources begin with, and none has among its records, is the header of them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import and_

from compactor.formats import Detected
from compactor.formats.columns import ColumnsFramer
from compactor.formats.first_record import ambiguous
from compactor.model import Quarantined, QuarantineReason, SourceObject

# Sources that each begin with a record of their own, from which on they are rather rows.
_MANY_ALONE = 3
# Kept of sources that came before the first one with a header.
_SEEN_BYTES = 16 << 20


def doubt(masks: Sequence[int], *, seen_again: bool) -> str:
    """Why several sources that begin so do not confirm their header; empty when they do.

    Args:
        masks: for each source with records, the columns that hold values below the header.
        seen_again: the header stands among the records, too.
    """
    if len(masks) <= 1:
        return "fewer than two sources have records below this one"
    if not reduce(and_, masks):
        return "no column holds values in all sources that begin so"
    return "its first record stands among the records, too" if seen_again else ""


class HeaderCase:
    """What speaks for the headers that were found in the sources of one group.

    Attributes:
        framer: joins the sources of the output, and finds their header among the records.
    """

    def __init__(self) -> None:
        self.framer: ColumnsFramer | None = None
        self._seen: list[bytes] = []
        self._seen_bytes = 0
        self._placed: list[tuple[SourceObject, Detected]] = []
        self._elsewhere: list[tuple[SourceObject, Detected]] = []

    def place(self, source: SourceObject, found: Detected) -> None:
        """A source whose records are in the group's output."""
        if found.evidence is not None:
            self._placed.append((source, found))

    def pass_over(self, source: SourceObject, found: Detected) -> None:
        """A source that belongs into another output."""
        if found.evidence is not None:
            self._elsewhere.append((source, found))

    def see(self, content: bytes) -> None:
        """Content of a source that is not in the output; it may speak against the header."""
        if self.framer is not None:
            self.framer.look_for_header(content)
        elif self._seen_bytes + len(content) <= _SEEN_BYTES:
            self._seen.append(content)
            self._seen_bytes += len(content)

    def left_alone(self) -> list[Quarantined]:
        """The sources of which it is not certain whether they have a header."""
        quarantined = {
            source.identity: Quarantined(
                source, QuarantineReason.AMBIGUOUS_HEADER, ambiguous(seen, found.header).detail
            )
            for source, found, seen in (*self._alone(), *self._unconfirmed())
        }
        return list(quarantined.values())

    def _unconfirmed(self) -> list[tuple[SourceObject, Detected, str]]:
        """Sources of the output that do not confirm each other's header."""
        masks = [found.evidence for _, found in self._placed if found.evidence]
        seen = doubt(masks, seen_again=len(masks) > 1 and self._seen_again())
        # Of a single source with rows, nothing is left out: only the others may be something else.
        return [
            (source, found, seen)
            for source, found in self._placed
            if seen and not (found.evidence and len(masks) == 1)
        ]

    def _seen_again(self) -> bool:
        framer = self.framer
        if framer is None:
            return False
        for content in self._seen:
            framer.look_for_header(content)
        return framer.header_seen_again

    def _alone(self) -> list[tuple[SourceObject, Detected, str]]:
        """Sources that begin as no other one, where such are the rule."""
        everything = [*self._placed, *self._elsewhere]
        times = Counter((found.format, found.header) for _, found in everything)
        alone = [one for one in everything if times[one[1].format, one[1].header] == 1]
        if len(alone) < max(_MANY_ALONE, len(everything) // 2 + 1):
            return []
        seen = "most sources begin with a record of their own"
        return [(source, found, seen) for source, found in alone]
