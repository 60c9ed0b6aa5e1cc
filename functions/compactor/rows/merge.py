"""Merge: rewrites the rows of many small Parquet objects into one large one."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa

from compactor.log.manifest import ManifestRow, SliceFacts
from compactor.model import SourceObject
from compactor.outputs.group_reading import in_time
from compactor.outputs.pending import PendingOutput
from compactor.rows.convert import Given
from compactor.rows.output import USUAL_CODEC, RowsOutput, codec_for
from compactor.rows.parquet_input import ParquetSources, UnreadableRows, open_sources
from compactor.rows.sink import with_origin_columns


def merge(given: Given) -> PendingOutput:
    """Read a group's Parquet sources, write their rows to one output, and store it.

    Sources that are not Parquet, whose rows cannot be read, or whose columns no output holds, are
    quarantined. If no type holds a column of two sources without loss, one of them is left to an
    output of its own.

    Raises:
        SourceChanged: a source differs from the listing.
        NothingReadable: this role can read none of many sources.
        IntegrityError: the rows read back are not those of the sources.
        TransientStoreError: the store did not answer.
    """
    sources = open_sources(given.group.sources, given.store)
    # Terminates: each iteration leaves out another source.
    while sources.schema.names:
        try:
            return _merged(given, sources)
        except UnreadableRows as error:
            # Some of its rows may be in the output already, so that is written again.
            sources = sources.without(sources.unreadable() or [error.quarantined])
    return PendingOutput(
        group=given.group,
        output=None,
        rows=(),
        quarantined=tuple(sources.quarantined),
        misfits=sources.misfits,
    )


def _merged(given: Given, sources: ParquetSources) -> PendingOutput:
    keyed = bool(given.settings.upsert_key)
    schema = with_origin_columns(sources.schema) if keyed else sources.schema
    codec = codec_for(given.settings.compression, sources.commonest_codec(USUAL_CODEC))
    rows: list[ManifestRow] = []
    later: list[SourceObject] = []
    every = [source for source, _ in sources.footers]
    with closing(RowsOutput(schema, codec)) as output:
        for body, footer in in_time(sources.bodies(), every, given.time, later):
            for batch in sources.rows_of(body, footer.reading, origins=keyed):
                output.append(pa.Table.from_batches([batch]))
            rows.append(ManifestRow(body.source, 0, 0, None, None, SliceFacts(footer.rows)))
        counted = sum(footer.rows for _, footer in sources.footers[: len(rows)])
        stored = output.store(given.group, given.store, given.destination, counted=counted)
    return PendingOutput(
        group=given.group,
        output=stored,
        rows=tuple(rows),
        quarantined=tuple(sources.quarantined),
        later=tuple(later),
        misfits=sources.misfits,
    )
