"""Checks that a source too large for memory stays in the format of its first bytes."""

from __future__ import annotations

from compactor.formats import characters
from compactor.formats.ends import refuse_end
from compactor.formats.known_formats import spec_of
from compactor.formats.lines import BOM
from compactor.formats.refusal import refused
from compactor.formats.spec import Watch
from compactor.model import Format, QuarantineReason

_TAIL_BYTES = 64 << 10


class PassingCheck:
    """The checks of one source, chunk by chunk.

    Args:
        format: the format of its first bytes, or the one that the caller insists on.
        header: its header, if the format has one.
        forced: whether the caller insists on the format; then only the end is checked.
        reading: which bytes the caller accepts as text.
    """

    def __init__(
        self, format: Format, header: bytes, *, forced: bool, reading: characters.Reading
    ) -> None:
        self._format = format
        self._header = header
        self._forced = forced
        self._reading = reading
        self._head = b""
        self._tail = b""
        self._watch: Watch | None = None
        self._characters = characters.PassingCharacters()

    def feed(self, chunk: bytes) -> None:
        """Check the next plain bytes.

        Raises:
            UnreadableSource: they do not fit the format of the first bytes.
        """
        if not self._head:
            self._begin(chunk)
        if not self._forced:
            self._look_at(chunk)
        if self._watch is not None:
            self._watch.feed(chunk, self._tail)
        self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def finish(self) -> None:
        """Check the end of the source.

        Raises:
            UnreadableSource: OPEN_END, OPEN_QUOTE, or the last lines do not fit the format.
        """
        if self._tail:
            # The last line may begin before the tail.
            refuse_end(self._tail, self._format, forced=False, reading=self._reading)
        if self._watch is not None:
            self._watch.finish(self._tail)

    def _begin(self, chunk: bytes) -> None:
        self._head = chunk[:_TAIL_BYTES].removeprefix(BOM)
        make = spec_of(self._format).watch
        if make is not None:
            self._watch = make(self._head, self._header, self._reading, self._forced)

    def _look_at(self, chunk: bytes) -> None:
        if b"\0" in chunk and not self._reading.keep_nuls:
            raise refused(
                QuarantineReason.BINARY, "it has NUL bytes", self._head, characters.KEEP_NULS
            )
        any_encoding = self._reading.single_byte or (self._watch and self._watch.any_encoding)
        if not any_encoding and not self._characters.feed(chunk):
            raise refused(QuarantineReason.ENCODING, "it is not UTF-8 throughout", self._head)
