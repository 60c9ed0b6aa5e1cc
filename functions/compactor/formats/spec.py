"""The description of a format: one :class:`FormatSpec` for each, in the format's own file.

It holds everything that differs between formats: how a source is recognised, framed, checked while
it is streamed and at its end, how an output is named, and what may be done with its sources.
``known_formats`` lists all of them, in the order in which they are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from compactor.errors import UnreadableSource
from compactor.formats import characters
from compactor.formats.characters import Reading
from compactor.formats.csv_evidence import Decision
from compactor.formats.framing import Framer
from compactor.model import Compression, Format, QuarantineReason, Signature

_SHORT_HEADER = 4 << 10

#: Returns the decision for the data set of a key and a shape: delimiter, number of columns.
Decide = Callable[[str, bytes, int], Decision]


@dataclass(frozen=True, slots=True)
class Detected:
    """A source's format and, if the format has one, its header (no BOM, no last line end).

    Attributes:
        dialect: of CSV and TSV, see :class:`compactor.formats.first_record.Begin`.
        compared: whether its first line is compared with those of other sources
            (``outputs.neighbours``).
    """

    format: Format
    header: bytes = b""
    dialect: bytes = b""
    compared: bool = field(default=False, compare=False)

    def signature(self, compression: Compression) -> Signature:
        """Return what two sources must have in common to share an output."""
        make = _signature if len(self.header) <= _SHORT_HEADER else Signature
        return make(self.format, compression, self.header, self.dialect)


@lru_cache(64)
def _signature(
    format: Format, compression: Compression, header: bytes, dialect: bytes
) -> Signature:
    # Cached: sources of one kind share a header, and comparing an object with itself is free.
    return Signature(format, compression, header, dialect)


class Look:
    """What is known of a source while its format is being detected.

    Attributes:
        head: the first plain bytes without a BOM: at least 64 KiB, or all there are.
        key: the source's key; only a hint.
        complete: whether ``head`` is the whole source.
        reading: which bytes the caller accepts as text.
        csv_header: the caller's setting for the first record of CSV and TSV.
        decide: decides from other sources of the data set, if the setting does not.
    """

    __slots__ = ("complete", "csv_header", "decide", "head", "key", "reading")

    def __init__(
        self,
        head: bytes,
        key: str,
        reading: Reading,
        csv_header: str,
        decide: Decide,
        *,
        complete: bool,
    ) -> None:
        self.head = head
        self.key = key
        self.reading = reading
        self.csv_header = csv_header
        self.decide = decide
        self.complete = complete

    def require_characters(self) -> None:
        """Raise UnreadableSource (ENCODING, BINARY, OPEN_END) for text that should be UTF-8."""
        if not self.head.isascii() and not self.reading.single_byte:
            characters.refuse_encoding(self.head, complete=self.complete)


class Watch(Protocol):
    """The checks of one format for a source that is too large for memory, while it is streamed.

    Attributes:
        any_encoding: whether the source's structure identifies it, so that it need not be UTF-8.
    """

    any_encoding: bool

    def feed(self, chunk: bytes, before: bytes) -> None:
        """Check the next plain bytes; ``before`` is the end of the bytes so far.

        Raises:
            UnreadableSource: they do not fit the format of the first bytes.
        """
        ...

    def finish(self, tail: bytes) -> None:
        """Check the last bytes of the source, 64 KiB or all.

        Raises:
            UnreadableSource: they do not fit the format of the first bytes; OPEN_END, OPEN_QUOTE.
        """
        ...


Recognise = Callable[[Look], Detected | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSpec:
    """The description of a format.

    Attributes:
        format: its name.
        extension: the extension of its outputs without that of a compression, such as ``json``.
        media_type: the media type of its outputs.
        framer: joins sources of one signature; the flag requests one record per line of the
            output, if ``lines``.
        recognise: returns the result for a source that is certainly of this format; None if it is
            not, and other formats are tried. Raises UnreadableSource for a source that must not be
            joined at all. None for a format that is only ever declared.
        begins: try this format only if this is the first byte that is not blank; empty to try it
            for any byte except ``{``, with which only JSON begins.
        declared: like ``recognise``, for a source that the caller declares to be of this format;
            by default such a source has no header.
        lines: whether it is a document of records, which the setting ``documents`` can put on
            lines.
        proven: whether its framer, or the reader of its rows, validates each source to its end.
        newlines: whether each record ends a line of the output, so that newlines count records.
        refuse_open: raises UnreadableSource if the end of a declared source is still open.
        watch: makes the checks for a streamed source from its first bytes (up to 64 KiB), its
            header, the reading, and whether the caller declared the format.
        rows: how Spark reads its records, ``json``, ``csv`` or ``tsv``; ``parquet`` for sources
            that are rows already; empty for records without named fields.
        records: a framer that puts one record on a line, for ``rows`` of sources that are not
            lines.
        hint, named: which sources to group before any is read: those where the last segment of the
            key, without a compression's extension, matches the pattern ``named``. ``hint`` names
            the group.
        whole: whether its documents are parsed whole, which is slower than lines.
        validated: whether another tool validates the sources themselves, so that clean-up warns.
    """

    format: Format
    extension: str
    media_type: str
    framer: Callable[[Signature, bool], Framer]
    recognise: Recognise | None = None
    begins: bytes = b""
    declared: Recognise | None = None
    lines: bool = False
    proven: bool = False
    newlines: bool = False
    refuse_open: Callable[[bytes], None] | None = None
    watch: Callable[[bytes, bytes, Reading, bool], Watch | None] | None = None
    rows: str = ""
    records: Callable[[], Framer] | None = None
    hint: str = ""
    named: str = ""
    whole: bool = False
    validated: bool = False


def malformed(detail: str) -> UnreadableSource:
    """Return the error for a source that violates its format."""
    return UnreadableSource(QuarantineReason.MALFORMED, detail)
