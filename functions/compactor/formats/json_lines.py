"""Sources that start with a brace or a bracket: JSON lines, undelimited objects, or neither."""

from __future__ import annotations

import re

from compactor.errors import UnreadableSource
from compactor.escaping import shown_bytes
from compactor.formats.characters import Reading, ascii_of
from compactor.formats.json_documents import document_in, is_delta_action
from compactor.formats.json_text import (
    PassingJsonLines,
    PassingLastLine,
    are_json_lines,
    is_object,
    is_value,
    open_state,
)
from compactor.formats.lines import BOM, LineFramer
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, FormatSpec, Look
from compactor.formats.undelimited import first_odd_line
from compactor.model import Format, QuarantineReason

_BLANKS = b" \t\r\n"
_RECORD_SEPARATOR = 0x1E
_ARRAY = re.compile(
    # A number in brackets with a message after it is a line of a log.
    rb'\[[ \t\r\n]*(?:[\[{"\]]|-?\d+(?:\.\d+)?[ \t\r\n]*(?:,|\][ \t\r]*(?:\n|\Z))'
    rb"|(?:true|false|null)\b|\Z)"
)
_LINES = Detected(Format.JSON_LINES)
_ODD_LINE = "a line of it is no whole JSON object"


def _recognise(look: Look) -> Detected | None:
    head = look.head
    if not head.isascii():
        look.require_characters()
    if look.reading.single_byte:
        # The decoder requires UTF-8, and require_characters has accepted the bytes.
        head = ascii_of(head, keep_nuls=False)
    looked_at = head if look.complete else head[: head.rfind(b"\n") + 1]
    if not (looked_at and are_json_lines(looked_at)):
        return None
    _refuse_lone_cr(looked_at)
    _refuse_document(looked_at)
    return _LINES


def _refuse_document(lines: bytes) -> None:
    """Raise UnreadableSource (UNKNOWN_FORMAT) for lines that are a document of a known kind."""
    end = lines.find(b"\n", 0, len(lines) - 1)
    if is_delta_action(lines if end < 0 else lines[:end]):
        seen = "it is a commit of a Delta table"
    elif end < 0 and (found := document_in(lines)):
        seen = f"it is {found}"
    else:
        return
    raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, lines)


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
    if not head.isascii():
        head = ascii_of(head, keep_nuls=False)
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


def refuse_other_json(head: bytes) -> None:
    """Raise UnreadableSource (UNKNOWN_FORMAT) for other JSON than objects, by its first bytes."""
    seen = ""
    if head[0] == _RECORD_SEPARATOR:
        seen = "it is a JSON text sequence (RFC 7464)"
    elif _ARRAY.match(head):
        seen = "it is a JSON array"
    if seen:
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, head)


def refuse_open_line(tail: bytes) -> None:
    """Raise UnreadableSource (OPEN_END) if the last line is JSON that is still open.

    Args:
        tail: the end of a source of JSON lines, or all of it.
    """
    line = tail.rstrip(_BLANKS).rpartition(b"\n")[2]
    if not line:
        return
    state = "" if is_value(line) else open_state(line)
    if state:
        raise refused(QuarantineReason.OPEN_END, f"it ends within {state}", line)


class ObjectsWatch:
    """Proves every line of a streamed source to be an object."""

    any_encoding = False

    def __init__(self, head: bytes) -> None:
        self._head = ascii_of(head, keep_nuls=False)
        self._objects = PassingJsonLines()

    def feed(self, chunk: bytes, before: bytes) -> None:
        """Check the next plain bytes.

        Raises:
            UnreadableSource: UNKNOWN_FORMAT, a line is not one whole object.
        """
        text = chunk if before else chunk.removeprefix(BOM)
        if not text.isascii():
            text = ascii_of(text, keep_nuls=False)
        if not self._objects.feed(text):
            raise refused(QuarantineReason.UNKNOWN_FORMAT, _ODD_LINE, self._head)

    def finish(self, tail: bytes) -> None:
        """Check the last line.

        Raises:
            UnreadableSource: OPEN_END, UNKNOWN_FORMAT.
        """
        last = self._objects.last()
        if last and not self._objects.feed(b"\n"):
            refuse_open_line(last)
            raise refused(QuarantineReason.UNKNOWN_FORMAT, _ODD_LINE, last)


class LastLineWatch:
    """Checks only the last line, for sources that the caller declares to be JSON lines."""

    any_encoding = True

    def __init__(self) -> None:
        self._last_line = PassingLastLine()

    def feed(self, chunk: bytes, before: bytes) -> None:
        """Take the next plain bytes."""
        self._last_line.feed(chunk)

    def finish(self, tail: bytes) -> None:
        """Check the end.

        Raises:
            UnreadableSource: OPEN_END.
        """
        state = self._last_line.open_state()
        if state:
            line = tail.rstrip(_BLANKS).rpartition(b"\n")[2]
            raise refused(QuarantineReason.OPEN_END, f"it ends within {state}", line)


def _watch(head: bytes, _: bytes, __: Reading, declared: bool) -> ObjectsWatch | LastLineWatch:
    return LastLineWatch() if declared else ObjectsWatch(head)


SPEC = FormatSpec(
    format=Format.JSON_LINES,
    extension="json",
    media_type="application/x-ndjson",
    framer=lambda *_: LineFramer(),
    recognise=_recognise,
    begins=b"{",
    newlines=True,
    refuse_open=refuse_open_line,
    watch=_watch,
    rows="json",
    hint="json",
    named=r"\.(?:json|jsonl|ndjson)$",
)
