"""Infers the columns of a run's outputs from a sample of its sources, before the first group.

Groups are compacted concurrently. If each pinned the columns of its own records, the pin would
depend on which group came first, and would lack columns of other partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, chain, islice
from typing import TypeVar

import pyarrow as pa

from compactor.errors import InvalidInput, SourceChanged, UnreadableSource
from compactor.model import Partition, SourceObject
from compactor.outputs.detection import detector
from compactor.outputs.group_reading import require_not_encrypted
from compactor.outputs.plain_content import Plain, inflated
from compactor.planning.key_rules import KeyRules
from compactor.ports import ObjectStore, SourceBody
from compactor.rows.infer import Inferred
from compactor.rows.pin import given_schema, known_schema, pinned_schema
from compactor.rows.records import Block, blocks_of
from compactor.settings.settings import Settings
from compactor.sizes import MIB

_T = TypeVar("_T")


class NoRecords(Exception):
    """There is no record to infer columns from."""


#: Most sources in a sample: some of each partition, spread over its keys.
SAMPLE_SOURCES = 2_000
#: Most stored bytes of a sample.
SAMPLE_BYTES = 32 * MIB
#: Most bytes of its records, the same share of each source, from its beginning.
SAMPLE_PLAIN_BYTES = 64 * MIB
# Each costs a LIST.
_PARTITIONS = 500
_LISTED = 1_000


def pin_columns(
    settings: Settings,
    store: ObjectStore,
    partitions: Callable[[], Sequence[Partition]],
) -> None:
    """Pin the columns of a run's outputs, inferred from a sample of all partitions unless given.

    If none can be inferred, nothing is pinned, and each group reports why it has no columns.

    Args:
        settings: of the run.
        store: of sources and state.
        partitions: returns those of the run; called only for a sample.

    Raises:
        InvalidInput: the given schema is invalid, or no superset of the pinned one.
        TransientStoreError: the store does not answer.
    """
    if settings.parquet_schema is not None:
        pinned_schema(settings, store, lambda known: known)
        return
    if known_schema(settings, store) is not None:
        return
    sources = list(_within(_sample(partitions(), settings, store), SAMPLE_BYTES))
    with suppress(InvalidInput, NoRecords, SourceChanged):
        pinned_schema(settings, store, lambda known: infer_from(sources, known, settings, store))


def infer_from(
    sources: Sequence[SourceObject],
    known: pa.Schema,
    settings: Settings,
    store: ObjectStore,
) -> pa.Schema:
    """Return the known columns, followed by others of the records of some sources.

    Raises:
        NoRecords: no readable source has a record.
        SourceChanged: a source differs from its listing.
        TransientStoreError: the store does not answer.
    """
    found, blocks, is_empty = Inferred(), Blocks(settings), True
    share = SAMPLE_PLAIN_BYTES // max(1, len(sources))
    for body, plain_of in inflated(store.read_sources(sources), settings):
        left = share
        try:
            for block in blocks.of(body, plain_of):
                is_empty = False
                found.add(_first(block, left))
                left -= sum(map(len, block.records))
                if left <= 0:
                    break
        except UnreadableSource:
            continue
    if is_empty:
        raise NoRecords
    return found.columns(known)


def _first(block: Block, most_bytes: int) -> Block:
    """Return the first records of a block, up to this many bytes, at least one."""
    ends = accumulate(map(len, block.records))
    count = next((number for number, end in enumerate(ends, 1) if end >= most_bytes), None)
    return replace(block, records=block.records[:count])


class Blocks:
    """Splits the bodies of sources into records.

    Args:
        settings: of the run.

    Raises:
        InvalidInput: the given schema is invalid.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._detect = detector(settings)
        text = settings.parquet_schema
        self._columns = None if text is None else tuple(given_schema(text).names)

    def of(self, body: SourceBody, plain_of: Plain) -> Iterator[Block]:
        """Yield the records of a source.

        Raises:
            SourceChanged: the source differs from its listing.
            UnreadableSource: it is damaged, or has no named fields.
        """
        if body.error is not None:
            raise body.error
        require_not_encrypted(body.attributes)
        if body.source.size:
            yield from blocks_of(
                plain_of(), body.source.key, self._settings, self._detect, self._columns
            )


def spread(found: Sequence[_T], most: int) -> Sequence[_T]:
    """Return at most ``most`` elements, evenly spread."""
    return found[:: -(-len(found) // most)] if found else found


def _sample(
    partitions: Sequence[Partition], settings: Settings, store: ObjectStore
) -> Iterator[SourceObject]:
    """Yield sources spread over the keys of partitions that are spread over all of them."""
    chosen = spread(partitions, _PARTITIONS)
    share = max(1, SAMPLE_SOURCES // max(1, len(chosen)))
    reason_to_skip = KeyRules(settings)
    for partition in chosen:
        pages = store.list_objects(partition.bucket, partition.prefix)
        listed = islice(chain.from_iterable(pages), _LISTED)
        candidates = [
            one
            for one in listed
            if one.size and reason_to_skip(one) is None and not settings.merges(one.key)
        ]
        yield from spread(candidates, share)


def _within(sources: Iterable[SourceObject], most_bytes: int) -> Iterator[SourceObject]:
    """Yield sources until they have this many bytes; at least one."""
    size = 0
    for source in sources:
        if size and size + source.size > most_bytes:
            return
        size += source.size
        yield source
