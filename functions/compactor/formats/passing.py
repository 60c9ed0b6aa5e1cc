"""Checks that a source too large for memory stays in the format of its first bytes."""

from __future__ import annotations

from compactor.formats.characters import PassingText
from compactor.formats.known_formats import spec_of
from compactor.formats.spec import Detected

_TAIL_BYTES = 64 << 10


class PassingCheck:
    """The checks of one source, chunk by chunk.

    Args:
        detected: what its first bytes showed.
        single_byte: whether its declaration accepts each byte above 127 as a character.
    """

    def __init__(self, detected: Detected, *, single_byte: bool) -> None:
        spec = spec_of(detected.format)
        self._text = None if spec.proven else PassingText(single_byte=single_byte)
        self._watch = spec.watch(detected.header) if spec.watch is not None else None
        self._tail = b""

    def feed(self, chunk: bytes) -> None:
        """Check the next plain bytes.

        Raises:
            UnreadableSource: they do not fit the format of the first bytes.
        """
        if self._text is not None:
            self._text.feed(chunk)
        if self._watch is not None:
            self._watch.feed(chunk, self._tail)
            self._tail = (self._tail + chunk)[-_TAIL_BYTES:]

    def finish(self) -> None:
        """Check the end of the source.

        Raises:
            UnreadableSource: OPEN_END, or the end does not fit the format.
        """
        if self._text is not None:
            self._text.finish()
        if self._watch is not None:
            self._watch.finish()
