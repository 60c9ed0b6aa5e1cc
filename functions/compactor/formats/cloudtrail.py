"""CloudTrail documents, ``{"Records":[…]}``: spliced, never parsed into records and rewritten.

A source is proven to be exactly such a document before any byte of it is placed: its envelope
by what stands before the first and behind the last bracket, the array between them by a
decoder that checks every byte of it and builds nothing from it.
"""

from __future__ import annotations

import codecs
import re

import msgspec

from compactor.errors import UnreadableSource
from compactor.formats.framing import Edit, Framed
from compactor.model import QuarantineReason

OPENING = re.compile(rb'(?:\xef\xbb\xbf)?[ \t\r\n]*\{[ \t\r\n]*"Records"[ \t\r\n]*:[ \t\r\n]*\[')
_BLANKS = b" \t\r\n"
_BLANK = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\Z")
# Nothing before the newline: a run of blanks would be searched once from each of them.
_LINE_BREAK = re.compile(rb"\n[ \t\r\n]*")
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_DECODED_AT_ONCE = 1 << 20


class _Record(msgspec.Struct, gc=False):
    """Any JSON object: unknown members are checked and skipped, nothing is kept."""


_objects = msgspec.json.Decoder(list[_Record])
_raw_objects = msgspec.json.Decoder(list[msgspec.Raw])


class CloudTrailFramer:
    """Joins documents into one document, or into lines of one record each.

    Args:
        lines: write one record a line instead of one document.
    """

    def __init__(self, *, lines: bool) -> None:
        self._lines = lines
        self._started = False

    def opening(self) -> bytes:
        """The envelope up to its records."""
        return b"" if self._lines else b'{"Records":['

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source.

        Raises:
            UnreadableSource: MALFORMED, it is not exactly ``{"Records":[…]}`` with objects
                for records, in UTF-8, or nested too deep to check.
        """
        content = bytes(content)
        if _BLANK.match(content):
            return Framed(b"", (), 0, content)
        start, end = _envelope(content)
        records, array = _proven(content, start, end)
        if not records:
            return Framed(b"", (), 0, content)
        if self._lines:
            return _on_lines(content, start, array)
        separator = b"," if self._started else b""
        self._started = True
        body = memoryview(content)[start:end]
        return Framed(separator, (body,), records, content[:start], content[end:])

    def stream(self) -> None:
        """The source is needed whole, to be proven."""
        return

    def closing(self) -> bytes:
        """The rest of the envelope."""
        return b"" if self._lines else b"]}"


def _envelope(content: bytes) -> tuple[int, int]:
    """Where the bytes between ``[`` and ``]`` start and end."""
    opening = OPENING.match(content)
    brace = content.rfind(b"}")
    bracket = content.rfind(b"]", 0, max(brace, 0))
    if (
        opening is None
        or bracket < opening.end()
        or content[bracket + 1 : brace].strip(_BLANKS)
        or content[brace + 1 :].strip(_BLANKS)
    ):
        raise _malformed('it is not exactly {"Records":[...]}')
    return opening.end(), bracket


def _proven(content: bytes, start: int, end: int) -> tuple[int, bytes | memoryview]:
    """The number of records, and the array in a form the decoder accepts, of equal length."""
    if not _is_utf8(content):
        raise _malformed("it is not UTF-8")
    array: bytes | memoryview = memoryview(content)[start - 1 : end + 1]
    try:
        return len(_objects.decode(array)), array
    except RecursionError as error:
        raise _malformed("its records are nested too deep") from error
    except msgspec.MsgspecError as error:
        # An escape for half a UTF-16 pair, as a name cut in two has it, is valid JSON (RFC 8259,
        # section 8.2) but not to msgspec. Any other escape of the same length does for the proof.
        changed, halves = _HALF_CHARACTER.subn(rb"\\u0020", array)
        if not halves:
            raise _malformed(f"its records are not valid: {error}") from error
    try:
        return len(_objects.decode(changed)), changed
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _malformed(f"its records are not valid: {error}") from error


def _is_utf8(content: bytes) -> bool:
    if content.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    view = memoryview(content)
    try:
        for at in range(0, len(content), _DECODED_AT_ONCE):
            decoder.decode(view[at : at + _DECODED_AT_ONCE])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _on_lines(content: bytes, start: int, array: bytes | memoryview) -> Framed:
    spans = []
    at = start
    for record in _raw_objects.decode(array):
        # Only blanks and one comma stand between two objects.
        begin = content.index(b"{", at)
        at = begin + memoryview(record).nbytes
        spans.append((begin, at))
    first, last = spans[0][0], spans[-1][1]
    view = memoryview(content)
    commas_alone = sum(end - begin for begin, end in spans) + len(spans) - 1 == last - first
    edits: tuple[Edit, ...] = ()
    if commas_alone and content.find(b"\n", first, last) < 0:
        body = b"\n".join(view[begin:end] for begin, end in spans)
    else:
        body, edits = _edited(content, spans)
    return Framed(
        b"",
        (body, b"\n"),
        len(spans),
        content[:first],
        content[last:],
        appended=1,
        newlines_stand_for=b"," if not edits else None,
        edits=edits,
    )


def _edited(content: bytes, spans: list[tuple[int, int]]) -> tuple[bytes, tuple[Edit, ...]]:
    """Records on one line each, where commas have blanks around them or records line breaks."""
    body = bytearray()
    edits: list[Edit] = []
    previous = spans[0][0]
    for number, (begin, end) in enumerate(spans):
        if number:
            edits.append(Edit(len(body), 1, content[previous:begin]))
            body += b"\n"
        at = begin
        for gap in _LINE_BREAK.finditer(content, begin, end):
            body += content[at : gap.start()]
            edits.append(Edit(len(body), 0, gap.group()))
            at = gap.end()
        body += content[at:end]
        previous = end
    return bytes(body), tuple(edits)


def _malformed(detail: str) -> UnreadableSource:
    return UnreadableSource(QuarantineReason.MALFORMED, detail)
