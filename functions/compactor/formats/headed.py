"""Sources that each start with a header (CSV, TSV, VPC flow, CloudFront).

The output has the header once, at its start. Each source's header is dropped from its slice,
together with a BOM before it and the line end after it, and kept in the manifest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compactor.formats.framing import Framed
from compactor.formats.lines import BOM, PassingLines, frame_lines
from compactor.formats.spec import malformed

#: Every open output holds its header in memory.
LONGEST_HEADER = 1 << 20
#: The first line and its line end.
FIRST_LINE = re.compile(rb"([^\n]*)(\n|\Z)")


def ended(found: re.Match[bytes] | None, *, complete: bool) -> bytes:
    """Return the header found, if its line end (or the source's end) is in the head.

    Raises:
        UnreadableSource: MALFORMED, it does not end there or is too long.
    """
    if found is None or not (found[2] or complete):
        raise malformed("its header does not end within the first bytes read")
    if found.end(1) > LONGEST_HEADER:
        raise malformed(f"its header is longer than {LONGEST_HEADER:,} bytes")
    return found[1].removesuffix(b"\r")


class HeadedFramer:
    """Joins sources with the same header.

    Args:
        header: as :func:`compactor.formats.detect.detect` returns it: no BOM, no last line end.
    """

    def __init__(self, header: bytes) -> None:
        self._header = header
        self._with_newline = header + b"\n"

    def opening(self) -> bytes:
        """Return the header line."""
        return self._with_newline

    def frame(self, content: bytes | memoryview) -> Framed:
        """Place one whole source. One that has only a header has no records.

        Raises:
            UnreadableSource: MALFORMED, it has another header.
        """
        prefix = self.prefix_of(content)
        # Views have no count().
        counted = content.count(b"\n", len(prefix)) if isinstance(content, bytes) else None
        return frame_lines(memoryview(content)[len(prefix) :], prefix, counted)

    def stream(self) -> HeadedStream:
        """Start a source of any size."""
        return HeadedStream(self)

    def closing(self) -> bytes:
        """Return nothing: these formats have no closing."""
        return b""

    @property
    def prefix_bytes(self) -> int:
        """Length of the longest prefix that may be dropped."""
        return len(BOM) + len(self._header) + len(b"\r\n")

    def prefix_of(self, content: bytes | memoryview) -> bytes:
        """Return BOM, header and line end of a source that starts with ``content`` or is it.

        Raises:
            UnreadableSource: MALFORMED, it has another header.
        """
        if isinstance(content, bytes) and content.startswith(self._with_newline):
            return self._with_newline
        head = bytes(content[: self.prefix_bytes])
        bom = BOM if head.startswith(BOM) else b""
        if head == bom:
            return bom
        end = len(bom) + len(self._header)
        line_end = head[end:]
        if head[len(bom) : end] == self._header:
            for known in (b"\r\n", b"\n"):
                if line_end.startswith(known):
                    return head[: end + len(known)]
            if line_end in (b"", b"\r"):
                return head
        raise malformed("its header is not the one its first bytes showed")


class HeadedStream:
    """Frames a headed source chunk by chunk. The header may be longer than a chunk."""

    def __init__(self, framer: HeadedFramer) -> None:
        self._framer = framer
        self._head: bytearray | None = bytearray()
        self._body = PassingLines()

    def feed(self, chunk: bytes) -> Iterable[bytes | memoryview]:
        """Return everything after the header, each chunk in one piece.

        Raises:
            UnreadableSource: MALFORMED, it has another header.
        """
        if self._head is None:
            return self._body.feed(chunk)
        self._head += chunk
        if len(self._head) < self._framer.prefix_bytes:
            return ()
        return self._begin()

    def finish(self) -> Framed:
        """Return the result for the source, with the bytes that feed held back.

        Raises:
            UnreadableSource: MALFORMED, it has another header.
        """
        held = self._begin() if self._head is not None else ()
        return self._body.finish(held)

    def _begin(self) -> Iterable[bytes | memoryview]:
        head = bytes(self._head or b"")
        prefix = self._framer.prefix_of(head)
        self._head = None
        self._body.dropped_prefix = prefix
        return self._body.feed(memoryview(head)[len(prefix) :])
