"""Consecutive JSON objects without a newline between them (``}{``), as Firehose writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compactor.errors import UnreadableSource
from compactor.formats.characters import ascii_of
from compactor.formats.framing import Edit, Framed, refuse_many_edits
from compactor.formats.json_text import PassingJsonLines, is_object, lines_of, open_state
from compactor.formats.refusal import refused
from compactor.formats.spec import Detected, FormatSpec, Look, malformed
from compactor.model import Format, QuarantineReason

_BLANKS = b" \t\r\n"
_SAME_LINE = re.compile(rb"\}[ \t]*(?=\{)")
_BEFORE = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*")
# Must not be cut: an escape, or the end of one object and the start of the next.
_TIED = re.compile(rb"[} \t\r\n\\]*+.?", re.DOTALL)
_LOOKED_PIECE = 256 << 10
# The manifest keeps the blanks around the objects; no real writer uses so many.
_MOST_AROUND = 64 << 10
_SHOWN = 64


class UndelimitedFramer:
    """Puts every object on a line of its own.

    Readers of concatenated JSON skip the newlines as blanks (RFC 8259, section 2). Without them,
    readers of JSON lines would see only the first object of a line (Spark), or none (DuckDB).
    """

    def opening(self) -> bytes:
        """Return nothing: lines have no opening."""
        return b""

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source.

        Blanks before the first and after the last object are dropped.

        Raises:
            UnreadableSource: MALFORMED, it is not only objects, each on one line; OPEN_END, it
                ends within one; TOO_LARGE, restoring it would take more edits than are kept.
        """
        content = bytes(content)
        start, end = _without_blanks(content)
        if start + len(content) - end > _MOST_AROUND:
            raise malformed(f"more than {_MOST_AROUND:,} blanks around its objects")
        if start >= end:
            return Framed(b"", (), 0, content)
        if content[start] != ord("{") or content[end - 1] != ord("}"):
            raise _not_whole(content, start, end)
        return _on_lines(content, start, end)

    def stream(self) -> None:
        """Return None: the whole source is needed to prove it."""
        return

    def closing(self) -> bytes:
        """Return nothing: lines have no closing."""
        return b""


def _without_blanks(content: bytes) -> tuple[int, int]:
    """Return the start of the first and the end of the last object, without copying the content."""
    before = _BEFORE.match(content)
    end = len(content)
    while end:
        piece = content[max(0, end - _LOOKED_PIECE) : end]
        left = len(piece.rstrip(_BLANKS))
        end -= len(piece) - left
        if left:
            break
    return before.end() if before is not None else 0, end


def _on_lines(content: bytes, start: int, end: int) -> Framed:
    view = memoryview(content)
    breaks = content.count(b"\n", start, end)
    pieces: list[bytes | memoryview] = []
    edits: list[Edit] = []
    count = 0
    for first, last, cuts in _boundaries(content, start, end, _SAME_LINE):
        pieces.append(b"\n".join(_cut(view, first, last, cuts)) if cuts else view[first:last])
        if breaks:
            refuse_many_edits(count + len(cuts))
            edits += [Edit(cut - start + n, 1, b"") for n, cut in enumerate(cuts, count)]
        count += len(cuts)
    _refuse_odd_lines(pieces, content, start, end)
    return Framed(
        b"",
        (*pieces, b"\n"),
        breaks + count + 1,
        content[:start],
        content[end:],
        appended=1,
        newlines_stand_for=None if breaks else b"",
        edits=tuple(edits),
    )


def _refuse_odd_lines(
    pieces: list[bytes | memoryview], content: bytes, start: int, end: int
) -> None:
    """Raise UnreadableSource if a line of the output would not be one whole object."""
    proof = PassingJsonLines()
    whole = all(proof.feed(piece) for piece in pieces)
    if not (whole and proof.feed(b"\n")):
        raise _not_whole(content, start, end)


def _not_whole(content: bytes, start: int, end: int) -> UnreadableSource:
    state = open_state(content[start:end])
    if state:
        seen = f"it ends within {state}"
        return refused(QuarantineReason.OPEN_END, seen, content[start : start + _SHOWN])
    return malformed("it is not whole JSON objects one after the other, each on one line")


def _cut(view: memoryview, start: int, end: int, cuts: list[int]) -> Iterator[memoryview]:
    for cut in cuts:
        yield view[start:cut]
        start = cut
    yield view[start:end]


def _first_boundary(body: bytes) -> int | None:
    """Return where the second object of a line starts, if any; the line may be cut off anywhere."""
    clean = _without_escapes(body)
    return next((cut for cut, within in _candidates(clean, _SAME_LINE) if not within), None)


def _boundaries(
    content: bytes, start: int, end: int, pattern: re.Pattern[bytes]
) -> Iterator[tuple[int, int, list[int]]]:
    """Yield successive parts of the content: start, end, and the boundaries within.

    A boundary is where an object other than the first starts. The parts are small, because
    masking escapes makes copies, and every second byte may be a boundary.

    Raises:
        UnreadableSource: OPEN_END, the content ends within a string.
    """
    in_string = False
    while start < end:
        tied = _TIED.match(content, min(start + _LOOKED_PIECE, end) - 1, end)
        last = tied.end() if tied is not None else end
        clean = _without_escapes(content[start:last])
        candidates = _candidates(clean, pattern)
        yield start, last, [start + cut for cut, within in candidates if within == in_string]
        in_string ^= clean.count(b'"') % 2 == 1
        start = last
    if in_string:
        seen = "it ends within a JSON string"
        raise refused(QuarantineReason.OPEN_END, seen, content[:_SHOWN])


def _candidates(clean: bytes, pattern: re.Pattern[bytes]) -> Iterator[tuple[int, bool]]:
    """Yield where ``{`` follows ``}``, and whether the number of quotes before is odd.

    In valid JSON this is either a boundary of two top-level objects or part of a string; within
    a string the number of quotes so far is odd.
    """
    counted = quotes = 0
    for candidate in pattern.finditer(clean):
        end = candidate.end()
        quotes += clean.count(b'"', counted, end)
        counted = end
        yield end, quotes % 2 == 1


def _without_escapes(body: bytes) -> bytes:
    """Return the body with escaped backslashes and quotes masked; offsets stay the same."""
    if b"\\" not in body:
        return body
    # Pairs of backslashes first, so that a remaining backslash does escape what follows it.
    return body.replace(b"\\\\", b"__").replace(b'\\"', b"__")


_UNDELIMITED = Detected(Format.UNDELIMITED_JSON)


def _recognise(look: Look) -> Detected | None:
    head = ascii_of(look.head)
    looked_at = head if look.complete else head[: head.rfind(b"\n") + 1]
    first = next(lines_of(looked_at), b"")
    line = first_odd_line(head) if not first or is_object(first) else first
    return _UNDELIMITED if _begins_with_two(line) else None


def is_undelimited(head: bytes) -> bool:
    """Return whether the first line that is not one whole object starts with one and another ``{``.

    The line may be cut off after that.
    """
    return _begins_with_two(first_odd_line(head))


def _begins_with_two(line: bytes) -> bool:
    cut = _first_boundary(line)
    return cut is not None and is_object(line[:cut])


def first_odd_line(head: bytes) -> bytes:
    """Return the first line that is not one whole object, or empty."""
    for line in lines_of(head):
        if not is_object(line):
            return line
    return b""


SPEC = FormatSpec(
    format=Format.UNDELIMITED_JSON,
    extension="json",
    media_type="application/x-ndjson",
    framer=lambda *_: UndelimitedFramer(),
    recognise=_recognise,
    begins=b"{",
    proven=True,
    rows="json",
    records=UndelimitedFramer,
)
