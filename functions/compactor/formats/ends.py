"""Ends of sources that would reach into what follows them in an output."""

from __future__ import annotations

from compactor.formats.characters import Reading, ends_within_character
from compactor.formats.json_lines import refuse_open_line
from compactor.formats.refusal import refused
from compactor.model import Format, QuarantineReason

_CR = 13
_ABOVE_ASCII = 128
_SHOWN_END = 40
# Their framers prove the whole source.
_PROVEN = frozenset({Format.CLOUDTRAIL, Format.UNDELIMITED_JSON, Format.PARQUET})


def refuse_end(end: bytes, format: Format, *, forced: bool, reading: Reading) -> None:
    """Raise UnreadableSource (OPEN_END) for an end that would reach into what follows it.

    Args:
        end: of a source, or all of it.
        format: of the source.
        forced: the caller insists on the format, so that the lines are not proven.
        reading: what the caller takes for
    """
    if format in _PROVEN:
        return
    last = end[-1]
    if last == _CR:
        raise refused(QuarantineReason.OPEN_END, "it ends between CR and LF", end[-_SHOWN_END:])
    if last >= _ABOVE_ASCII and not reading.single_byte and ends_within_character(end):
        seen = "it ends within a UTF-8 character"
        raise refused(QuarantineReason.OPEN_END, seen, end[-_SHOWN_END:])
    if forced and format is Format.JSON_LINES:
        refuse_open_line(end)
