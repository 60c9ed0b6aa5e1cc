"""CloudTrail documents, ``{"Records":[…]}``: spliced, never parsed into records and rewritten.

Before any byte of a source is placed, it is proven to be exactly such a document: the envelope by
what precedes the first and follows the last bracket, the array between them by a decoder that
checks every byte and builds no objects.
"""

from __future__ import annotations

import re

import msgspec

from compactor.errors import UnreadableSource
from compactor.formats.framing import Framed
from compactor.formats.json_text import is_object, open_state
from compactor.formats.lines import BOM
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, FormatSpec, Look
from compactor.formats.splicing import on_lines, proven, refuse_blanks, spliced, without_records
from compactor.formats.undelimited import is_undelimited
from compactor.model import Format, QuarantineReason

OPENING = re.compile(rb'(?:\xef\xbb\xbf)?[ \t\r\n]*\{[ \t\r\n]*"Records"[ \t\r\n]*:[ \t\r\n]*\[')
_BLANKS = b" \t\r\n"
_BLANK = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\Z")
_SHOWN = 64
_SHOWN_NAMES = 5
_MOST_LOOKED_AT = 16 << 20
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class CloudTrailFramer:
    """Joins documents into one document, or into lines of one record each.

    Args:
        lines: whether to write one record per line instead of one document.
    """

    def __init__(self, *, lines: bool) -> None:
        self._lines = lines
        self._started = False

    def opening(self) -> bytes:
        """Return the envelope up to its records."""
        return b"" if self._lines else b'{"Records":['

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source.

        Raises:
            UnreadableSource: MALFORMED, it is not exactly ``{"Records":[…]}`` with objects
                as records, in UTF-8, or is nested too deeply to check; TOO_LARGE, it has more
                objects than the memory allows, or needs more edits than are kept.
        """
        content = bytes(content)
        if _BLANK.match(content):
            return without_records(content)
        start, end = _envelope(content)
        records, found = proven(content, start, end)
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
        """Return the rest of the envelope."""
        return b"" if self._lines else b"]}"


def _envelope(content: bytes) -> tuple[int, int]:
    """Return the start and end of the bytes between ``[`` and ``]``."""
    opening = OPENING.match(content)
    brace = content.rfind(b"}")
    bracket = content.rfind(b"]", 0, max(brace, 0))
    if (
        opening is None
        or bracket < opening.end()
        or content[bracket + 1 : brace].strip(_BLANKS)
        or content[brace + 1 :].strip(_BLANKS)
    ):
        raise _no_document(content)
    refuse_blanks(opening.end() + len(content) - bracket)
    return opening.end(), bracket


def _no_document(content: bytes) -> UnreadableSource:
    """Return the error that says, as far as is known, why this is not exactly one document."""
    head = content[:_SHOWN]
    try:
        names = [name for name in _members.decode(content.removeprefix(BOM)) if name != "Records"]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        # UnicodeDecodeError is raised for a name that is not UTF-8.
        names = []
        state = open_state(content) if len(content) <= _MOST_LOOKED_AT else ""
        if state:
            return refused(QuarantineReason.OPEN_END, f"it ends within {state}", head)
    if names:
        shown = ", ".join(repr(name) for name in names[:_SHOWN_NAMES])
        seen = f'beside "Records" it has {shown}, which would be lost'
    else:
        seen = 'it is not exactly {"Records":[...]}'
    return refused(QuarantineReason.MALFORMED, seen, head)


_TRAIL = Detected(Format.CLOUDTRAIL)


def _recognise(look: Look) -> Detected | None:
    if OPENING.match(look.head) is None:
        return None
    return _TRAIL if "_CloudTrail_" in look.key or _is_one_document(look.head) else None


def _is_one_document(head: bytes) -> bool:
    """Return False if the first line is several objects, or one object with lines after it."""
    line, _, rest = head.lstrip(_BLANKS).partition(b"\n")
    if is_undelimited(line):
        return False
    return not (rest.strip(_BLANKS) and is_object(line))


SPEC = FormatSpec(
    format=Format.CLOUDTRAIL,
    extension="json",
    media_type="application/json",
    framer=lambda _, lines: CloudTrailFramer(lines=lines),
    recognise=_recognise,
    begins=b"{",
    lines=True,
    proven=True,
    rows="json",
    records=lambda: CloudTrailFramer(lines=True),
    hint="cloudtrail",
    named=r"_CloudTrail_[^/]*$",
    whole=True,
    validated=True,
)
