"""The contract of all formats: how the plain bytes of one source are placed in an output.

A framer belongs to one output. For every source it returns which bytes of the source go into
the output, which were dropped or added, and how many records they hold, so that
:func:`compactor.log.manifest.restore_slice` can restore the source byte for byte:

    slice    = output[offset : offset + length]
    slice    = slice[: length - appended]                 # 1. undo the added last newline
    slice    = slice with each edit undone                # 2. when there are edits, else
    slice    = slice with each newline replaced by newlines_stand_for, when that is not None
    original = dropped_prefix + slice + dropped_suffix    # 3.

``edits`` and ``newlines_stand_for`` are never both set. Edits are in ascending order and do
not overlap. Their offsets are relative to the slice in the output, so undoing them takes one
pass: copy up to the offset, skip ``inserted`` bytes, insert ``original``, continue.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason

# An edit takes about 100 bytes of memory, here and again where the manifest is written.
MOST_EDITS = 400_000


class Edit(NamedTuple):
    """Bytes of the slice that replace other bytes of the source.

    Attributes:
        offset: where they begin in the slice.
        inserted: how many there are.
        original: the bytes of the source that they replace; may be empty.
    """

    offset: int
    inserted: int
    original: bytes


class Framed(NamedTuple):
    """The result for one source. A NamedTuple, which is cheap to make: there is one per source.

    Attributes:
        separator: bytes put into the output before the slice; they belong to no source.
        slice: the pieces of the source's slice of the output, in order.
        records: number of records in the slice.
        dropped_prefix: leading bytes of the source that are not in the slice (BOM, header
            line with its line end, CloudTrail's ``{"Records":[``).
        dropped_suffix: trailing bytes of the source that are not in the slice.
        appended: number of bytes added at the end of the slice (1 for a missing last newline,
            else 0).
        newlines_stand_for: if not None, every newline in the slice except the appended one
            replaces these bytes of the source.
        edits: where the slice differs from the source, if newlines_stand_for cannot express it.
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
    """Framing of one source that is too large for memory, chunk by chunk."""

    def feed(self, chunk: bytes) -> Iterable[bytes | memoryview]:
        """Take the next plain bytes; return what to write to the output now (separator first).

        Raises:
            UnreadableSource: the source is not what its first bytes showed.
        """
        ...

    def finish(self) -> Framed:
        """End the source. ``slice`` holds only the bytes that feed has not returned.

        Raises:
            UnreadableSource: the source is not what its first bytes showed.
        """
        ...


class Framer(Protocol):
    """Joins sources of one signature into one output."""

    def opening(self) -> bytes:
        """Return the bytes the output starts with (a header line, CloudTrail's envelope)."""
        ...

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source.

        Raises:
            UnreadableSource: the content is not of this format; the framer is unchanged.
        """
        ...

    def stream(self) -> StreamFraming | None:
        """Start a source too large for memory; None if the format needs it whole."""
        ...

    def closing(self) -> bytes:
        """Return the bytes the output ends with."""
        ...


def refuse_many_edits(count: int) -> None:
    """Raise UnreadableSource (TOO_LARGE) if one source needs too many edits."""
    if count > MOST_EDITS:
        detail = f"giving it back would take more than {MOST_EDITS:,} edits"
        raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
