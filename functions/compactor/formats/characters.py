"""Decides whether bytes are text: no known magic, few control characters, valid UTF-8.

Bytes that pass may still be any kind of text; the formats decide which.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable

import msgspec

from compactor.errors import UnreadableSource
from compactor.formats.refusal import refused
from compactor.model import QuarantineReason

KEEP_NULS = 'set encoding: "any_bytes" to read it as text'
_SAMPLE_BYTES = 4096
# How much is examined for control characters, at the start and at the end.
_START_BYTES = 1024
_END_BYTES = 512
# Largest share of bytes that are neither printable nor tab, LF, FF, CR or ESC (colours).
_MOST_CONTROLS = 1 / 100
_CONTROLS = bytes({*range(9), 11, *range(14, 27), *range(28, 32), 127})
# Leaves text unchanged. Comparing is faster than removing the control characters.
_MARKED = bytes(0xFF if byte in _CONTROLS else byte for byte in range(256))
_WIDE_BOMS = (
    (b"\xff\xfe\0\0", "UTF-32"),
    (b"\0\0\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_WIDE_STARTS = frozenset(mark[:1] for mark, _ in _WIDE_BOMS)
# Text in another encoding is mostly ASCII, binary content is not.
_LEAST_ASCII = 1 / 2
_DECODED_PIECE = 1 << 20
_LONGEST_CHARACTER = 4
_ABOVE_ASCII = bytes(range(128, 256))
_MOST_NULS = 1 / 10
_EMPTY_SHARE = 2 / 3
_EMPTY_OF_UTF32 = 3
_ASCII_ONLY = bytes(range(128)) + b"?" * 128

# Signatures are from the specifications of the formats and from file(1)'s magic.
_MAGIC = (
    ("Parquet", rb"PAR[1E][^\x20-\x7e\t\r\n]"),
    ("ORC", rb"ORC[^\x20-\x7e\t\r\n]"),
    ("Avro", rb"Obj\x01"),
    ("Arrow", rb"ARROW1|\xff\xff\xff\xff..\x00\x00|FEA1"),
    ("a Hadoop sequence file", rb"SEQ[\x00-\x06]"),
    ("a zip archive", rb"PK(?:\x03\x04|\x05\x06|\x07\x08)"),
    ("a 7z archive", rb"7z\xbc\xaf\x27\x1c"),
    ("a RAR archive", rb"Rar!\x1a"),
    ("bzip2", rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38)"),
    ("xz", rb"\xfd7zXZ\x00"),
    ("lzma", rb"\x5d\x00\x00[\x00-\x80]"),
    ("lz4", rb"\x04\x22\x4d\x18|\x02\x21\x4c\x18"),
    ("snappy", rb"\xff\x06\x00\x00sNaPpY|\x82SNAPPY"),
    ("gzip within its compression", rb"\x1f\x8b"),
    ("zstd within its compression", rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
    ("compress (.Z)", rb"\x1f[\x9d\xa0]"),
    ("an ELF program", rb"\x7fELF"),
    ("a Windows program", rb"MZ[\x90\x00]"),
    ("a Java class", rb"\xca\xfe\xba\xbe"),
    ("a Mach-O program", rb"\xfe\xed\xfa[\xce\xcf]|[\xce\xcf]\xfa\xed\xfe"),
    ("WebAssembly", rb"\x00asm"),
    ("SQLite", rb"SQLite format 3\x00"),
    ("a PNG image", rb"\x89PNG"),
    ("a JPEG image", rb"\xff\xd8\xff"),
    ("a GIF image", rb"GIF8[79]a"),
    ("a RIFF file", rb"RIFF....(?:WEBP|WAVE|AVI )"),
    ("a TIFF image", rb"II\x2a\x00|MM\x00\x2a"),
    ("a bitmap", rb"BM....\x00\x00\x00\x00"),
    ("an icon", rb"\x00\x00[\x01\x02]\x00"),
    ("a Photoshop image", rb"8BPS"),
    ("an audio or video file", rb"ID3[\x02-\x04]|OggS\x00|fLaC|\x1a\x45\xdf\xa3|....ftyp"),
    ("PDF", rb"%PDF-"),
    ("PostScript", rb"%!PS"),
    ("RTF", rb"\{\\rtf"),
    ("a packet capture", rb"\xd4\xc3\xb2\xa1|\xa1\xb2[\xc3\x3c][\xd4\x4d]|M<\xb2\xa1|\n\r\r\n"),
    ("HDF5", rb"\x89HDF"),
    ("NumPy", rb"\x93NUMPY"),
    ("a pickle", rb"\x80[\x02-\x05]"),
    ("CBOR", rb"\xd9\xd9\xf7"),
    ("an Ion stream", rb"\xe0\x01\x00\xea"),
    ("an OLE document", rb"\xd0\xcf\x11\xe0"),
    ("a cpio or rpm package", rb"\xed\xab\xee\xdb|0707(?:01|02|07)\d{6}"),
    ("an ar archive", rb"!<arch>\n"),
    ("a Windows event log", rb"ElfFile\x00"),
    ("a systemd journal", rb"LPKSHHRH"),
)  # fmt: skip
# Without groups, which would be slower: most sources match none.
_ANY_MAGIC = re.compile(b"|".join(pattern for _, pattern in _MAGIC), re.DOTALL)
_TAR = slice(257, 262)
# No magic begins with these, and most logs do. Trying every magic takes 4 microseconds.
_NO_MAGIC = frozenset(b"1234569<abcdeghijklmnopqrstuvwxyz")
_ANY_SIZE = slice(4, 8)


class Reading(msgspec.Struct, frozen=True):
    """How to read bytes that are not plain UTF-8 text.

    Attributes:
        single_byte: whether each byte above 127 is a character, as in Latin-1.
        keep_nuls: whether NUL is an ordinary character.
    """

    single_byte: bool = False
    keep_nuls: bool = False


def refuse_binary(head: bytes, *, keep_nuls: bool) -> None:
    """Raise UnreadableSource unless the content is text in which ASCII takes one byte.

    Args:
        head: the first plain bytes, or all.
        keep_nuls: whether NUL is an ordinary character.

    Raises:
        UnreadableSource: BINARY, or ENCODING for UTF-16 and UTF-32.
    """
    if head[0] not in _NO_MAGIC or head[_ANY_SIZE] == b"ftyp":
        refuse_wide(head)
        _refuse_magic(head)
    if head[_TAR] == b"ustar":
        raise refused(QuarantineReason.BINARY, "it is a tar archive", head, "")
    if b"\0" in head:
        _refuse_nuls(head, keep_nuls=keep_nuls)
    sample = head if len(head) <= _START_BYTES else head[:_START_BYTES] + head[-_END_BYTES:]
    if sample.translate(_MARKED) != sample:
        _refuse_controls(head[:_START_BYTES], head, keep_nuls=keep_nuls)
        if len(head) > _START_BYTES:
            _refuse_controls(head[-_END_BYTES:], head, keep_nuls=keep_nuls)


def _refuse_magic(head: bytes) -> None:
    if _ANY_MAGIC.match(head):
        name = next(name for name, pattern in _MAGIC if re.match(pattern, head, re.DOTALL))
        raise refused(QuarantineReason.BINARY, f"it is {name}", head, "")


def refuse_wide(head: bytes) -> None:
    """Raise UnreadableSource (ENCODING) for UTF-16 and UTF-32 with a byte order mark."""
    if head[:1] not in _WIDE_STARTS:
        return
    for mark, name in _WIDE_BOMS:
        if head.startswith(mark):
            raise _wide(name, head)


def _wide(name: str, head: bytes) -> UnreadableSource:
    remedy = "write it as UTF-8; no setting joins it"
    return refused(QuarantineReason.ENCODING, f"it is {name}", head, remedy)


def _refuse_nuls(head: bytes, *, keep_nuls: bool) -> None:
    name = _wide_by_nuls(head[:_SAMPLE_BYTES])
    if name:
        raise _wide(f"{name} without a byte order mark", head)
    if keep_nuls:
        return
    nuls = head.count(0)
    seen = f"it has {nuls:,} NUL byte{'s' if nuls > 1 else ''}, the first at {head.index(0):,}"
    # A log that was cut off by a crash has few NULs; formats with length fields have many.
    remedy = KEEP_NULS if nuls <= _MOST_NULS * len(head) else ""
    raise refused(QuarantineReason.BINARY, seen, head, remedy)


def _wide_by_nuls(sample: bytes) -> str:
    """Return UTF-32 or UTF-16 if just the bytes that are NUL in ASCII text are; otherwise empty."""
    nuls = [sample[at::4].count(0) for at in range(4)]
    quarter = len(sample) / 4
    if sum(count >= _EMPTY_SHARE * quarter for count in nuls) == _EMPTY_OF_UTF32:
        return "UTF-32"
    low, high = sorted((nuls[0] + nuls[2], nuls[1] + nuls[3]))
    return "UTF-16" if high >= _EMPTY_SHARE * 2 * quarter and low <= quarter / 4 else ""


def _refuse_controls(sample: bytes, head: bytes, *, keep_nuls: bool) -> None:
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    if keep_nuls:
        controls -= sample.count(0)
    if controls > _MOST_CONTROLS * len(sample):
        seen = f"{controls:,} of {len(sample):,} bytes are control characters"
        raise refused(QuarantineReason.BINARY, seen, head, "")


def is_utf8(content: bytes, *, complete: bool) -> bool:
    """Return whether bytes are UTF-8. Unless complete, they may end within a character."""
    return content.isascii() or _decodes(content, final=complete)


def _decodes(content: bytes, *, final: bool) -> bool:
    try:
        if len(content) <= _DECODED_PIECE:
            codecs.utf_8_decode(content, "strict", final)
            return True
        decoder = codecs.getincrementaldecoder("utf-8")()
        view = memoryview(content)
        for at in range(0, len(content), _DECODED_PIECE):
            decoder.decode(view[at : at + _DECODED_PIECE])
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


def refuse_encoding(head: bytes, *, complete: bool) -> None:
    """Raise UnreadableSource for bytes that are not UTF-8.

    Raises:
        UnreadableSource: OPEN_END if the whole source ends within a character; BINARY if most
            bytes are not ASCII, or the first cannot begin a character; otherwise ENCODING.
    """
    # Callers have mostly ruled out ASCII already.
    if _decodes(head, final=complete):
        return
    if complete and ends_within_character(head) and is_utf8(head, complete=False):
        raise refused(QuarantineReason.OPEN_END, "it ends within a UTF-8 character", head)
    sample = head[:_SAMPLE_BYTES]
    most = len(sample.translate(None, _ABOVE_ASCII)) >= _LEAST_ASCII * len(sample)
    if 0x80 <= head[0] < 0xC0 or not most:
        raise refused(QuarantineReason.BINARY, "it is neither UTF-8 nor mostly ASCII", head, "")
    raise refused(QuarantineReason.ENCODING, "it is not UTF-8", head)


def ascii_of(head: bytes, *, keep_nuls: bool) -> bytes:
    """Replace each byte above 127 by ``?`` and, if ``keep_nuls``, each NUL by a blank."""
    plain = head if head.isascii() else head.translate(_ASCII_ONLY)
    return plain.replace(b"\0", b" ") if keep_nuls else plain


class PassingCharacters:
    """Checks that a source is UTF-8, chunk by chunk."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; return whether everything so far can be UTF-8."""
        if chunk.isascii() and not self._decoder.getstate()[0]:
            return True
        try:
            for piece in _pieces(chunk):
                self._decoder.decode(piece)
        except UnicodeDecodeError:
            return False
        return True


def _pieces(chunk: bytes) -> Iterable[memoryview]:
    view = memoryview(chunk)
    return (view[at : at + _DECODED_PIECE] for at in range(0, len(chunk), _DECODED_PIECE))
