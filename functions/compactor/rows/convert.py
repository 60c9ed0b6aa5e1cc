"""Convert: turns JSON, CSV and TSV records into the rows of one Parquet output."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from compactor.destination import Destination
from compactor.errors import UnreadableSource
from compactor.log.manifest import ManifestRow, SliceFacts
from compactor.model import ObjectGroup, Quarantined, QuarantineReason, SourceObject
from compactor.outputs.group_reading import Denials, ReadingTime, in_time
from compactor.outputs.pending import PendingOutput
from compactor.outputs.plain_content import Plain, inflated
from compactor.ports import ObjectStore, SourceBody
from compactor.rows.dead_letters import DeadLetterRecords
from compactor.rows.output import RowsOutput, codec_for
from compactor.rows.pin import known_schema, pinned_schema
from compactor.rows.sample import SAMPLE_SOURCES, Blocks, NoRecords, infer_from, spread
from compactor.rows.sink import Origin, RowSink, with_origin_columns
from compactor.settings.settings import Settings


class Given(NamedTuple):
    """The input of one output.

    Attributes:
        time: for reading; None for no limit.
    """

    group: ObjectGroup
    settings: Settings
    store: ObjectStore
    destination: Destination
    time: ReadingTime | None


class WrittenInVain(Exception):
    """The output has rows of a source that turned out to be unreadable, and is written again."""

    def __init__(self, quarantined: Quarantined) -> None:
        super().__init__(quarantined)
        self.quarantined = quarantined


def convert(given: Given) -> PendingOutput:
    """Read a group's sources, convert their records to rows, and store these for publication.

    Every record becomes a row or a dead-letter record. Sources that are damaged, or of a format
    without named fields, are quarantined.

    Raises:
        InvalidInput: the schema is invalid, or no record fits it.
        SourceChanged: a source differs from the listing.
        NothingReadable: this role can read none of many sources.
        IntegrityError: rows and dead-letter records do not add up to the records of the sources.
        TransientStoreError: the store did not answer.
    """
    try:
        columns = _columns_of(given)
    except NoRecords:
        columns = pa.schema([])
    left_out: dict[bytes, Quarantined] = {}
    # Terminates: each iteration leaves out another source, or has more columns.
    while True:
        with closing(_Pass(given, columns, left_out)) as attempt:
            try:
                attempt.read()
            except WrittenInVain as written:
                left_out[written.quarantined.source.identity] = written.quarantined
                continue
            grown = _with_unknown(attempt.sink, columns, given)
            if grown != columns:
                columns = grown
                continue
            return attempt.finish()


def _columns_of(given: Given) -> pa.Schema:
    """Return the columns for records: declared, or pinned, or inferred and pinned now.

    Raises:
        InvalidInput: the schema is invalid, or none can be inferred.
        NoRecords: no columns are pinned, and the group has no record.
    """
    if given.settings.parquet_schema is None:
        known = known_schema(given.settings, given.store)
        if known is not None:
            return known
    return pinned_schema(given.settings, given.store, partial(_inferred, given))


def _with_unknown(sink: RowSink, columns: pa.Schema, given: Given) -> pa.Schema:
    """Return the columns, with those for new fields of the records if these may be added."""
    if not sink.has_unknown or given.settings.schema_evolution != "add_columns":
        return columns
    return pinned_schema(given.settings, given.store, sink.unknown.columns)


class _Pass:
    """One pass over the sources of a group.

    Args:
        given: the group, and how it is read and stored.
        columns: of the records.
        left_out: sources to leave out, by identity.
    """

    def __init__(
        self, given: Given, columns: pa.Schema, left_out: Mapping[bytes, Quarantined]
    ) -> None:
        self._given = given
        self._quarantined = dict(left_out)
        settings = given.settings
        keyed = bool(settings.upsert_key)
        schema = with_origin_columns(columns) if keyed else columns
        self._dead_letters = DeadLetterRecords(settings)
        self._output = RowsOutput(schema, codec_for(settings.compression))
        self.sink = RowSink(
            columns,
            self._output,
            self._dead_letters,
            origins=keyed,
            exact=settings.parquet_schema is None,
        )
        self._rows: list[ManifestRow] = []
        self._later: list[SourceObject] = []
        self._blocks = Blocks(given.settings)

    def read(self) -> None:
        """Convert the records of the sources.

        Raises:
            WrittenInVain: the output must be written again without a source.
        """
        given = self._given
        sources = [s for s in given.group.sources if s.identity not in self._quarantined]
        denials = Denials(sources, given.store)
        bodies = inflated(given.store.read_sources(sources), given.settings)
        for body, plain_of in in_time(bodies, sources, given.time, self._later):
            try:
                self._take(body, plain_of)
                denials.read()
            except UnreadableSource as error:
                denials.count(error)
                self._leave_out(body.source, error)
        self.sink.flush()

    def finish(self) -> PendingOutput:
        """Store the output, and return it with an account of every source."""
        given, output = self._given, None
        counted = self.sink.counted
        self._dead_letters.require_fewer_than(counted)
        if counted:
            output = self._output.store(
                given.group,
                given.store,
                given.destination,
                counted=counted,
                dead_letters=self._dead_letters.store(given.group, given.store, given.destination),
            )
        return PendingOutput(
            group=given.group,
            output=output,
            rows=tuple(self._rows),
            quarantined=tuple(self._quarantined.values()),
            later=tuple(self._later),
        )

    def close(self) -> None:
        """Remove what was written on this machine."""
        self._output.close()

    def _take(self, body: SourceBody, plain_of: Plain) -> None:
        source, records = body.source, 0
        origin = Origin.of(source)
        for block in self._blocks.of(body, plain_of):
            self.sink.add(origin, block)
            records = block.first + len(block.records)
        self._rows.append(ManifestRow(source, 0, 0, None, None, SliceFacts(records)))

    def _leave_out(self, source: SourceObject, error: UnreadableSource) -> None:
        left = Quarantined(source, QuarantineReason(error.reason), error.detail)
        if not self.sink.drop(Origin.of(source)):
            raise WrittenInVain(left) from error
        self._quarantined[source.identity] = left


def _inferred(given: Given, known: pa.Schema) -> pa.Schema:
    """Return the columns of a group's own records, for lack of a sample of the whole source.

    Raises:
        NoRecords: the group has none.
    """
    group, settings, store = given[:3]
    with suppress(NoRecords):
        sources = spread(group.sources, SAMPLE_SOURCES)
        return infer_from(sources, known, settings, store)
    return infer_from(group.sources, known, settings, store)
