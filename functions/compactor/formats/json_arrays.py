"""JSON arrays of objects, ``[{…},{…}]``, on one or many lines: spliced into one array.

An element is a record. Arrays of anything else are left alone: an array of numbers, strings or
arrays may be a single record to its reader (a vector, a row, a matrix), and two of them joined
would be a different one. Also left alone is JSON-LD, whose blank node names are valid only within
one document.

Source: RFC 8259, section 5; JSON-LD 1.1, section 9.
"""

from __future__ import annotations

import re

from compactor.errors import UnreadableSource
from compactor.formats.framing import Framed
from compactor.formats.json_text import open_state
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, FormatSpec, Look
from compactor.formats.splicing import on_lines, proven, refuse_blanks, spliced, without_records
from compactor.model import Format, QuarantineReason

_BLANKS = b" \t\r\n"
_BLANK = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\Z")
_OPENING = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\[(?=[ \t\r\n]*(?:[{\]]|\Z))")
_LINKED = re.compile(rb'"@(?:context|graph|id)"[ \t\r\n]*:')
_LOOKED_AT_FOR_LINKS = 4 << 10
_MOST_LOOKED_AT = 16 << 20
_SHOWN = 64
_ARRAY = Detected(Format.JSON_ARRAY)


class JsonArrayFramer:
    """Joins arrays into one array, or into lines of one record each.

    Args:
        lines: whether to write one record per line instead of one array.
    """

    def __init__(self, *, lines: bool) -> None:
        self._lines = lines
        self._started = False

    def opening(self) -> bytes:
        """Return the bracket before the first record."""
        return b"" if self._lines else b"["

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source.

        Raises:
            UnreadableSource: UNKNOWN_FORMAT, it is not one array of only objects; OPEN_END, it
                ends within one; TOO_LARGE, restoring it would take more edits than are kept.
        """
        content = bytes(content)
        if _BLANK.match(content):
            return without_records(content)
        start, end = _brackets(content)
        try:
            records, found = proven(content, start, end)
        except UnreadableSource as error:
            if error.reason != QuarantineReason.MALFORMED:
                raise
            raise _other_array(content, error.detail) from error
        if not records:
            return without_records(content)
        if self._lines:
            return on_lines(content, start, found)
        first, self._started = not self._started, True
        return spliced(content, start, end, records, first=first)

    def stream(self) -> None:
        """Return None: the whole source is needed to prove it."""
        return

    def closing(self) -> bytes:
        """Return the bracket after the last record."""
        return b"" if self._lines else b"]"


def _brackets(content: bytes) -> tuple[int, int]:
    """Return the start and end of the bytes between the brackets."""
    opening = _OPENING.match(content)
    end = len(content.rstrip(_BLANKS)) - 1
    if opening is None or end < opening.end() or content[end] != ord("]"):
        raise _other_array(content, "it does not begin with a bracket and end with one")
    refuse_blanks(opening.end() + len(content) - end)
    return opening.end(), end


def _other_array(content: bytes, why: str) -> UnreadableSource:
    head = content[:_SHOWN]
    state = open_state(content) if len(content) <= _MOST_LOOKED_AT else ""
    if state:
        return refused(QuarantineReason.OPEN_END, f"it ends within {state}", head)
    seen = f"it is not one JSON array of objects alone: {why}"
    return refused(QuarantineReason.UNKNOWN_FORMAT, seen, head)


def _recognise(look: Look) -> Detected | None:
    head = look.head
    if _OPENING.match(head) is None:
        return None
    if look.complete and not head.rstrip(_BLANKS).endswith(b"]"):
        return None
    if _LINKED.search(head, 0, _LOOKED_AT_FOR_LINKS):
        raise refused(QuarantineReason.UNKNOWN_FORMAT, "it is a JSON-LD document", head)
    look.require_text()
    return _ARRAY


SPEC = FormatSpec(
    format=Format.JSON_ARRAY,
    extension="json",
    media_type="application/json",
    framer=lambda _, lines: JsonArrayFramer(lines=lines),
    recognise=_recognise,
    begins=b"[",
    lines=True,
    proven=True,
    rows="json",
    records=lambda: JsonArrayFramer(lines=True),
)
