"""The description of a format: one :class:`FormatSpec` for each, in the format's own file.

It holds everything that differs between formats: how a source is recognised, framed and checked
while it is streamed, how an output is named, and what may be done with its sources.
``known_formats`` lists all of them, in the order in which they are tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from compactor.errors import UnreadableSource
from compactor.formats import characters
from compactor.formats.declaration import Declaration
from compactor.formats.framing import Framer
from compactor.model import Compression, Format, QuarantineReason, Signature

_SHORT_HEADER = 4 << 10


@dataclass(frozen=True, slots=True)
class Detected:
    """A source's format and, if the format has one, its header (no BOM, no last line end).

    Attributes:
        dialect: of CSV and TSV, see :class:`compactor.formats.columns.Begin`.
    """

    format: Format
    header: bytes = b""
    dialect: bytes = b""

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
        key: the source's key.
        complete: whether ``head`` is the whole source.
        declaration: what a person declared about it; None for nothing.
    """

    __slots__ = ("complete", "declaration", "head", "key")

    def __init__(
        self, head: bytes, key: str, declaration: Declaration | None, *, complete: bool
    ) -> None:
        self.head = head
        self.key = key
        self.declaration = declaration
        self.complete = complete

    def require_text(self, *, single_byte: bool = False) -> None:
        """Raise UnreadableSource (ENCODING, BINARY, OPEN_END) unless this is text."""
        characters.require_text(self.head, complete=self.complete, single_byte=single_byte)


class Watch(Protocol):
    """The checks of one format for a source that is too large for memory, while it is streamed."""

    def feed(self, chunk: bytes, before: bytes) -> None:
        """Check the next plain bytes; ``before`` is the end of the bytes so far.

        Raises:
            UnreadableSource: they do not fit the format of the first bytes.
        """
        ...

    def finish(self) -> None:
        """Check the end of the source.

        Raises:
            UnreadableSource: it does not fit the format of the first bytes; OPEN_END.
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
        recognise: returns the result for an undeclared source that is certainly of this format;
            None if it is not, and other formats are tried. Raises UnreadableSource for a source
            that must not be joined at all. None for a format that is only ever declared.
        begins: try this format only if this is the first byte that is not blank; empty to try it
            for any byte except ``{``, with which only JSON begins.
        declared: returns the result for a source that a person declares to be of this format, or
            raises UnreadableSource (MALFORMED) if it contradicts; by default the framer checks it
            if ``proven``, and else ``recognise``.
        lines: whether it is a document of records, which may be declared to be put on lines.
        proven: whether its framer, or the reader of its rows, validates each source to its end.
        newlines: whether each record ends a line of the output, so that newlines count records.
        watch: makes the checks for a streamed source from its header.
        rows: how its records become rows: as ``json``, ``csv`` or ``tsv``, or as lines of a known
            ``log``; ``parquet`` for sources that are rows already.
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
    watch: Callable[[bytes], Watch] | None = None
    rows: str = ""
    records: Callable[[], Framer] | None = None
    hint: str = ""
    named: str = ""
    whole: bool = False
    validated: bool = False


def malformed(detail: str) -> UnreadableSource:
    """Return the error for a source that violates its format."""
    return UnreadableSource(QuarantineReason.MALFORMED, detail)
