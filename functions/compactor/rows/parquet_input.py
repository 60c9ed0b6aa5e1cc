"""Reads the Parquet sources of a group: footers first, then rows in bounded batches.

Small sources are read once and kept until their rows are needed, within a budget. Of the others
the footer is read by ranges, and the rest when their turn comes.
"""

from __future__ import annotations

import gc
import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.encoding.parquet_file import DAMAGES, ReadRange, first_line, open_parquet
from compactor.errors import UnreadableSource
from compactor.model import (
    Compression,
    Format,
    Quarantined,
    QuarantineReason,
    Signature,
    SourceObject,
)
from compactor.outputs.group_reading import Denials
from compactor.ports import ObjectStore, SourceBody
from compactor.rows.batch_sizes import BATCH_BYTES, Reading, plan_reading
from compactor.rows.conform import conformed_batch, decoded_bytes
from compactor.rows.parquet_types import columns_of
from compactor.rows.schema import SchemaClash, merged, to_spark_json
from compactor.rows.sink import with_origin_columns
from compactor.sizes import MIB

#: Sources kept in memory between the two readings, in total.
KEPT_BYTES = 64 * MIB
#: A larger source passes through a temporary file.
IN_MEMORY_BYTES = 16 * MIB
_CONCURRENT_FOOTERS = 32
# The metadata of a file and its schema refer to each other: only a collection frees their memory.
_COLLECTED_TOGETHER = 128


@dataclass(frozen=True, slots=True)
class Footer:
    """What is needed of the footer of one source.

    Attributes:
        rows: in all row groups.
        columns: of the source, the same object for sources with the same columns.
        reading: how it is read.
    """

    rows: int
    columns: pa.Schema
    reading: Reading


# Of an object without bytes, which has no rows.
_EMPTY = Footer(0, pa.schema([]), Reading((), (), 0, ""))


@dataclass(slots=True)
class ParquetSources:
    """The sources of one group, whose footers were read.

    Attributes:
        store: holds the sources.
        footers: of each readable source, in the given order.
        quarantined: sources that are not complete Parquet objects, or have columns that outputs
            cannot hold.
        misfits: signatures of the sources with a column that clashes with one of most sources, by
            identity. They belong in an output of their own.
        schema: the safe superset of the columns of the other readable sources.
        kept: content of the sources that are read only once, by key.
    """

    store: ObjectStore
    footers: list[tuple[SourceObject, Footer]] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    misfits: dict[bytes, Signature] = field(default_factory=dict)
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    kept: dict[str, bytes] = field(default_factory=dict, repr=False)

    def commonest_codec(self, otherwise: str) -> str:
        """Return the codec that most sources have; ``otherwise`` if no source has row groups."""
        codecs = (footer.reading.codec for _, footer in self.footers)
        found = Counter(codec for codec in codecs if codec)
        return max(sorted(found), key=found.__getitem__) if found else otherwise

    def bodies(self) -> Iterator[tuple[SourceBody, Footer]]:
        """Yield each source's content and footer, in order."""
        unkept = [source for source, _ in self.footers if source.key not in self.kept]
        others = self.store.read_sources(unkept)
        for source, footer in self.footers:
            kept = self.kept.get(source.key)
            body = SourceBody(source, kept) if kept is not None else next(iter(others))
            yield body, footer

    def rows_of(
        self, body: SourceBody, reading: Reading, *, origins: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one source in order, with the columns of the superset.

        A batch has about 32 MiB at most, unless a single row has more.

        Args:
            body: of the source.
            reading: how it is read.
            origins: whether each row also gets the columns for its origin.

        Raises:
            SourceChanged: the source differs from the listing.
            UnreadableRows: its rows cannot be read to the end.
            InvalidInput: a column has the name of one for origins.
        """
        schema = with_origin_columns(self.schema) if origins else self.schema
        key, position = pa.scalar(body.source.key, pa.string()), 0
        for batch in _batches(body, reading, self.schema) if reading.batch_rows else ():
            rows = batch.num_rows
            own = (pa.repeat(key, rows), pa.arange(position, position + rows)) if origins else ()
            yield pa.RecordBatch.from_arrays([*batch.columns, *own], schema=schema)
            position += rows

    def unreadable(self) -> list[Quarantined]:
        """Read all rows, and return the sources for which that fails."""
        found = []
        for body, footer in self.bodies():
            try:
                for _ in self.rows_of(body, footer.reading):
                    pass
            except UnreadableRows as error:
                found.append(error.quarantined)
        return found

    def without(self, quarantined: Sequence[Quarantined]) -> ParquetSources:
        """Return the same sources, of which these are quarantined, too."""
        left_out = {one.source.key for one in quarantined}
        footers = [one for one in self.footers if one[0].key not in left_out]
        every = [*self.quarantined, *quarantined]
        schema = _superset(footers)
        return replace(self, footers=footers, quarantined=every, schema=schema)


class UnreadableRows(UnreadableSource):
    """The footer of a source is valid, and its rows cannot be read.

    Attributes:
        quarantined: the source and the reason.
    """

    def __init__(self, source: SourceObject, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.quarantined = Quarantined(source, QuarantineReason(reason), detail)


def open_sources(sources: Sequence[SourceObject], store: ObjectStore) -> ParquetSources:
    """Read the footers of a group's sources.

    Raises:
        SourceChanged: a source differs from the listing.
        NothingReadable: this role can read none of many sources.
    """
    found = ParquetSources(store)
    opening = _Opening(found, Denials(sources, store))
    kept = _first_within(sources, KEPT_BYTES)
    for body in store.read_sources(sources[:kept]):
        opening.add_body(body)
    with ThreadPoolExecutor(_CONCURRENT_FOOTERS, thread_name_prefix="footer") as pool:
        files = pool.map(partial(_opened_at, store), sources[kept:])
        for source, file in zip(sources[kept:], files, strict=True):
            opening.add(source, file)
    alike = _alike(found.footers)
    for source, footer in found.footers:
        if id(footer.columns) not in alike:
            found.misfits[source.identity] = _signature(footer.columns)
            found.kept.pop(source.key, None)
    found.footers = [one for one in found.footers if id(one[1].columns) in alike]
    found.schema = _superset(found.footers)
    return found


def _first_within(sources: Sequence[SourceObject], budget: int) -> int:
    """Return how many of the first sources have no more than a budget together."""
    total = 0
    for number, source in enumerate(sources):
        total += source.size
        if total > budget:
            return number
    return len(sources)


_Opened: TypeAlias = pq.ParquetFile | UnreadableSource


class _Opening:
    """Adds sources, in order, to those that are readable or quarantined."""

    def __init__(self, found: ParquetSources, denials: Denials) -> None:
        self._found = found
        self._denials = denials
        self._columns: dict[str, list[tuple[Any, Any, pa.Schema]]] = {}

    def add_body(self, body: SourceBody) -> None:
        """Add a source that was read, and keep its content."""
        source = body.source
        if body.error is not None:
            if not isinstance(body.error, UnreadableSource):
                raise body.error
            self.add(source, body.error)
            return
        content = _content(body)
        self._found.kept[source.key] = content
        self.add(source, _opened(lambda start, length: content[start : start + length], source))

    def add(self, source: SourceObject, file: _Opened) -> None:
        """Add a source, given as an open file, or why it cannot be opened."""
        if not source.size:
            self._found.footers.append((source, _EMPTY))
            return
        try:
            if isinstance(file, UnreadableSource):
                raise file
            footer = Footer(file.metadata.num_rows, self._columns_of(file), plan_reading(file))
        except UnreadableSource as error:
            self._denials.count(error)
            self._found.kept.pop(source.key, None)
            reason = QuarantineReason(error.reason)
            self._found.quarantined.append(Quarantined(source, reason, error.detail))
            return
        self._denials.read()
        self._found.footers.append((source, footer))
        if len(self._found.footers) % _COLLECTED_TOGETHER == 0:
            gc.collect(1)

    def _columns_of(self, file: pq.ParquetFile) -> pa.Schema:
        """Return the columns of a source, read only of the first one with the same columns."""
        # The first line has the address of the schema in memory.
        known = self._columns.setdefault(str(file.schema).partition("\n")[2], [])
        metadata = file.metadata.metadata
        for schema, its_metadata, columns in known:
            if schema.equals(file.schema) and its_metadata == metadata:
                return columns
        columns = columns_of(file)
        try:
            merged(pa.schema([]), columns)
        except SchemaClash as clash:
            raise UnreadableSource(QuarantineReason.UNSUPPORTED_TYPE, str(clash)) from clash
        known.append((file.schema, metadata, columns))
        return columns


def _opened(read_range: ReadRange, source: SourceObject) -> _Opened:
    try:
        return open_parquet(read_range, source.size, **_OPTIONS)
    except UnreadableSource as error:
        return error


def _opened_at(store: ObjectStore, source: SourceObject) -> _Opened:
    # Each range read has If-Match, so the footer is that of the listed object.
    return _opened(partial(store.read_range, source), source)


def _alike(footers: Sequence[tuple[SourceObject, Footer]]) -> set[int]:
    """Return the ids of the columns that have a safe superset, those of most sources first."""
    counts = Counter(id(footer.columns) for _, footer in footers)
    every = {id(footer.columns): footer.columns for _, footer in footers}
    alike: set[int] = set()
    superset = pa.schema([])
    # Of equally many, those that were found first.
    for number, _ in counts.most_common():
        with suppress(SchemaClash):
            superset = merged(superset, every[number])
            alike.add(number)
    return alike


def _superset(footers: Sequence[tuple[SourceObject, Footer]]) -> pa.Schema:
    superset = pa.schema([])
    for columns in {id(footer.columns): footer.columns for _, footer in footers}.values():
        superset = merged(superset, columns)
    return superset


def _signature(columns: pa.Schema) -> Signature:
    digest = hashlib.blake2b(to_spark_json(columns).encode(), digest_size=16)
    return Signature(Format.PARQUET, Compression.NONE, dialect=digest.digest())


_OPTIONS: Mapping[str, Any] = {
    "coerce_int96_timestamp_unit": "us",
    "arrow_extensions_enabled": False,
    "page_checksum_verification": True,
}


def _batches(body: SourceBody, reading: Reading, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    # An error while the temporary file is written does not come from the source's content.
    with _content_of(body) as opened, _naming(body.source):  # noqa: SIM117 - the last needs the first
        with pq.ParquetFile(
            opened,
            read_dictionary=reading.as_dictionaries,
            buffer_size=reading.buffer_bytes if isinstance(opened, str) else 0,
            pre_buffer=False,
            **_OPTIONS,
        ) as file:
            for number, rows in enumerate(reading.batch_rows):
                for batch in file.iter_batches(rows, [number], use_threads=False):
                    for part in _within_budget(batch):
                        yield conformed_batch(part, schema)


def _within_budget(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Divide a batch whose dictionaries would take more than a batch's memory when decoded."""
    rows = batch.num_rows
    if rows <= 1 or sum(map(decoded_bytes, batch.columns)) <= BATCH_BYTES:
        yield batch
        return
    yield from _within_budget(batch.slice(0, rows // 2))
    yield from _within_budget(batch.slice(rows // 2))


@contextmanager
def _naming(source: SourceObject) -> Iterator[None]:
    """Name the source in errors about its content.

    Raises:
        UnreadableRows: CORRUPT.
    """
    try:
        yield
    except MemoryError:
        raise
    except DAMAGES as error:
        detail = f"its rows cannot be read: {first_line(error)}"
        raise UnreadableRows(source, QuarantineReason.CORRUPT, detail) from error


@contextmanager
def _content_of(body: SourceBody) -> Iterator[Any]:
    """Give a source's bytes, or the path of a temporary file that exists meanwhile."""
    if isinstance(body.error, UnreadableSource):
        raise UnreadableRows(body.source, body.error.reason, body.error.detail)
    if body.error is not None:
        raise body.error
    if body.content is not None or body.source.size <= IN_MEMORY_BYTES:
        yield pa.py_buffer(_content(body))
        return
    with tempfile.TemporaryDirectory(prefix="compactor-parquet-") as directory:
        path = Path(directory) / "source.parquet"
        with path.open("wb") as stream:
            stream.writelines(_pieces(body))
        yield str(path)


def _content(body: SourceBody) -> bytes:
    return body.content if body.content is not None else b"".join(_pieces(body))


def _pieces(body: SourceBody) -> Iterator[bytes]:
    if body.content is not None:
        yield body.content
    elif body.chunks is not None:
        yield from body.chunks()
