"""Proves that bytes are JSON lines, one whole object per line, with a decoder that builds nothing.

Most are recognised by decoding them as one array, with a comma in place of each line break. A
missing line break between objects makes the array invalid, and one within an object leaves fewer
objects than lines.

Otherwise the decoder reads consecutive objects, wherever line breaks are, and counts them. Within
valid JSON no string holds a raw newline, and a ``}`` before a line break with a ``{`` after it can
only be the end of one object and the start of the next. If there are as many of those as line
breaks, and one less than objects, every line is an object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from compactor.formats.lines import count_newlines

_BLANKS = b" \t\r\n"
_PROVEN_PIECE = 1 << 20
_LONGEST_LINE = 64 << 20
_BLANK_LINES = re.compile(rb"\n[ \t\r\n]+")
_BLANK_ENDS = re.compile(rb"\}[ \t\r]+\n")
# Most JSON readers accept these, but not msgspec: an escape for half a UTF-16 pair (RFC 8259,
# section 8.2), and the floats that Python and old JavaScript libraries write.
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_NO_NUMBER = re.compile(rb"(?<=[:\[, ])(?:NaN|-?Infinity)(?=[ ,\]}])")
_STRINGS = re.compile(rb'"[^"]*"')


class _Object(msgspec.Struct, gc=False):
    """Any JSON object, checked and not kept."""


_objects = msgspec.json.Decoder(_Object)
_many_objects = msgspec.json.Decoder(list[_Object])


def is_object(text: bytes) -> bool:
    """Return whether a text is one whole JSON object; blanks around it are allowed."""
    return _decodes(text, lines=False) is not None


def are_json_lines(content: bytes) -> bool:
    """Return whether every line that is not blank is one whole object."""
    if len(content) <= _PROVEN_PIECE:
        return _are_lines(content)
    return all(_are_lines(piece) for piece in _whole_lines(content))


def _whole_lines(content: bytes) -> Iterator[bytes]:
    """Yield successive pieces of about a MiB, each of whole lines."""
    at = 0
    while at < len(content):
        end = content.find(b"\n", min(at + _PROVEN_PIECE, len(content)))
        end = len(content) if end < 0 else end + 1
        yield content[at:end]
        at = end


def _are_lines(content: bytes) -> bool:
    return _are_plain_lines(content) or _are_any_lines(content)


def _are_plain_lines(content: bytes) -> bool:
    """Return whether every line is one whole object that msgspec accepts, and none is blank."""
    text = content.removesuffix(b"\n")
    try:
        objects = _many_objects.decode(b"[%b]" % text.replace(b"\n", b","))
    except (msgspec.MsgspecError, RecursionError):
        return False
    return len(objects) == count_newlines(text) + 1


def _are_any_lines(content: bytes) -> bool:
    count = _decodes(content, lines=True)
    if count is None:
        return False
    text = content.strip(_BLANKS)
    breaks = count_newlines(text)
    if breaks < count - 1:
        return False
    if breaks == count - 1 == text.count(b"}\n{") or not text:
        return True
    text = _BLANK_LINES.sub(b"\n", text.replace(b"\r\n", b"\n"))
    if b"} " in text or b"}\t" in text:
        text = _BLANK_ENDS.sub(b"}\n", text)
    return text.count(b"\n") == count - 1 == text.count(b"}\n{")


def _decodes(text: bytes, *, lines: bool) -> int | None:
    """Return the number of objects in a text; None if it is anything else."""
    decode = _decode_lines if lines else _decode_one
    try:
        return decode(text)
    except RecursionError:
        return None
    except msgspec.MsgspecError as error:
        # No replacement below ends an object, so it cannot fix trailing characters.
        changed = text if "trailing characters" in str(error) else _as_msgspec_reads(text)
    if changed == text:
        return None
    try:
        return decode(changed)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _as_msgspec_reads(text: bytes) -> bytes:
    """Return a text with JSON that only other readers accept replaced for msgspec."""
    if b"\\u" in text:
        text = _HALF_CHARACTER.sub(rb"\\u0020", text)
    return _NO_NUMBER.sub(b"0", text) if b"NaN" in text or b"Infinity" in text else text


def _decode_lines(text: bytes) -> int:
    return len(_objects.decode_lines(text))


def _decode_one(text: bytes) -> int:
    _objects.decode(text)
    return 1


def lines_of(content: bytes) -> Iterator[bytes]:
    """Yield the lines that are not blank, without the blanks around them."""
    at = 0
    while at < len(content):
        end = content.find(b"\n", at)
        end = len(content) if end < 0 else end
        line = content[at:end].strip(_BLANKS)
        if line:
            yield line
        at = end + 1


def open_state(text: bytes) -> str:
    """Return what JSON is open at the end: a string, an object or an array; empty for nothing."""
    clean = text.replace(b"\\\\", b"__").replace(b'\\"', b"__") if b"\\" in text else text
    if clean.count(b'"') % 2:
        return "a JSON string"
    bare = _STRINGS.sub(b"", clean)
    if bare.count(b"{") > bare.count(b"}"):
        return "a JSON object"
    return "a JSON array" if bare.count(b"[") > bare.count(b"]") else ""


class PassingJsonLines:
    """Proves a source to be JSON lines, chunk by chunk."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, chunk: bytes | memoryview) -> bool:
        """Take the next bytes; return whether all lines that have ended are objects."""
        if len(self._held) > _LONGEST_LINE:
            return False
        self._held += chunk
        end = self._held.rfind(b"\n", max(0, len(self._held) - len(chunk))) + 1
        if not end:
            return True
        lines = bytes(memoryview(self._held)[:end])
        del self._held[:end]
        return are_json_lines(lines)

    def last(self) -> bytes:
        """Return the line after the last newline."""
        return bytes(self._held)
