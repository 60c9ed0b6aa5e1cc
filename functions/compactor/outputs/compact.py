"""Compact: read one group of sources and store one output that nobody can read yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compactor.codecs.codecs import encoder
from compactor.destination import Destination
from compactor.errors import CopyRefused, UnreadableSource
from compactor.formats import Detected, content_type, extension_for, framer_for
from compactor.formats.columns import ColumnsFramer
from compactor.formats.framing import Framer
from compactor.log.entries import Output
from compactor.log.manifest import ManifestRow
from compactor.log.slices import Kept, SliceFacts
from compactor.model import (
    Again,
    ObjectGroup,
    Quarantined,
    QuarantineReason,
    Signature,
    SourceObject,
)
from compactor.outputs import plain
from compactor.outputs.again import compared, compared_whole
from compactor.outputs.copies import copied_signature, copy_whole
from compactor.outputs.denied import Denials
from compactor.outputs.detection import detect_source, passing_check
from compactor.outputs.headers import HeaderCase
from compactor.outputs.pending import OutputWriter, PendingOutput, Tally
from compactor.outputs.twice import sample_for
from compactor.planning.packing import as_learned, output_choices, output_compression
from compactor.ports import ObjectStore, SourceBody
from compactor.second_reading import Frame, Sample
from compactor.settings.settings import Settings

# What one manifest may keep of its sources beside a row each. It is held as Python objects, and
# once more as JSON while the commit is written.
MAX_KEPT_BYTES = 32 << 20


def compact(
    group: ObjectGroup, settings: Settings, store: ObjectStore, destination: Destination
) -> PendingOutput:
    """Store the output of a group as multipart parts.

    The bytes depend on the group and the settings alone. A source whose content cannot be
    read is left out and reported; one whose damage shows only after some of its bytes went
    into the output makes the group start again without it.

    Raises:
        SourceChanged: a source is not what was listed; nothing is left behind.
        NothingReadable: this role may read none of many sources; likewise.
        TransientStoreError: likewise.
    """
    if group.copy:
        return _copy(group, settings, store, destination)
    left_out: dict[bytes, Quarantined] = {}
    copies = group.copies
    # Ends: each turn leaves out one source more, but for one that gives up copying.
    while True:
        attempt = _Attempt(group, settings, store, destination, left_out)
        attempt.copies = copies
        try:
            return attempt.run()
        except CopyRefused:
            # What may be read may be refused to a copy, by the rights to either bucket.
            attempt.abort()
            copies = False
        except _DamagedMidway as damaged:
            attempt.abort()
            left_out[damaged.quarantined.source.identity] = damaged.quarantined
        except BaseException:
            attempt.abort()
            raise


def _copy(
    group: ObjectGroup, settings: Settings, store: ObjectStore, destination: Destination
) -> PendingOutput:
    """The one source of a group as it is, unless it holds what was compacted before."""
    (source,) = group.sources
    try:
        again = compared_whole(group, settings, store)
    except UnreadableSource as error:
        # It may hold that, and nobody can tell: it is not copied either.
        left = Quarantined(source, QuarantineReason(error.reason), error.detail)
        return PendingOutput(group=group, output=None, rows=(), quarantined=(left,))
    if again is not None:
        return PendingOutput(group=group, output=None, rows=(), again=(again,))
    return copy_whole(group, store, destination)


class _DamagedMidway(Exception):
    def __init__(self, quarantined: Quarantined) -> None:
        super().__init__(quarantined)
        self.quarantined = quarantined


class _Attempt:
    """One pass over the sources of a group."""

    def __init__(
        self,
        group: ObjectGroup,
        settings: Settings,
        store: ObjectStore,
        destination: Destination,
        left_out: dict[bytes, Quarantined],
    ) -> None:
        self._group = group
        self._settings = settings
        self._store = store
        self._destination = destination
        self.copies = True
        self._quarantined = dict(left_out)
        self._signature: Signature | None = None
        self._framer: Framer | None = None
        self._writer: OutputWriter | None = None
        self._sample: Sample | None = None
        self._rows: list[ManifestRow] = []
        self._misfits: dict[bytes, Signature] = {}
        self._again: list[Again] = []
        self._kept = Kept()
        self._headers = HeaderCase()
        # The first source of which the manifest cannot keep what gives it back.
        self._overflow: SourceObject | None = None
        self._frame_bytes = 0
        self._frame_newlines = 0
        self._opened = False
        # A copied source, its place, and whether it ends with a newline: that matters once bytes
        # follow.
        self._unended: tuple[SourceObject, int, bool] | None = None

    def run(self) -> PendingOutput:
        sources = [s for s in self._group.sources if s.identity not in self._quarantined]
        denials = Denials(sources, self._store)
        for body in self._store.read_sources(sources):
            before = self._writer.plain_bytes if self._writer else 0
            try:
                self._place(body)
                denials.read()
            except UnreadableSource as error:
                denials.count(error)
                quarantined = Quarantined(body.source, QuarantineReason(error.reason), error.detail)
                if self._writer is not None and self._writer.plain_bytes != before:
                    raise _DamagedMidway(quarantined) from error
                self._quarantined[body.source.identity] = quarantined
            if self._overflow is not None:
                break
        self._leave_rest(sources)
        self._leave_unconfirmed()
        return PendingOutput(
            group=self._group,
            output=self._finish(),
            rows=tuple(self._rows),
            quarantined=tuple(self._quarantined.values()),
            misfits=self._misfits,
            again=tuple(self._again),
            tally=self._tally(),
            sample=self._sample,
        )

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()

    def _place(self, body: SourceBody) -> None:
        if body.error is not None:
            raise body.error
        source = body.source
        if self._copy_slice(source):
            return
        content = plain.read(body, self._settings)
        again, content = compared(body, content, self._group, self._settings, self._store)
        if again is not None:
            self._again.append(again)
            return
        found = self._detect(source, content)
        if found is None:
            self._end_copied()
            self._rows.append(content.row(source, SliceFacts(0, dropped_prefix=content.head)))
            return
        signature = found.signature(content.compression)
        if self._signature is None:
            self._open_output(signature, source)
        if signature is not self._signature and signature != self._signature:
            self._pass_over(source, content, found)
            return
        self._frame(source, content, body.content)
        if self._overflow is None:
            self._headers.place(source, found)

    def _detect(self, source: SourceObject, content: plain.PlainContent) -> Detected | None:
        try:
            return detect_source(
                content.head, source.key, self._settings, complete=content.complete
            )
        except UnreadableSource:
            self._headers.see(content.head)
            raise

    def _pass_over(
        self, source: SourceObject, content: plain.PlainContent, found: Detected
    ) -> None:
        """Leave a source to another output; what it holds may still speak against a header."""
        self._misfits[source.identity] = as_learned(found.signature(content.compression))
        self._headers.pass_over(source, found)
        self._headers.see(content.head)

    def _copy_slice(self, source: SourceObject) -> bool:
        """Let S3 copy a large source into the output where none of its bytes changes."""
        # Of what was compacted before, its bytes are to be compared.
        if not self.copies or source.identity in self._group.held:
            return False
        found = copied_signature(source, self._settings, self._store)
        if found is None:
            return False
        signature, ended = found
        if self._signature is None:
            self._open_output(signature, source)
        if signature != self._signature or self._writer is None:
            return False
        self._write_opening()
        self._end_copied()
        self._unended = (source, self._writer.plain_bytes, ended)
        self._writer.copy(source)
        if self._sample is not None:
            self._sample.pass_over()
        return True

    def _end_copied(self, *, last: bool = False) -> None:
        """Add the newline that a copied source lacks, unless it is the output's last."""
        if self._unended is None or self._writer is None:
            return
        (source, offset, ended), self._unended = self._unended, None
        appended = 0 if last else int(not ended)
        self._writer.write(b"\n" * appended)
        facts = SliceFacts(None, appended=appended)
        length = source.size + appended
        self._rows.append(ManifestRow(source, offset, length, source.size, None, facts))

    def _open_output(self, signature: Signature, source: SourceObject) -> None:
        settings = self._settings
        compression = output_compression(settings, signature.compression)
        extension = extension_for(signature.format, compression)
        key = self._destination.key(self._group, f".{extension}")
        self._signature = signature
        self._framer = framer_for(signature, **output_choices(settings))
        if isinstance(self._framer, ColumnsFramer):
            self._headers.framer = self._framer
        frame = Frame(self._framer.opening(), self._framer.closing())
        self._sample = sample_for(frame, settings)
        self._writer = OutputWriter(
            self._store,
            self._destination.bucket,
            key,
            encoder(compression),
            content_type=content_type(signature.format, compression),
            metadata=self._destination.metadata(self._group),
        )

    def _frame(self, source: SourceObject, content: plain.PlainContent, raw: bytes | None) -> None:
        if self._framer is None or self._writer is None or self._signature is None:
            raise AssertionError("a source is framed before its output was opened")
        streaming = None if content.complete else self._framer.stream()
        if streaming is None:
            framed = self._framer.frame(content.whole(self._settings.max_document_bytes))
            if self._kept.bytes and self._kept.bytes + self._kept.cost(framed) > MAX_KEPT_BYTES:
                self._overflow = source
                return
            self._write_opening()
            self._end_copied()
            start = self._writer.plain_bytes
            self._writer.write(framed.separator)
        else:
            self._write_opening()
            self._end_copied()
            start = self._writer.plain_bytes
            check = passing_check(self._signature, self._settings)
            for chunk in content.chunks():
                check.feed(chunk)
                for piece in streaming.feed(chunk):
                    self._writer.write(piece)
            check.finish()
            framed = streaming.finish()
        for piece in framed.slice:
            self._writer.write(piece)
        offset = start + len(framed.separator)
        length = self._writer.plain_bytes - offset
        self._frame_bytes += len(framed.separator)
        self._rows.append(content.row(source, self._kept.take(framed), offset, length))
        if self._sample is not None:
            whole = raw if streaming is None else None
            self._sample.place(source.key, source.identity, whole, framed.separator, framed.slice)

    def _leave_rest(self, sources: Sequence[SourceObject]) -> None:
        """Let the source that overflows begin another output, and those behind it follow."""
        if self._overflow is None or self._signature is None:
            return
        # Told apart from what they will be together with otherwise; that they are of this very
        # signature is a guess, and corrected like any other.
        header = self._signature.header + self._overflow.identity
        learned = as_learned(replace(self._signature, header=header))
        for source in sources[sources.index(self._overflow) :]:
            self._misfits[source.identity] = learned

    def _leave_unconfirmed(self) -> None:
        """Leave the sources alone of which it is not certain whether they have a header."""
        left = {one.source.identity: one for one in self._headers.left_alone()}
        self._quarantined.update(left)
        for identity in left:
            self._misfits.pop(identity, None)
        rows = [row for row in self._rows if row.source.identity not in left]
        if len(rows) < len(self._rows) and not any(row.length for row in rows):
            self.abort()
            self._writer = None
            # What is not written is not read a second time.
            self._sample = None
        self._rows = rows

    def _write_opening(self) -> None:
        if not self._opened and self._framer is not None:
            self._opened = True
            self._write_frame(self._framer.opening())

    def _write_frame(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.write(data)
            self._frame_bytes += len(data)
            self._frame_newlines += data.count(b"\n")

    def _finish(self) -> Output | None:
        if self._writer is None or self._framer is None or self._signature is None:
            return None
        if not self._opened:
            self._writer.abort()
            return None
        self._end_copied(last=True)
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
            records=sum(row.facts.records or 0 for row in self._rows if row.facts is not None),
            format=self._signature.format,
            compression=output_compression(self._settings, self._signature.compression),
        )

    def _tally(self) -> Tally:
        writer = self._writer
        if writer is None:
            return Tally()
        return Tally(writer.plain_bytes, writer.newlines, self._frame_bytes, self._frame_newlines)
