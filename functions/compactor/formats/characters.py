"""Checks that bytes are text: no NUL, valid in their encoding, lines that another may follow."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from compactor.errors import UnreadableSource
from compactor.formats.refusal import refused
from compactor.model import QuarantineReason

_WIDE_BOMS = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_DECODED_PIECE = 1 << 20
_LONGEST_CHARACTER = 4
_SHOWN_END = 40
_ASCII_ONLY = bytes(range(128)) + b"?" * 128


def require_text(head: bytes, *, complete: bool, single_byte: bool = False) -> None:
    """Raise UnreadableSource unless the content is text in which ASCII takes one byte.

    Args:
        head: the first plain bytes, or all.
        complete: whether these are all.
        single_byte: whether each byte above 127 is a character, as in Latin-1.

    Raises:
        UnreadableSource: BINARY, ENCODING; OPEN_END if the whole source ends within a character.
    """
    refuse_nul(head)
    if single_byte or head.isascii() or _decodes(head, final=complete):
        return
    if complete and ends_within_character(head) and _decodes(head, final=False):
        end = head[-_SHOWN_END:]
        raise refused(QuarantineReason.OPEN_END, "it ends within a UTF-8 character", end)
    raise refused(QuarantineReason.ENCODING, "it is not UTF-8", head)


def refuse_nul(head: bytes) -> None:
    """Raise UnreadableSource (BINARY, or ENCODING for UTF-16) for a NUL byte, which no text has."""
    if b"\0" in head:
        raise _binary(head)


def require_line_end(end: bytes) -> None:
    """Raise UnreadableSource (OPEN_END) if a source ends between CR and LF."""
    if end.endswith(b"\r"):
        raise refused(QuarantineReason.OPEN_END, "it ends between CR and LF", end[-_SHOWN_END:])


def _binary(head: bytes) -> UnreadableSource:
    for mark, name in _WIDE_BOMS:
        if head.startswith(mark):
            remedy = "write it as UTF-8; no setting joins it"
            return refused(QuarantineReason.ENCODING, f"it is {name}", head, remedy)
    seen = f"it has a NUL byte at {head.index(0):,}, which no text has"
    return refused(QuarantineReason.BINARY, seen, head)


def is_utf8(content: bytes, *, complete: bool) -> bool:
    """Return whether bytes are UTF-8. Unless complete, they may end within a character."""
    return content.isascii() or _decodes(content, final=complete)


def _decodes(content: bytes, *, final: bool) -> bool:
    try:
        if len(content) <= _DECODED_PIECE:
            codecs.utf_8_decode(content, "strict", final)
            return True
        decoder = codecs.getincrementaldecoder("utf-8")()
        for piece in _pieces(content):
            decoder.decode(piece)
        decoder.decode(b"", final=final)
    except UnicodeDecodeError:
        return False
    return True


def ends_within_character(content: bytes) -> bool:
    """Return whether bytes, otherwise UTF-8, end between the bytes of a character."""
    tail = content[-_LONGEST_CHARACTER:]
    if not tail or tail[-1] < 0x80:
        return False
    # Bytes before the lead byte are not checked here.
    lead = next((at for at in range(len(tail) - 1, -1, -1) if tail[at] >= 0xC0), None)
    return (
        lead is not None
        and not _decodes(tail[lead:], final=True)
        and _decodes(tail[lead:], final=False)
    )


def ascii_of(head: bytes) -> bytes:
    """Replace each byte above 127 by ``?``."""
    return head if head.isascii() else head.translate(_ASCII_ONLY)


class PassingText:
    """Checks that a source is text, chunk by chunk.

    Args:
        single_byte: whether each byte above 127 is a character.
    """

    def __init__(self, *, single_byte: bool) -> None:
        self._single_byte = single_byte
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._end = b""

    def feed(self, chunk: bytes) -> None:
        """Check the next plain bytes.

        Raises:
            UnreadableSource: BINARY, ENCODING.
        """
        refuse_nul(chunk)
        self._end = (self._end + chunk)[-_SHOWN_END:]
        if self._single_byte or (chunk.isascii() and not self._decoder.getstate()[0]):
            return
        try:
            for piece in _pieces(chunk):
                self._decoder.decode(piece)
        except UnicodeDecodeError:
            seen = "it is not UTF-8 throughout"
            raise refused(QuarantineReason.ENCODING, seen, self._end) from None

    def finish(self) -> None:
        """Check the end of the source.

        Raises:
            UnreadableSource: OPEN_END.
        """
        if self._decoder.getstate()[0]:
            seen = "it ends within a UTF-8 character"
            raise refused(QuarantineReason.OPEN_END, seen, self._end)
        require_line_end(self._end)


def _pieces(chunk: bytes) -> Iterator[memoryview]:
    view = memoryview(chunk)
    return (view[at : at + _DECODED_PIECE] for at in range(0, len(chunk), _DECODED_PIECE))
