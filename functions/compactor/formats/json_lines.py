"""Sources that start with a brace or a bracket: JSON lines, undelimited objects, or neither."""

from __future__ import annotations

from compactor.errors import UnreadableSource
from compactor.escaping import shown_bytes
from compactor.formats.characters import ascii_of, require_line_end
from compactor.formats.json_text import (
    PassingJsonLines,
    are_json_lines,
    is_object,
    open_state,
)
from compactor.formats.lines import BOM, LineFramer
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, FormatSpec, Look
from compactor.formats.undelimited import first_odd_line
from compactor.model import Format, QuarantineReason

_BLANKS = b" \t\r\n"
_LINES = Detected(Format.JSON_LINES)
_ODD_LINE = "a line of it is no whole JSON object"


def _recognise(look: Look) -> Detected | None:
    head = look.head
    if not head.isascii():
        look.require_text()
    looked_at = head if look.complete else head[: head.rfind(b"\n") + 1]
    if not (looked_at and are_json_lines(looked_at)):
        return None
    _refuse_lone_cr(looked_at)
    if look.complete:
        require_line_end(head)
    return _LINES


def _declared(look: Look) -> Detected:
    detected = _recognise(look)
    if detected is None:
        raise no_lines(look.head, complete=look.complete)
    return detected


def _refuse_lone_cr(lines: bytes) -> None:
    """Raise UnreadableSource (UNKNOWN_FORMAT) for a CR that is not before a line break.

    JSON treats CR as a blank, but to Hadoop's readers it ends a line. A CR at the very end is left
    to the check of ends.
    """
    if b"\r" not in lines:
        return
    whole = lines.removesuffix(b"\r")
    if whole.count(b"\r") > whole.count(b"\r\n"):
        raise refused(QuarantineReason.UNKNOWN_FORMAT, "a CR stands alone within a line", lines)


def no_lines(head: bytes, *, complete: bool) -> UnreadableSource:
    """Return the error that says why a source that begins with a brace has no format.

    Args:
        head: its first bytes, or all.
        complete: whether ``head`` is the whole source.
    """
    head = ascii_of(head)
    odd = first_odd_line(head)
    if complete and is_object(head):
        return refused(
            QuarantineReason.UNKNOWN_FORMAT, "it is one JSON document on several lines", head
        )
    if complete:
        state = open_state(head)
        if state:
            return refused(QuarantineReason.OPEN_END, f"it ends within {state}", head)
    seen = _ODD_LINE
    if not complete and not head.count(b"\n"):
        seen = "no line of it ends within the first bytes read"
    elif odd and not head.lstrip(_BLANKS).startswith(odd):
        seen += f" ({shown_bytes(odd)})"
    elif odd == b"{":
        seen = "it has JSON objects on several lines"
    return refused(QuarantineReason.UNKNOWN_FORMAT, seen, head)


class ObjectsWatch:
    """Proves every line of a streamed source to be an object."""

    def __init__(self) -> None:
        self._objects = PassingJsonLines()

    def feed(self, chunk: bytes, before: bytes) -> None:
        """Check the next plain bytes.

        Raises:
            UnreadableSource: UNKNOWN_FORMAT, a line is not one whole object.
        """
        text = chunk if before else chunk.removeprefix(BOM)
        # Half a character at the end of a chunk is no JSON.
        if not self._objects.feed(ascii_of(text)):
            raise refused(QuarantineReason.UNKNOWN_FORMAT, _ODD_LINE, chunk)

    def finish(self) -> None:
        """Check the last line.

        Raises:
            UnreadableSource: OPEN_END, UNKNOWN_FORMAT.
        """
        last = self._objects.last()
        if last and not self._objects.feed(b"\n"):
            state = open_state(last)
            if state:
                raise refused(QuarantineReason.OPEN_END, f"it ends within {state}", last)
            raise refused(QuarantineReason.UNKNOWN_FORMAT, _ODD_LINE, last)


SPEC = FormatSpec(
    format=Format.JSON_LINES,
    extension="json",
    media_type="application/x-ndjson",
    framer=lambda *_: LineFramer(),
    recognise=_recognise,
    begins=b"{",
    declared=_declared,
    newlines=True,
    watch=lambda _: ObjectsWatch(),
    rows="json",
    hint="json",
    named=r"\.(?:json|jsonl|ndjson)$",
)
