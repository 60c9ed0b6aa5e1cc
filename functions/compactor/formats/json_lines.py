"""What starts with a brace or a bracket: lines of JSON, objects without lines, or neither."""

from __future__ import annotations

import re

from compactor.errors import UnreadableSource
from compactor.formats.json_documents import document_in
from compactor.formats.json_text import are_json_lines, is_object, is_value, lines_of, open_state
from compactor.formats.refusal import refused
from compactor.formats.undelimited import first_boundary
from compactor.model import Format, QuarantineReason
from compactor.shown import shown_bytes

_BLANKS = b" \t\r\n"
_RECORD_SEPARATOR = 0x1E
_ARRAY = re.compile(
    rb'\[[ \t\r\n]*(?:[\[{"\]]|-?\d+(?:\.\d+)?[ \t\r\n]*[,\]]|(?:true|false|null)\b|\Z)'
)


def format_of_objects(head: bytes, *, complete: bool) -> Format:
    """JSON_LINES or UNDELIMITED_JSON for what starts with a brace.

    Args:
        head: first bytes, or all; UTF-8 or its high bytes replaced.
        complete: ``head`` is all.

    Raises:
        UnreadableSource: OPEN_END or UNKNOWN_FORMAT, with what it is instead.
    """
    looked_at = head if complete else head[: head.rfind(b"\n") + 1]
    if looked_at and are_json_lines(looked_at):
        _refuse_lone_cr(looked_at)
        _refuse_document(looked_at)
        return Format.JSON_LINES
    first = next(lines_of(looked_at), b"")
    first_is_whole = is_object(first)
    if _begins_with_two(_first_odd_line(head) if first_is_whole or not first else first):
        return Format.UNDELIMITED_JSON
    raise _no_lines(head, complete=complete)


def _refuse_document(lines: bytes) -> None:
    """Raise UnreadableSource (UNKNOWN_FORMAT) for one line that is a document of a known kind."""
    if lines.find(b"\n", 0, len(lines) - 1) < 0:
        found = document_in(lines)
        if found:
            raise refused(QuarantineReason.UNKNOWN_FORMAT, f"it is {found}", lines)


def _refuse_lone_cr(lines: bytes) -> None:
    """CR is a blank to JSON and ends a line to Hadoop's readers; the last one is told apart."""
    if b"\r" not in lines:
        return
    whole = lines.removesuffix(b"\r")
    if whole.count(b"\r") > whole.count(b"\r\n"):
        raise refused(QuarantineReason.UNKNOWN_FORMAT, "a CR stands alone within a line", lines)


def is_undelimited(head: bytes) -> bool:
    """Whether the first line that is no whole object begins with one, and another behind it.

    It may be cut off behind that.
    """
    return _begins_with_two(_first_odd_line(head))


def _begins_with_two(line: bytes) -> bool:
    cut = first_boundary(line)
    return cut is not None and is_object(line[:cut])


def _first_odd_line(head: bytes) -> bytes:
    for line in lines_of(head):
        if not is_object(line):
            return line
    return b""


def _no_lines(head: bytes, *, complete: bool) -> UnreadableSource:
    odd = _first_odd_line(head)
    if complete and is_object(head):
        return refused(
            QuarantineReason.UNKNOWN_FORMAT, "it is one JSON document on several lines", head
        )
    if complete:
        state = open_state(head)
        if state:
            return refused(QuarantineReason.OPEN_END, f"it ends within {state}", head)
    seen = "a line of it is no whole JSON object"
    if not complete and not head.count(b"\n"):
        seen = "no line of it ends within the first bytes read"
    elif odd and not head.lstrip(_BLANKS).startswith(odd):
        seen += f" ({shown_bytes(odd)})"
    elif odd == b"{":
        seen = "it has JSON objects on several lines"
    return refused(QuarantineReason.UNKNOWN_FORMAT, seen, head)


def refuse_other_json(head: bytes) -> None:
    """Raise UnreadableSource (UNKNOWN_FORMAT) for JSON that is no object, by its first bytes."""
    seen = ""
    if head[0] == _RECORD_SEPARATOR:
        seen = "it is a JSON text sequence (RFC 7464)"
    elif _ARRAY.match(head):
        seen = "it is a JSON array"
    if seen:
        raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, head)


def refuse_open_line(tail: bytes) -> None:
    """Raise UnreadableSource (OPEN_END) where the last line is JSON that is still open.

    Args:
        tail: the end of a source of JSON lines, or all of it.
    """
    line = tail.rstrip(_BLANKS).rpartition(b"\n")[2]
    if not line:
        return
    state = "" if is_value(line) else open_state(line)
    if state:
        raise refused(QuarantineReason.OPEN_END, f"it ends within {state}", line)
