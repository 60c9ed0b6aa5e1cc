"""An output in progress: writes its sources, and records where each of them is."""

from __future__ import annotations

from compactor.formats import Detected
from compactor.formats.columns import Begin
from compactor.formats.framing import Framed, Framer, StreamFraming
from compactor.log.entries import Output
from compactor.log.manifest import Kept, ManifestRow, SliceFacts
from compactor.model import Compression, Format, Signature, SourceObject, TableDialect
from compactor.outputs import plain_content as plain
from compactor.outputs.detection import passing_check
from compactor.outputs.output_writer import OutputWriter
from compactor.outputs.pending import Tally
from compactor.settings.settings import Settings


class ManifestFull(Exception):
    """The manifest has no room for what restores this source; nothing of it was written."""


class OpenOutput:
    """One output in progress, from the first source with content to the last.

    Args:
        signature: the signature of every source in it.
        framer: joins the sources.
        writer: stores the output.
        compression: the output's compression.
        kept: what the manifest keeps to restore its sources.
        rows: the rows of its manifest; added to.
        settings: the run's settings.

    Attributes:
        signature: as given.
    """

    def __init__(
        self,
        signature: Signature,
        framer: Framer,
        writer: OutputWriter,
        *,
        compression: Compression,
        kept: Kept,
        rows: list[ManifestRow],
        settings: Settings,
    ) -> None:
        self.signature = signature
        self._compression = compression
        self._framer = framer
        self._writer = writer
        self._kept = kept
        self._rows = rows
        self._settings = settings
        self._begun = self._placed = False
        # Plain bytes written when the last source began, and when the last complete one ended.
        self._start = self._settled = 0
        self._frame_bytes = 0
        self._frame_newlines = 0

    @property
    def is_midway(self) -> bool:
        """True if anything was written since the last complete source."""
        return self._writer.plain_bytes != self._settled

    def place(self, source: SourceObject, content: plain.PlainContent, detected: Detected) -> None:
        """Write one source.

        Args:
            source: the source.
            content: its plain bytes.
            detected: what its first bytes showed.

        Raises:
            ManifestFull: there is no room for it; it must begin another output.
            UnreadableSource: its content does not match its head. Nothing of it was written, unless
                :attr:`is_midway` is true.
        """
        if content.complete:
            framed = self._framer.frame(content.head)
        else:
            stream = self._framer.stream()
            if stream is not None:
                self._begin()
                self._place_stream(source, content, detected, stream)
                return
            framed = self._framer.frame(content.whole(self._settings.limits.max_document_bytes))
        facts = self._kept.known(framed)
        if facts is None and not self._kept.has_room(framed):
            raise ManifestFull
        facts = facts or self._kept.take(framed)
        self._begin()
        if framed.separator:
            self._writer.write(framed.separator)
        self._place_slice(source, content, framed, facts)

    def finish(self) -> Output | None:
        """Store what is left and return the output; None, storing nothing, if it has no source."""
        if not self._placed:
            # It may have been begun for a source that was refused before any of it was written.
            self._writer.abort()
            return None
        self._write_frame(self._framer.closing())
        writer = self._writer
        upload_id, parts = writer.finish()
        return Output(
            bucket=writer.bucket,
            key=writer.key,
            upload_id=upload_id,
            parts=parts,
            size=writer.size,
            crc32=writer.crc32,
            plain_bytes=writer.plain_bytes,
            records=sum(row.facts.records for row in self._rows if row.facts is not None),
            format=self.signature.format,
            compression=self._compression,
            table=_dialect_of(self.signature),
        )

    def tally(self) -> Tally:
        """Return the counts of what was written; complete after :meth:`finish`."""
        writer = self._writer
        return Tally(writer.plain_bytes, writer.newlines, self._frame_bytes, self._frame_newlines)

    def abort(self) -> None:
        """Drop everything stored so far."""
        self._writer.abort()

    def _begin(self) -> None:
        """Write what precedes the next source."""
        if not self._begun:
            self._begun = True
            self._write_frame(self._framer.opening())
        self._start = self._writer.plain_bytes

    def _place_stream(
        self,
        source: SourceObject,
        content: plain.PlainContent,
        detected: Detected,
        stream: StreamFraming,
    ) -> None:
        check = passing_check(detected, source.key, self._settings)
        for chunk in content.chunks():
            check.feed(chunk)
            for piece in stream.feed(chunk):
                self._writer.write(piece)
        check.finish()
        framed = stream.finish()
        self._place_slice(source, content, framed, self._kept.take(framed))

    def _place_slice(
        self,
        source: SourceObject,
        content: plain.PlainContent,
        framed: Framed,
        facts: SliceFacts,
    ) -> None:
        """Write a slice, or the rest of it, and add its manifest row."""
        writer, separator, pieces = self._writer, framed.separator, framed.slice
        for piece in pieces:
            writer.write(piece)
        self._frame_bytes += len(separator)
        self._add_row(source, content, facts, self._start + len(separator))

    def _add_row(
        self, source: SourceObject, content: plain.PlainContent, facts: SliceFacts, offset: int
    ) -> None:
        """Add the manifest row of a slice that was written completely."""
        self._placed = True
        self._settled = end = self._writer.plain_bytes
        self._rows.append(
            ManifestRow(source, offset, end - offset, content.size, content.crc32, facts)
        )

    def _write_frame(self, data: bytes) -> None:
        self._writer.write(data)
        self._frame_bytes += len(data)
        self._frame_newlines += data.count(b"\n")


def _dialect_of(signature: Signature) -> TableDialect | None:
    """Return the dialect of CSV and TSV sources; None for other formats."""
    if signature.format not in (Format.CSV, Format.TSV):
        return None
    begin = Begin.of(signature)
    return TableDialect(
        begin.dialect.delimiter.decode(),
        header=bool(begin.header),
        quotes=begin.dialect.quotes,
        backslash=begin.dialect.backslash,
    )
