"""Line formats (JSON lines and plain text): sources follow each other line by line."""

from __future__ import annotations

from collections.abc import Iterable

from compactor.formats.framing import Framed

BOM = b"\xef\xbb\xbf"
_NEWLINE = 10
# Beyond it memory is asked of the kernel for each piece.
_COUNTED_PIECE = 64 << 10
_SHORT_BYTES = 2 << 10
_SAMPLE_BYTES = 1 << 10
# Of lines of 40 bytes; shorter ones are not counted faster by jumping.
_MANY_IN_SAMPLE = 25


class LineFramer:
    """Copies sources as they are; a missing last newline is added, a BOM left out.

    A record is a line, whatever it holds: blank lines count, CR stays part of its line.
    """

    def opening(self) -> bytes:
        """Empty."""
        return b""

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source; any bytes are accepted."""
        if content[0:3] == BOM:
            return frame_lines(memoryview(content)[3:], BOM)
        return frame_lines(content, b"")

    def stream(self) -> LineStream:
        """Place a source of any size, lines of any length included."""
        return LineStream()

    def closing(self) -> bytes:
        """Empty."""
        return b""


class LineStream:
    """Line framing chunk by chunk."""

    def __init__(self) -> None:
        self._head: bytes | None = b""
        self._body = PassingLines()

    def feed(self, chunk: bytes) -> Iterable[bytes | memoryview]:
        """Everything but a BOM goes through in one piece."""
        if self._head is None:
            return self._body.feed(chunk)
        self._head += chunk
        if len(self._head) < len(BOM):
            return ()
        return self._begin()

    def finish(self) -> Framed:
        """The facts of the source, and what feed still held back."""
        held = self._begin() if self._head is not None else ()
        return self._body.finish(held)

    def _begin(self) -> Iterable[bytes | memoryview]:
        head, self._head = self._head or b"", None
        if head.startswith(BOM):
            self._body.dropped_prefix = BOM
            head = head[len(BOM) :]
        return self._body.feed(head)


class PassingLines:
    """Lines counted as they pass."""

    def __init__(self) -> None:
        self.dropped_prefix = b""
        self._records = 0
        self._last = _NEWLINE

    def feed(self, chunk: bytes | memoryview) -> Iterable[bytes | memoryview]:
        """The same bytes again."""
        if not len(chunk):
            return ()
        self._records += count_newlines(chunk)
        self._last = chunk[-1]
        return (chunk,)

    def finish(self, held: Iterable[bytes | memoryview]) -> Framed:
        """The facts; ``held`` are pieces that were fed but have not gone out yet."""
        appended = 0 if self._last == _NEWLINE else 1
        return Framed(
            b"",
            (*held, b"\n") if appended else tuple(held),
            self._records + appended,
            self.dropped_prefix,
            appended=appended,
        )


def frame_lines(
    body: bytes | memoryview, dropped_prefix: bytes, records: int | None = None
) -> Framed:
    """Place lines.

    Args:
        body: the lines.
        dropped_prefix: what came before them in the source.
        records: newlines in the body, where they are counted already.
    """
    if not len(body):
        return Framed(b"", (), 0, dropped_prefix)
    if records is None:
        records = count_newlines(body)
    if body[-1] == _NEWLINE:
        return Framed(b"", (body,), records, dropped_prefix)
    return Framed(b"", (body, b"\n"), records + 1, dropped_prefix, appended=1)


def count_newlines(data: bytes | memoryview) -> int:
    """Newline bytes in the data; what is long, or a view, which cannot, is copied in pieces.

    Counting looks at each byte, and holds the interpreter lock (CPython 3.11 to 3.13: 0.31 ms a
    MB). Leaving the newlines out jumps from one to the next: lines of 120 bytes are counted so in
    0.13, of 370 in 0.08.
    """
    if len(data) <= _COUNTED_PIECE:
        return _count_newlines(bytes(data))
    return sum(
        _count_newlines(bytes(data[at : at + _COUNTED_PIECE]))
        for at in range(0, len(data), _COUNTED_PIECE)
    )


def _count_newlines(piece: bytes) -> int:
    if len(piece) < _SHORT_BYTES or piece.count(b"\n", 0, _SAMPLE_BYTES) > _MANY_IN_SAMPLE:
        return piece.count(b"\n")
    return len(piece) - len(piece.replace(b"\n", b""))
