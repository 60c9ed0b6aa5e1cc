"""JSON objects one behind the other without a newline (``}{``), as Firehose writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from compactor.errors import UnreadableSource
from compactor.formats.framing import Edit, Framed
from compactor.formats.lines import BOM, count_newlines
from compactor.model import QuarantineReason

_BLANKS = b" \t\r\n"
_SAME_LINE = re.compile(rb"\}[ \t]*(?=\{)")
_ANYWHERE = re.compile(rb"\}[ \t\r\n]*(?=\{)")


class UndelimitedFramer:
    """Puts every object on a line of its own, or leaves the bytes as they are.

    Args:
        lines: insert a newline at each boundary of two objects; else copy the bytes, which
            joins sources as the objects in them are joined.
    """

    def __init__(self, *, lines: bool) -> None:
        self._lines = lines

    def opening(self) -> bytes:
        """Nothing."""
        return b""

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source.

        Blanks before the first and behind the last object are left out.

        Raises:
            UnreadableSource: MALFORMED, the source does not start and end with an object.
        """
        content = bytes(content)
        body = content.rstrip(_BLANKS)
        suffix = content[len(body) :]
        objects = body.removeprefix(BOM).lstrip(_BLANKS)
        prefix = body[: len(body) - len(objects)]
        if not objects:
            return Framed(b"", (), 0, prefix, suffix)
        if not (objects.startswith(b"{") and objects.endswith(b"}")):
            raise _malformed("it does not start and end with a JSON object")
        if not self._lines:
            return Framed(b"", (objects,), len(boundaries(objects, _ANYWHERE)) + 1, prefix, suffix)
        return _on_lines(objects, prefix, suffix)

    def stream(self) -> None:
        """The source is needed whole."""
        return

    def closing(self) -> bytes:
        """Nothing."""
        return b""


def _on_lines(body: bytes, prefix: bytes, suffix: bytes) -> Framed:
    cuts = boundaries(body, _SAME_LINE)
    found = count_newlines(body)
    return Framed(
        b"",
        (b"\n".join(_cut(body, cuts)), b"\n"),
        found + len(cuts) + 1,
        prefix,
        suffix,
        appended=1,
        newlines_stand_for=None if found else b"",
        edits=tuple(Edit(cut + n, 1, b"") for n, cut in enumerate(cuts)) if found else (),
    )


def _cut(body: bytes, cuts: list[int]) -> Iterator[memoryview]:
    view = memoryview(body)
    start = 0
    for cut in cuts:
        yield view[start:cut]
        start = cut
    yield view[start:]


def boundaries(body: bytes, pattern: re.Pattern[bytes] = _SAME_LINE) -> list[int]:
    """Where each object but the first starts, bytes from the start of ``body``.

    Raises:
        UnreadableSource: MALFORMED, the body ends within a string.
    """
    clean = _without_escapes(body)
    cuts = list(_boundaries(clean, pattern))
    if clean.count(b'"', cuts[-1] if cuts else 0) % 2:
        raise _malformed("it ends within a JSON string")
    return cuts


def first_boundary(body: bytes) -> int | None:
    """Where the second object of a line starts, if it does; the line may be cut off anywhere."""
    return next(_boundaries(_without_escapes(body), _SAME_LINE), None)


def _boundaries(clean: bytes, pattern: re.Pattern[bytes]) -> Iterator[int]:
    """The boundaries one by one, of a body without escapes.

    In valid JSON ``}`` followed by ``{`` is either a boundary of two top-level objects or
    part of a string; within a string the quotes so far are odd in number.
    """
    counted = quotes = 0
    for candidate in pattern.finditer(clean):
        end = candidate.end()
        quotes += clean.count(b'"', counted, end)
        counted = end
        if quotes % 2 == 0:
            yield end


def _without_escapes(body: bytes) -> bytes:
    """The body with escaped backslashes and quotes blotted out, every offset unchanged."""
    if b"\\" not in body:
        return body
    # Pairs of backslashes go first, so that a backslash left over does escape what follows it.
    return body.replace(b"\\\\", b"__").replace(b'\\"', b"__")


def _malformed(detail: str) -> UnreadableSource:
    return UnreadableSource(QuarantineReason.MALFORMED, detail)
