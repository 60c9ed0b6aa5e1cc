"""Compact: reads one group of sources and stores one output, which is not readable yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from compactor.attributes import Attributes
from compactor.destination import Destination
from compactor.encoding.encoders import encoder
from compactor.encoding.output_encoding import as_learned
from compactor.errors import UnreadableSource
from compactor.formats import Detected, content_type, extension_for, framer_for
from compactor.log.manifest import Kept, ManifestRow, SliceFacts
from compactor.model import (
    Compression,
    ObjectGroup,
    Quarantined,
    QuarantineReason,
    Signature,
    SourceObject,
)
from compactor.outputs import plain_content as plain
from compactor.outputs.copies import copy_source
from compactor.outputs.detection import detector
from compactor.outputs.group_reading import (
    Denials,
    ReadingTime,
    in_time,
    require_not_encrypted,
)
from compactor.outputs.open_output import ManifestFull, OpenOutput
from compactor.outputs.output_writer import OutputWriter
from compactor.outputs.pending import PendingOutput, Tally
from compactor.outputs.plain_content import Plain, inflated
from compactor.ports import ObjectStore, SourceBody
from compactor.settings.settings import Settings


def compact(
    group: ObjectGroup,
    settings: Settings,
    store: ObjectStore,
    destination: Destination,
    time: ReadingTime | None = None,
) -> PendingOutput:
    """Store the output of a group as the parts of a multipart upload.

    The bytes depend only on the sources in it and the settings. A source whose content cannot be
    read is left out and reported. If this turns out only after some of its bytes were written, the
    group starts again without it.

    Args:
        group: the sources to read.
        settings: the run's settings.
        store: the store of sources and output.
        destination: where the output is stored.
        time: the time for reading. When it is over, the output is closed with the sources read,
            and the others are left to the next plan. None for no limit.

    Raises:
        SourceChanged: a source differs from its listing; nothing was stored.
        NothingReadable: this role can read none of many sources; nothing was stored.
        TransientStoreError: the store did not answer; nothing was stored.
    """
    if group.copy:
        return copy_source(group, settings, store, destination)
    left_out: dict[bytes, Quarantined] = {}
    inputs = _Inputs(group, settings, store, destination, time)
    # Terminates: each iteration leaves out another source.
    while True:
        attempt = _Pass(inputs, left_out)
        try:
            attempt.read()
            return attempt.finish()
        except _WrittenInVain as written:
            attempt.abort()
            left_out.update((unread.source.identity, unread) for unread in written.quarantined)
        except BaseException:
            attempt.abort()
            raise


class _WrittenInVain(Exception):
    """The output contains sources to be left alone, and must be written again without them."""

    def __init__(self, *quarantined: Quarantined) -> None:
        super().__init__(quarantined)
        self.quarantined = quarantined


class _Inputs(NamedTuple):
    """The input of one output."""

    group: ObjectGroup
    settings: Settings
    store: ObjectStore
    destination: Destination
    time: ReadingTime | None


class _LeftOut(NamedTuple):
    """Sources of a group that are not in its output."""

    quarantined: dict[bytes, Quarantined]
    misfits: dict[bytes, Signature]


class _Pass:
    """One pass over the sources of a group.

    Args:
        given: the group, and how it is read and stored.
        damaged: sources to leave out, by identity.
    """

    def __init__(self, inputs: _Inputs, damaged: Mapping[bytes, Quarantined]) -> None:
        self._inputs = inputs
        self._left = _LeftOut(dict(damaged), {})
        self._rows: list[ManifestRow] = []
        self._detect = detector(inputs.settings)
        # The detected format of the last source in the output; that of the next is usually equal.
        self._last_detected: Detected | None = None
        # Sources left to the next plan because time ran out.
        self._later: list[SourceObject] = []
        # By identity of the source, if it has any.
        self._attributes: dict[bytes, Attributes] = {}
        # Opened for the first source with content.
        self._output: OpenOutput | None = None

    def finish(self) -> PendingOutput:
        """Finish the output and return it with an account of every source."""
        output, left_out = self._output, self._left
        stored = output.finish() if output is not None else None
        attributes = self._attributes
        rows = [row._replace(attributes=attributes.get(row.source.identity)) for row in self._rows]
        return PendingOutput(
            group=self._inputs.group,
            output=stored,
            rows=tuple(rows),
            quarantined=tuple(left_out.quarantined.values()),
            misfits=left_out.misfits,
            later=tuple(self._later),
            tally=output.tally() if output is not None else Tally(),
        )

    def abort(self) -> None:
        if self._output is not None:
            self._output.abort()

    def read(self) -> None:
        """Read the sources into the output."""
        quarantined = self._left.quarantined
        sources = [s for s in self._inputs.group.sources if s.identity not in quarantined]
        inputs = self._inputs
        denials = Denials(sources, inputs.store)
        read_any = False
        bodies = inflated(inputs.store.read_sources(sources), inputs.settings)
        for body, plain_of in in_time(bodies, sources, inputs.time, self._later):
            try:
                self._place(body, plain_of)
                if not read_any:
                    read_any = True
                    denials.read()
            except UnreadableSource as error:
                denials.count(error)
                self._leave_unreadable(body.source, error)
            except ManifestFull:
                self._leave_rest(sources[sources.index(body.source) :])
                return

    def _place(self, body: SourceBody, plain_of: Plain) -> None:
        if body.error is not None:
            raise body.error
        source = body.source
        require_not_encrypted(body.attributes)
        if body.attributes is not None:
            self._attributes[source.identity] = body.attributes
        self._write(source, plain_of())

    def _leave_unreadable(self, source: SourceObject, error: UnreadableSource) -> None:
        quarantined = Quarantined(source, QuarantineReason(error.reason), error.detail)
        if self._output is not None and self._output.is_midway:
            raise _WrittenInVain(quarantined) from error
        self._left.quarantined[source.identity] = quarantined

    def _write(self, source: SourceObject, content: plain.PlainContent) -> None:
        """Detect a source's format, and write it if it belongs in this output."""
        detected = self._detect(content.head, source.key, content.complete)
        if detected is None:
            self._place_empty(source, content)
            return
        output = self._output
        if detected is not self._last_detected or output is None:
            output = self._output_for(detected, content.compression)
        elif content.compression is not output.signature.compression:
            output = None
        if output is None:
            self._pass_over(source, content, detected)
            return
        output.place(source, content, detected)

    def _output_for(self, detected: Detected, compression: Compression) -> OpenOutput | None:
        """Return the output, opening it if needed; None if the source belongs in another one."""
        signature = detected.signature(compression)
        output = self._output or self._open(signature)
        if signature is not output.signature and signature != output.signature:
            return None
        self._last_detected = detected
        return output

    def _place_empty(self, source: SourceObject, content: plain.PlainContent) -> None:
        """Place a source without content, or with only a byte order mark; it fits any output."""
        self._rows.append(content.row(source, SliceFacts(0, dropped_prefix=content.head)))

    def _pass_over(
        self, source: SourceObject, content: plain.PlainContent, detected: Detected
    ) -> None:
        """Leave a source to another output, recording its signature."""
        self._left.misfits[source.identity] = as_learned(detected.signature(content.compression))

    def _open(self, signature: Signature) -> OpenOutput:
        """Open the output for the first source with content, whose signature it takes."""
        group, settings, store, destination = self._inputs[:4]
        framer = framer_for(signature, lines=group.form.lines)
        compression = group.form.encoding_of(signature.compression)
        writer = OutputWriter(
            store,
            destination.bucket,
            destination.key(group, f".{extension_for(signature.format, compression)}"),
            encoder(compression),
            content_type=content_type(signature.format, compression),
            metadata=partial(destination.metadata, group),
            limits=settings.limits,
        )
        self._output = OpenOutput(
            signature,
            framer,
            writer,
            compression=compression,
            kept=Kept(settings.limits.kept_bytes),
            rows=self._rows,
            settings=settings,
        )
        return self._output

    def _leave_rest(self, sources: Sequence[SourceObject]) -> None:
        """Leave a source that does not fit, and those after it, to another output."""
        if self._output is None:
            return
        # The modified header separates them from sources they would be grouped with otherwise. That
        # they have this signature is a guess, and is corrected like any other.
        signature = self._output.signature
        learned = as_learned(replace(signature, header=signature.header + sources[0].identity))
        self._left.misfits.update((source.identity, learned) for source in sources)
