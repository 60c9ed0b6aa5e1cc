"""Replay: turns rejects of earlier entries into rows, if they fit the current columns."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from compactor.errors import IntegrityError
from compactor.log.columnar import Rejects
from compactor.log.manifest import ManifestRow
from compactor.log.rejects import Waiting, schema_digest
from compactor.log.slice_facts import SliceFacts
from compactor.outputs.pending import PendingOutput
from compactor.ports import ObjectStore
from compactor.rows.convert import Given, columns_for, new_sink, with_unknown
from compactor.rows.infer import Inferred
from compactor.rows.pin import known_schema
from compactor.rows.records import Block, Kind
from compactor.rows.rejects import RejectedRecords
from compactor.rows.schema import to_spark_json
from compactor.rows.sink import Origin, with_origin_columns


def replay(given: Given, waiting: Sequence[Waiting]) -> PendingOutput:
    """Convert the records that fit by now to rows; the others become rejects of this group.

    Args:
        given: a group whose sources are the rejects.
        waiting: the same rejects, with their log entries.

    Returns:
        The output; without one if still no record fits, in which case the rejects keep waiting.

    Raises:
        InvalidInput: the schema is invalid.
        IntegrityError: an object differs from its entry, or rows and rejects do not add up to its
            records.
        TransientStoreError: the store did not answer.
    """
    group, settings, store = given[:3]
    nothing = PendingOutput(group=group, output=None, rows=(), later=group.sources)
    if _is_rejected_by_the_same(given, waiting):
        return nothing
    blocks = [one for each in waiting for one in _blocks(each.rejects, store)]

    def infer(known: pa.Schema) -> pa.Schema:
        found = Inferred()
        for _, block in blocks:
            found.add(block)
        return found.columns(known)

    columns = columns_for(settings, store, infer)
    # Terminates: each iteration has more columns.
    while True:
        # With other reasons the rejects may become longer.
        rejects = RejectedRecords(settings, most_bytes=2 * group.size)
        output, sink = new_sink(columns, settings, rejects)
        with closing(output):
            for origin, block in blocks:
                sink.add(origin, block)
            sink.flush()
            grown = with_unknown(sink, columns, settings, store)
            if grown != columns:
                columns = grown
                continue
            if not output.rows:
                return nothing
            stored = output.store(
                group,
                store,
                given.destination,
                counted=sink.counted,
                rejects=rejects.store(group, store, given.destination),
            )
        manifest = tuple(
            ManifestRow(one.source, 0, 0, None, None, SliceFacts(one.rejects.records))
            for one in waiting
        )
        return PendingOutput(group=group, output=stored, rows=manifest, replays=True)


def _is_rejected_by_the_same(given: Given, waiting: Sequence[Waiting]) -> bool:
    """Return True if the columns are unchanged since all rejects were written, and cannot grow."""
    settings = given.settings
    known = known_schema(settings, given.store)
    if known is None or settings.schema_evolution == "add_columns":
        return False
    schema = with_origin_columns(known) if settings.upsert_key else known
    digest = schema_digest(to_spark_json(schema))
    return all(one.schema == digest for one in waiting)


def _blocks(rejects: Rejects, store: ObjectStore) -> Iterator[tuple[Origin, Block]]:
    """Yield a block for each record, with the record's position in its source."""
    body = store.get(rejects.bucket, rejects.key)
    lines: list[dict[str, Any]] = [json.loads(line) for line in body.splitlines()]
    if (len(body), zlib.crc32(body), len(lines)) != (rejects.size, rejects.crc32, rejects.records):
        raise IntegrityError(f"s3://{rejects.bucket}/{rejects.key} is not what its commit says")
    for one in lines:
        uri = one["source"]
        _, _, key = uri.removeprefix("s3://").partition("/")
        kind = Kind(one["kind"], tuple(one["header"]))
        record = one["record"].encode("utf-8", "surrogateescape")
        yield Origin(uri, key), Block(kind, one["position"], [record])
