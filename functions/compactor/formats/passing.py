"""What is asked of a source too large for memory while it passes: to stay what it began as."""

from __future__ import annotations

import re

from compactor.formats import characters, log_lines
from compactor.formats.ends import refuse_end
from compactor.formats.json_lines import refuse_open_line
from compactor.formats.json_text import PassingJsonLines, PassingLastLine
from compactor.formats.lines import BOM
from compactor.formats.refusal import refused
from compactor.model import Format, QuarantineReason

_TAIL_BYTES = 64 << 10
_BLANKS = b" \t\r\n"
_COMMENT = re.compile(rb"\n(#[^\r\n]*)")


class PassingCheck:
    """The checks of one source, chunk by chunk.

    Args:
        format: what its first bytes showed, or the caller insists on.
        header: its header, where the format has one.
        forced: the caller insists, so that only its end is asked for.
        reading: what the caller takes for characters.
    """

    def __init__(
        self, format: Format, header: bytes, *, forced: bool, reading: characters.Reading
    ) -> None:
        self._format = format
        self._forced = forced
        self._reading = reading
        self._head = b""
        self._tail = b""
        self._known_comments = frozenset(header.replace(b"\r", b"").split(b"\n"))
        self._objects = PassingJsonLines()
        self._last_line = PassingLastLine()
        self._characters = characters.PassingCharacters()
        self._form = 0
        self._structured = False

    def feed(self, chunk: bytes) -> None:
        """Look at the next plain bytes.

        Raises:
            UnreadableSource: they are not of the format that the first ones showed.
        """
        if not self._head:
            self._begin(chunk)
        if not self._forced:
            self._look_at(chunk)
        elif self._format is Format.JSON_LINES:
            self._last_line.feed(chunk)
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def finish(self) -> None:
        """Look at the end.

        Raises:
            UnreadableSource: OPEN_END, OPEN_QUOTE, or the last lines are of another kind.
        """
        tail = self._tail
        if tail:
            # The last line may begin before the tail.
            refuse_end(tail, self._format, forced=False, reading=self._reading)
        if self._forced:
            self._refuse_open_line()
            return
        if self._format is Format.TEXT:
            text = characters.ascii_of(tail, keep_nuls=self._reading.keep_nuls)
            log_lines.refuse_other_lines(self._head, text, self._form, complete=False)
            log_lines.refuse_open_quote(text[text.find(b"\n") + 1 :], structured=True)
        elif self._format is Format.JSON_LINES:
            last = self._objects.last()
            if last and not self._objects.feed(b"\n"):
                refuse_open_line(last)
                raise refused(QuarantineReason.UNKNOWN_FORMAT, _ODD_LINE, last)

    def _refuse_open_line(self) -> None:
        state = self._last_line.open_state()
        if state:
            line = self._tail.rstrip(_BLANKS).rpartition(b"\n")[2]
            raise refused(QuarantineReason.OPEN_END, f"it ends within {state}", line)

    def _begin(self, chunk: bytes) -> None:
        head = chunk[:_TAIL_BYTES].removeprefix(BOM)
        self._head = characters.ascii_of(head, keep_nuls=self._reading.keep_nuls)
        if self._format is Format.TEXT:
            self._form = log_lines.form_of(self._head) or 0
            self._structured = log_lines.is_structured(self._form)

    def _look_at(self, chunk: bytes) -> None:
        if b"\0" in chunk and not self._reading.keep_nuls:
            raise refused(
                QuarantineReason.BINARY, "it has NUL bytes", self._head, characters.KEEP_NULS
            )
        if not (self._structured or self._reading.single_byte or self._characters.feed(chunk)):
            raise refused(QuarantineReason.ENCODING, "it is not UTF-8 throughout", self._head)
        if self._format is Format.JSON_LINES and not self._objects.feed(self._text(chunk)):
            raise refused(QuarantineReason.UNKNOWN_FORMAT, _ODD_LINE, self._head)
        if self._format is Format.CLOUDFRONT and b"\n#" in (piece := self._tail[-1:] + chunk):
            self._refuse_comments(piece)

    def _text(self, chunk: bytes) -> bytes:
        if not self._tail:
            chunk = chunk.removeprefix(BOM)
        return chunk if chunk.isascii() else characters.ascii_of(chunk, keep_nuls=False)

    def _refuse_comments(self, piece: bytes) -> None:
        for found in _COMMENT.finditer(piece):
            # A line cut off by the end of the chunk is the beginning of a known one, or is not.
            whole = found.end() < len(piece)
            if found[1] not in self._known_comments and (
                whole or not any(one.startswith(found[1]) for one in self._known_comments)
            ):
                seen = "a comment line stands below its #Fields: line"
                raise refused(QuarantineReason.UNKNOWN_FORMAT, seen, found[1])


_ODD_LINE = "a line of it is no whole JSON object"
