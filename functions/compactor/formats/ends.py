"""Refuses sources whose end would run into the next source of an output."""

from __future__ import annotations

from compactor.formats.characters import Reading, ends_within_character
from compactor.formats.known_formats import spec_of
from compactor.formats.refusal import refused
from compactor.model import Format, QuarantineReason

_CR = 13
_ABOVE_ASCII = 128
_SHOWN_END = 40


def refuse_end(end: bytes, format: Format, *, forced: bool, reading: Reading) -> None:
    """Raise UnreadableSource (OPEN_END) for an end that would run into the next source.

    Args:
        end: the end of a source, or all of it.
        format: the source's format.
        forced: whether the caller insists on the format, so that its lines are not proven.
        reading: which bytes the caller accepts as text.
    """
    last = end[-1]
    if last < _ABOVE_ASCII and last != _CR and not forced:
        return
    spec = spec_of(format)
    if spec.proven:
        return
    if last == _CR:
        raise refused(QuarantineReason.OPEN_END, "it ends between CR and LF", end[-_SHOWN_END:])
    if last >= _ABOVE_ASCII and not reading.single_byte and ends_within_character(end):
        seen = "it ends within a UTF-8 character"
        raise refused(QuarantineReason.OPEN_END, seen, end[-_SHOWN_END:])
    if forced and spec.refuse_open is not None:
        spec.refuse_open(end)
