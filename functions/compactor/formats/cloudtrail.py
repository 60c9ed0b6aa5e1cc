"""CloudTrail documents, ``{"Records":[…]}``: spliced, never parsed into records and rewritten.

A source is proven to be exactly such a document before any byte of it is placed: its envelope
by what stands before the first and behind the last bracket, the array between them by a
decoder that checks every byte of it and builds nothing from it.
"""

from __future__ import annotations

import re
from array import array

import msgspec

from compactor.errors import UnreadableSource
from compactor.formats.characters import is_utf8
from compactor.formats.framing import Edit, Framed, refuse_many_edits
from compactor.formats.json_text import is_object, open_state
from compactor.formats.lines import BOM
from compactor.formats.refusal import refused
from compactor.formats.spec import Choice, Detected, FormatSpec, Look
from compactor.formats.undelimited import is_undelimited
from compactor.model import Format, QuarantineReason

OPENING = re.compile(rb'(?:\xef\xbb\xbf)?[ \t\r\n]*\{[ \t\r\n]*"Records"[ \t\r\n]*:[ \t\r\n]*\[')
_BLANKS = b" \t\r\n"
_NEWLINE = 10
_BLANK = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*\Z")
# Nothing before the newline: a run of blanks would be searched once from each of them.
_LINE_BREAK = re.compile(rb"\n[ \t\r\n]*")
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
# Each takes up to 100 bytes while records are counted and told apart. In what AWS writes there
# is one to 190 bytes, so that this many fill twice the largest document that is read.
_MOST_OBJECTS = 1_500_000
# Blanks around the records must be remembered; nobody means so many.
_MOST_AROUND = 64 << 10
_MOST_BETWEEN = 8 << 20


class _Record(msgspec.Struct, gc=False):
    """Any JSON object: unknown members are checked and skipped, nothing is kept."""


_SHOWN = 64
_SHOWN_NAMES = 5
_MOST_LOOKED_AT = 16 << 20
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
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
                for records, in UTF-8, or nested too deep to check; TOO_LARGE, it has more
                objects than memory is meant for, or needs more edits than are kept.
        """
        content = bytes(content)
        if _BLANK.match(content):
            return _without_records(content)
        start, end = _envelope(content)
        records, array = _proven(content, start, end)
        if not records:
            return _without_records(content)
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


def _without_records(content: bytes) -> Framed:
    _refuse_blanks(len(content))
    return Framed(b"", (), 0, content)


def _refuse_blanks(count: int) -> None:
    if count > _MOST_AROUND:
        raise _malformed(f"more than {_MOST_AROUND:,} bytes around its records")


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
        raise _no_document(content)
    _refuse_blanks(opening.end() + len(content) - bracket)
    return opening.end(), bracket


def _no_document(content: bytes) -> UnreadableSource:
    """Why the content is not exactly one document, as far as can be told."""
    head = content[:_SHOWN]
    try:
        names = [name for name in _members.decode(content.removeprefix(BOM)) if name != "Records"]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        # The last one for a name that is not UTF-8.
        names = []
        state = open_state(content) if len(content) <= _MOST_LOOKED_AT else ""
        if state:
            return refused(QuarantineReason.OPEN_END, f"it ends within {state}", head)
    if names:
        told = ", ".join(repr(name) for name in names[:_SHOWN_NAMES])
        seen = f'beside "Records" it has {told}, which would be lost'
    else:
        seen = 'it is not exactly {"Records":[...]}'
    return refused(QuarantineReason.MALFORMED, seen, head, "set format")


def _proven(content: bytes, start: int, end: int) -> tuple[int, bytes | memoryview]:
    """The number of records, and the array in a form the decoder accepts, of equal length."""
    if not is_utf8(content, complete=True):
        raise _malformed("it is not UTF-8")
    if end - start > _MOST_OBJECTS and content.count(b"{", start, end) > _MOST_OBJECTS:
        detail = f"more than {_MOST_OBJECTS:,} objects"
        raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
    found: bytes | memoryview = memoryview(content)[start - 1 : end + 1]
    try:
        return len(_objects.decode(found)), found
    except RecursionError as error:
        raise _malformed("its records are nested too deep") from error
    except msgspec.MsgspecError as error:
        # An escape for half a UTF-16 pair, as a name cut in two has it, is valid JSON (RFC 8259,
        # section 8.2) but not to msgspec. Any other escape of the same length does for the proof.
        changed, halves = _HALF_CHARACTER.subn(rb"\\u0020", found)
        if not halves:
            raise _invalid(content, error) from error
    try:
        return len(_objects.decode(changed)), changed
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _invalid(content, error) from error


def _invalid(content: bytes, error: Exception) -> UnreadableSource:
    state = open_state(content) if len(content) <= _MOST_LOOKED_AT else ""
    if state == "a JSON string":
        return refused(QuarantineReason.OPEN_END, f"it ends within {state}", content[:_SHOWN])
    return _malformed(f"its records are not valid: {error}")


def _on_lines(content: bytes, start: int, found: bytes | memoryview) -> Framed:
    begins, ends = _spans(content, start, found)
    first, last = begins[0], ends[-1]
    commas_alone = sum(ends) - sum(begins) + len(begins) - 1 == last - first
    body: bytes | bytearray
    edits: tuple[Edit, ...] = ()
    if commas_alone and content.find(b"\n", first, last) < 0:
        body = bytearray(memoryview(content)[first:last])
        for end in ends[:-1]:
            body[end - first] = _NEWLINE
    else:
        body, edits = _edited(content, begins, ends)
    return Framed(
        b"",
        (memoryview(body), b"\n"),
        len(begins),
        content[:first],
        content[last:],
        appended=1,
        newlines_stand_for=b"," if not edits else None,
        edits=edits,
    )


def _spans(content: bytes, at: int, found: bytes | memoryview) -> tuple[array[int], array[int]]:
    """Where each record begins, and where it ends; as arrays, for there may be a million."""
    begins, ends = array("q"), array("q")
    for record in _raw_objects.decode(found):
        # Only blanks and one comma stand between two objects.
        begin = content.index(b"{", at)
        at = begin + memoryview(record).nbytes
        begins.append(begin)
        ends.append(at)
    return begins, ends


def _edited(
    content: bytes, begins: array[int], ends: array[int]
) -> tuple[bytearray, tuple[Edit, ...]]:
    """Records on one line each, where commas have blanks around them or records line breaks."""
    refuse_many_edits(len(begins) - 1 + content.count(b"\n", begins[0], ends[-1]))
    body = bytearray()
    edits: list[Edit] = []
    previous = begins[0]
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if number:
            edits.append(Edit(len(body), 1, content[previous:begin]))
            body += b"\n"
        at = begin
        for gap in _LINE_BREAK.finditer(content, begin, end):
            body += memoryview(content)[at : gap.start()]
            edits.append(Edit(len(body), 0, gap.group()))
            at = gap.end()
        body += memoryview(content)[at:end]
        previous = end
    if ends[-1] - begins[0] - len(body) > _MOST_BETWEEN:
        detail = f"more than {_MOST_BETWEEN:,} blanks between and within its records"
        raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
    return body, tuple(edits)


def _malformed(detail: str) -> UnreadableSource:
    return UnreadableSource(QuarantineReason.MALFORMED, detail)


_TRAIL = Detected(Format.CLOUDTRAIL)


def _recognise(look: Look) -> Detected | None:
    if OPENING.match(look.head) is None:
        return None
    return _TRAIL if "_CloudTrail_" in look.key or _is_one_document(look.head) else None


def _is_one_document(head: bytes) -> bool:
    """Whether there is but one line, or the first one is no whole object nor several."""
    line, _, rest = head.lstrip(_BLANKS).partition(b"\n")
    if is_undelimited(line):
        return False
    return not (rest.strip(_BLANKS) and is_object(line))


SPEC = FormatSpec(
    format=Format.CLOUDTRAIL,
    extension="json",
    media_type="application/json",
    framer=lambda _, other: CloudTrailFramer(lines=other),
    recognise=_recognise,
    begins=b"{",
    choice=Choice("cloudtrail_output", "document", "lines", uncopied="lines"),
    proven=True,
    rows="json",
    records=lambda: CloudTrailFramer(lines=True),
    hint="cloudtrail",
    named=r"_CloudTrail_[^/]*$",
    whole=True,
    validated=True,
)
