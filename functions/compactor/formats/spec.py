"""What the project knows of a format: one :class:`FormatSpec` for each, in the format's own file.

Everything that differs between formats is asked of it: how a source is recognised, framed, watched
while it passes and checked at its end, what an output is called, and what may be done with its
sources. ``known_formats`` has all of them, in the order in which they are tried.
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

#: What is decided for the data set of a key, and a shape: delimiter, number of columns.
Decide = Callable[[str, bytes, int], Decision]


@dataclass(frozen=True, slots=True)
class Detected:
    """A source's format and, where the format has one, its header (no BOM, no last line end).

    Attributes:
        dialect: of CSV and TSV, see :class:`compactor.formats.first_record.Begin`.
        compared: its first line is held against those of other sources (``outputs.neighbours``).
    """

    format: Format
    header: bytes = b""
    dialect: bytes = b""
    compared: bool = field(default=False, compare=False)

    def signature(self, compression: Compression) -> Signature:
        """What must be equal for two sources to share an output."""
        make = _signature if len(self.header) <= _SHORT_HEADER else Signature
        return make(self.format, compression, self.header, self.dialect)


@lru_cache(64)
def _signature(
    format: Format, compression: Compression, header: bytes, dialect: bytes
) -> Signature:
    # Sources of one kind have one header; to compare it with itself costs nothing.
    return Signature(format, compression, header, dialect)


class Look:
    """What is known of a source while its format is looked for.

    Attributes:
        head: first plain bytes without a BOM, 64 KiB or more of them, or all there are.
        key: of the source; a hint only.
        complete: ``head`` is the whole source.
        reading: what the caller takes for characters.
        csv_header: what the caller says of the first record of CSV and TSV.
        decide: what the sources of the same data set say of it, where the caller does not.
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
        """Raise UnreadableSource (ENCODING, BINARY, OPEN_END) for what is not UTF-8 and should."""
        if not self.head.isascii() and not self.reading.single_byte:
            characters.refuse_encoding(self.head, complete=self.complete)


class Watch(Protocol):
    """What one format asks of a source too large for memory while it passes.

    Attributes:
        any_encoding: its structure shows what it is, so that it need not be UTF-8.
    """

    any_encoding: bool

    def feed(self, chunk: bytes, before: bytes) -> None:
        """Look at the next plain bytes; ``before`` is the end of those that passed.

        Raises:
            UnreadableSource: they are not of the format that the first ones showed.
        """
        ...

    def finish(self, tail: bytes) -> None:
        """Look at the last bytes, 64 KiB or all.

        Raises:
            UnreadableSource: likewise; OPEN_END, OPEN_QUOTE.
        """
        ...


Recognise = Callable[[Look], Detected | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSpec:
    """All that is known of a format.

    Attributes:
        format: its name.
        extension: the end of its outputs' names before that of a compression, such as ``json``.
        media_type: of its outputs.
        framer: joins sources of one signature; the flag asks for a record on each line of the
            output, where ``lines``.
        recognise: what a source is when it is certain to be of this format; None when it is not,
            and others are tried. May raise UnreadableSource for what none may join. None for a
            format that is only ever declared.
        begins: the first byte that is no blank, without which it is not asked; empty for any but
            ``{``, with which JSON alone begins.
        declared: the same for a source that the caller says is of this format; by default it has
            no header.
        lines: it is a document of records, which the setting ``documents`` can put on lines.
        proven: its framer, or the reader of its rows, proves each source to its end.
        newlines: each of its records ends an output's line, so that newlines count records.
        refuse_open: raises UnreadableSource for the end of a declared source that is still open.
        watch: what is asked while a source passes, by its first bytes (up to 64 KiB), its header,
            the reading, and whether the caller declared the format.
        copied: S3 may copy a large source among others, byte for byte.
        rows: how Spark reads its records, ``json``, ``csv`` or ``tsv``; ``parquet`` for what are
            rows already; empty where they have no named fields.
        records: a framer that puts one record on a line, for ``rows`` of what is not lines.
        hint, named: which sources are tried together before any was read: those whose name's last
            segment, without a compression's end, matches the pattern ``named``, under this word.
        whole: its documents are parsed whole, which takes a worker longer than lines do.
        validated: a tool of others wants the sources themselves: clean-up warns.
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
    copied: bool = False
    rows: str = ""
    records: Callable[[], Framer] | None = None
    hint: str = ""
    named: str = ""
    whole: bool = False
    validated: bool = False


def malformed(detail: str) -> UnreadableSource:
    """The error for a source that its format does not allow."""
    return UnreadableSource(QuarantineReason.MALFORMED, detail)
