"""The shape all formats share: how one source's plain bytes take their place in an output.

A framer belongs to one output. For every source it says which bytes of the source go into
the output, which were left out or added, and how many records they hold, so that
:func:`compactor.log.slice_facts.restore_slice` can give the source back byte for byte:

    slice    = output[offset : offset + length]
    slice    = slice[: length - appended]                 # 1. undo the added last newline
    slice    = slice with each edit undone                # 2. when there are edits, else
    slice    = slice with each newline replaced by newlines_stand_for, when that is not None
    original = dropped_prefix + slice + dropped_suffix    # 3.

``edits`` and ``newlines_stand_for`` are never both set. Edits are in ascending order and do
not overlap; their offsets count in the slice as it stands in the output, so that undoing is
one pass: copy up to the offset, leave out ``inserted`` bytes, put in ``original``, go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason

# Each takes about 100 bytes of memory, here and again where a manifest is written.
MOST_EDITS = 400_000


class Edit(NamedTuple):
    """Bytes of the slice that stand for other bytes of the source.

    Attributes:
        offset: where they are in the slice.
        inserted: how many they are.
        original: what the source has in their place, perhaps nothing.
    """

    offset: int
    inserted: int
    original: bytes


class Framed(NamedTuple):
    """What became of one source; made for each, so of a kind that is made quickly.

    Attributes:
        separator: bytes put into the output before the slice; no source owns them.
        slice: the pieces of the source's slice of the output, in order.
        records: records in the slice.
        dropped_prefix: leading bytes of the source that are not in the slice (BOM, header
            line with its line end, CloudTrail's ``{"Records":[``).
        dropped_suffix: trailing bytes of the source that are not in the slice.
        appended: bytes added at the end of the slice (a missing last newline: 1, else 0).
        newlines_stand_for: when not None, every newline in the slice (but the appended one)
            stands for these bytes of the source.
        edits: where the slice differs from the source, when newlines_stand_for cannot say.
    """

    separator: bytes
    slice: tuple[bytes | memoryview, ...]
    records: int
    dropped_prefix: bytes = b""
    dropped_suffix: bytes = b""
    appended: int = 0
    newlines_stand_for: bytes | None = None
    edits: tuple[Edit, ...] = ()


class StreamFraming(Protocol):
    """Framing of one source too large for memory, chunk by chunk."""

    def feed(self, chunk: bytes) -> Iterable[bytes | memoryview]:
        """Take the next plain bytes; return what goes into the output now (separator first).

        Raises:
            UnreadableSource: the source is not what its head promised.
        """
        ...

    def finish(self) -> Framed:
        """End of the source. ``slice`` holds only the bytes not returned by feed yet.

        Raises:
            UnreadableSource: the source is not what its head promised.
        """
        ...


class Framer(Protocol):
    """Joins sources of one signature into one output."""

    def opening(self) -> bytes:
        """Bytes the output starts with (a header line, CloudTrail's envelope)."""
        ...

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source.

        Raises:
            UnreadableSource: the content is not of this format; the framer is unchanged.
        """
        ...

    def stream(self) -> StreamFraming | None:
        """Start placing a source too large for memory; None if the format needs it whole."""
        ...

    def closing(self) -> bytes:
        """Bytes the output ends with."""
        ...


def refuse_many_edits(count: int) -> None:
    """Raise UnreadableSource (TOO_LARGE) where one source would need too many edits."""
    if count > MOST_EDITS:
        detail = f"giving it back would take more than {MOST_EDITS:,} edits"
        raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
