"""Splices arrays of JSON objects: they are validated completely, but never parsed and rewritten.

A decoder checks every byte between the brackets of a document and builds no objects. The bytes are
then copied into another array, or written with one record per line.
"""

from __future__ import annotations

import re
from array import array

import msgspec

from compactor.errors import UnreadableSource
from compactor.formats.characters import is_utf8
from compactor.formats.framing import Edit, Framed, refuse_many_edits
from compactor.formats.json_text import open_state
from compactor.formats.refusal import refused
from compactor.formats.spec import malformed
from compactor.model import QuarantineReason

_NEWLINE = 10
# Has no blanks before the newline: a run of blanks would be searched again from each of them.
_LINE_BREAK = re.compile(rb"\n[ \t\r\n]*")
_HALF_CHARACTER = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
# An object takes up to 100 bytes while records are counted and separated. Documents from AWS have
# one object per 190 bytes, so this many fill twice the largest document that is read.
_MOST_OBJECTS = 1_500_000
# The manifest keeps the blanks around the records; no real writer uses so many.
_MOST_AROUND = 64 << 10
_MOST_BETWEEN = 8 << 20


class _Record(msgspec.Struct, gc=False):
    """Any JSON object: unknown members are checked and skipped, and none is kept."""


_SHOWN = 64
_MOST_LOOKED_AT = 16 << 20
_objects = msgspec.json.Decoder(list[_Record])
_raw_objects = msgspec.json.Decoder(list[msgspec.Raw])


def spliced(content: bytes, start: int, end: int, records: int, *, first: bool) -> Framed:
    """Place the bytes between the brackets unchanged, after a comma unless ``first``."""
    body = memoryview(content)[start:end]
    return Framed(b"" if first else b",", (body,), records, content[:start], content[end:])


def without_records(content: bytes) -> Framed:
    """Place a source without records: the manifest keeps its bytes, the output has none of them."""
    refuse_blanks(len(content))
    return Framed(b"", (), 0, content)


def refuse_blanks(count: int) -> None:
    """Raise UnreadableSource (MALFORMED) if more bytes are around the records than is kept."""
    if count > _MOST_AROUND:
        raise malformed(f"more than {_MOST_AROUND:,} bytes around its records")


def proven(content: bytes, start: int, end: int) -> tuple[int, bytes | memoryview]:
    """Return the number of records, and the array in a form msgspec accepts, of equal length.

    Args:
        content: one source.
        start: where the content of its brackets starts.
        end: where it ends.

    Raises:
        UnreadableSource: MALFORMED, it has elements other than objects; OPEN_END; TOO_LARGE.
    """
    if not is_utf8(content, complete=True):
        raise malformed("it is not UTF-8")
    if end - start > _MOST_OBJECTS and content.count(b"{", start, end) > _MOST_OBJECTS:
        detail = f"more than {_MOST_OBJECTS:,} objects"
        raise UnreadableSource(QuarantineReason.TOO_LARGE, detail)
    found: bytes | memoryview = memoryview(content)[start - 1 : end + 1]
    try:
        return len(_objects.decode(found)), found
    except RecursionError as error:
        raise malformed("its records are nested too deep") from error
    except msgspec.MsgspecError as error:
        # An escape for half a UTF-16 pair, such as in a truncated name, is valid JSON (RFC 8259,
        # section 8.2), but msgspec rejects it. Another escape of the same length replaces it.
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
    return malformed(f"its records are not valid: {error}")


def on_lines(content: bytes, start: int, found: bytes | memoryview) -> Framed:
    """Place the records of an array one per line.

    Args:
        content: one source.
        start: as for :func:`proven`.
        found: the array that :func:`proven` returned.

    Raises:
        UnreadableSource: TOO_LARGE, restoring it would take more edits than are kept.
    """
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
    """Return the starts and ends of the records. Arrays, because there may be a million."""
    begins, ends = array("q"), array("q")
    for record in _raw_objects.decode(found):
        # Only blanks and one comma separate two objects.
        begin = content.index(b"{", at)
        at = begin + memoryview(record).nbytes
        begins.append(begin)
        ends.append(at)
    return begins, ends


def _edited(
    content: bytes, begins: array[int], ends: array[int]
) -> tuple[bytearray, tuple[Edit, ...]]:
    """Return records on one line each, if commas have blanks around them or records line breaks."""
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
