"""Reads the Parquet sources of a group: footers first, then rows in bounded batches.

Small sources are read once and kept until their rows are needed, within a budget. Of the others
the footer is read by ranges, and the rest when their turn comes.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.encoding.parquet_footer import ParquetFooter, read_footer
from compactor.errors import InvalidInput, UnreadableSource
from compactor.model import Quarantined, QuarantineReason, SourceObject
from compactor.ports import ObjectStore, SourceBody
from compactor.rows.batch_sizes import BATCH_BYTES, plan_reading
from compactor.rows.conform import conformed_batch, decoded_bytes
from compactor.rows.parquet_types import UnsupportedColumn, columns_of
from compactor.rows.schema import SUPERSET_ACCEPTED, SchemaClash, merged
from compactor.sinks.upserts import POSITION, SOURCE_KEY
from compactor.sizes import MIB

#: Sources kept in memory between the two readings, in total.
KEPT_BYTES = 64 * MIB
#: A larger source passes through a temporary file.
IN_MEMORY_BYTES = 16 * MIB
_CONCURRENT_FOOTERS = 32
_ORIGINS = (pa.field(SOURCE_KEY, pa.string()), pa.field(POSITION, pa.int64()))


@dataclass(slots=True)
class ParquetSources:
    """The sources of one group, whose footers were read.

    Attributes:
        store: holds the sources.
        footers: of each readable source, in the given order.
        quarantined: sources that are not complete Parquet objects.
        schemas: columns of the readable sources, by the digest of their schemas.
        schema: the safe superset of these.
        kept: content of the sources that are read only once, by key.
    """

    store: ObjectStore
    footers: list[tuple[SourceObject, ParquetFooter]] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    kept: dict[str, bytes] = field(default_factory=dict, repr=False)

    @property
    def rows(self) -> int:
        """Number of rows in all readable sources, by their footers."""
        return sum(footer.rows for _, footer in self.footers)

    def commonest_codec(self, otherwise: str) -> str:
        """Return the codec that most sources have; ``otherwise`` if no source has row groups."""
        found = Counter(footer.codec for _, footer in self.footers if footer.row_groups)
        return max(sorted(found), key=found.__getitem__) if found else otherwise

    def batches(self, *, origins: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all sources in order, with the columns of the superset.

        A batch has about 32 MiB at most, unless a single row has more.

        Args:
            origins: whether each row gets its source's key and its position in the source.

        Raises:
            SourceChanged: a source differs from the listing.
            UnreadableRows: the rows of a source cannot be read to its end.
            InvalidInput: a column has the name of one for origins.
        """
        if origins:
            with_origin_columns(self.schema)
        for body in self._bodies():
            position = 0
            for batch in _rows_of(body, self.schema):
                yield _with_origins(batch, body.source.key, position) if origins else batch
                position += batch.num_rows

    def unreadable(self) -> list[Quarantined]:
        """Read all rows, and return the sources for which that fails."""
        found = []
        for body in self._bodies():
            try:
                for _ in _rows_of(body, self.schema):
                    pass
            except UnreadableRows as error:
                found.append(error.quarantined)
        return found

    def without(self, quarantined: Sequence[Quarantined]) -> ParquetSources:
        """Return the same sources, of which these are quarantined, too."""
        left_out = {one.source.key for one in quarantined}
        footers = [one for one in self.footers if one[0].key not in left_out]
        every = [*self.quarantined, *quarantined]
        sources = ParquetSources(self.store, footers, every, self.schemas, kept=self.kept)
        sources.schema = _superset(self.schemas, footers)
        return sources

    def _bodies(self) -> Iterator[SourceBody]:
        """Yield what to read for each source, in order."""
        sources = [source for source, _ in self.footers]
        others = self.store.read_sources([one for one in sources if one.key not in self.kept])
        for source in sources:
            if source.key in self.kept:
                yield SourceBody(source, self.kept[source.key])
            else:
                yield next(iter(others))


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
        InvalidInput: a column's type has no counterpart in outputs, or no type holds a column of
            two sources without loss; names the column, both types and a source of each.
        SourceChanged: a source differs from the listing.
    """
    found = ParquetSources(store)
    kept = _first_within(sources, KEPT_BYTES)
    for body in store.read_sources(sources[:kept]):
        _take_kept(found, body)
    with ThreadPoolExecutor(_CONCURRENT_FOOTERS, thread_name_prefix="footer") as pool:
        for source, footer in pool.map(partial(_footer, store), sources[kept:]):
            _take(found, source, footer, partial(_schema_of_ranges, store, source))
    found.schema = _superset(found.schemas, found.footers)
    return found


def with_origin_columns(schema: pa.Schema) -> pa.Schema:
    """Return a schema followed by the columns for the origin of each row.

    Raises:
        InvalidInput: a column already has one of these names.
    """
    own = {SOURCE_KEY, POSITION}
    taken = [name for name in schema.names if name.lower() in own]
    if taken:
        accepted = "another name with upsert_key, for which outputs get such columns themselves"
        raise InvalidInput("column", taken[0], accepted)
    return pa.schema([*schema, *_ORIGINS])


def _first_within(sources: Sequence[SourceObject], budget: int) -> int:
    """Return how many of the first sources have no more than a budget together."""
    total = 0
    for number, source in enumerate(sources):
        total += source.size
        if total > budget:
            return number
    return len(sources)


_Footer = ParquetFooter | UnreadableSource


def _take_kept(found: ParquetSources, body: SourceBody) -> None:
    source = body.source
    if body.error is not None and not isinstance(body.error, UnreadableSource):
        raise body.error
    if body.error is not None:
        _take(found, source, body.error, None)
        return
    content = _content(body)
    footer: _Footer
    try:
        footer = read_footer(lambda start, length: content[start : start + length], len(content))
        found.kept[source.key] = content
    except UnreadableSource as error:
        footer = error
    _take(found, source, footer, lambda: pa.py_buffer(content))


def _take(found: ParquetSources, source: SourceObject, footer: _Footer, opened: Any) -> None:
    """Add a source, and its columns if no source before it has the same ones."""
    if isinstance(footer, UnreadableSource):
        reason = QuarantineReason(footer.reason)
        found.quarantined.append(Quarantined(source, reason, footer.detail))
        return
    if footer.schema_digest not in found.schemas:
        try:
            with _naming(source):
                parquet = pq.ParquetFile(opened(), **_OPTIONS)
                found.schemas[footer.schema_digest] = _columns(parquet, source)
        except UnreadableRows as error:
            found.quarantined.append(error.quarantined)
            return
    found.footers.append((source, footer))


def _footer(store: ObjectStore, source: SourceObject) -> tuple[SourceObject, _Footer]:
    try:
        # Each range read has If-Match, so the footer is that of the listed object.
        return source, read_footer(partial(store.read_range, source), source.size)
    except UnreadableSource as error:
        return source, error


def _schema_of_ranges(store: ObjectStore, source: SourceObject) -> Any:
    return pa.PythonFile(_Ranges(store, source), mode="r")


def _columns(parquet: pq.ParquetFile, source: SourceObject) -> pa.Schema:
    try:
        return columns_of(parquet)
    except UnsupportedColumn as error:
        accepted = f"an object whose columns outputs can hold: {error}"
        raise InvalidInput("source", source.key, accepted) from error


def _superset(
    schemas: Mapping[str, pa.Schema], footers: Sequence[tuple[SourceObject, ParquetFooter]]
) -> pa.Schema:
    examples: dict[str, SourceObject] = {}
    for source, footer in footers:
        examples.setdefault(footer.schema_digest, source)
    superset = pa.schema([])
    seen: list[str] = []
    for digest, source in examples.items():
        try:
            superset = merged(superset, schemas[digest])
        except SchemaClash as clash:
            one = _first_with(clash.one, schemas[digest], [(d, schemas[d]) for d in seen])
            first = source.key if one is None else examples[one].key
            found = f"{clash.one} in {first}, {clash.two} in {source.key}"
            raise InvalidInput(f"column {clash.column}", found, SUPERSET_ACCEPTED) from clash
        seen.append(digest)
    if examples and not superset.names:
        raise InvalidInput("source", next(iter(examples.values())).key, "an object with columns")
    return superset


def _first_with(
    kind: str, schema: pa.Schema, earlier: Sequence[tuple[str, pa.Schema]]
) -> str | None:
    """Return the digest of the first schema that by itself clashes with this one."""
    for digest, other in earlier:
        try:
            merged(other, schema)
        except SchemaClash as clash:
            if clash.one == kind:
                return digest
    return earlier[0][0] if earlier else None


_OPTIONS: Mapping[str, Any] = {
    "pre_buffer": False,
    "coerce_int96_timestamp_unit": "us",
    "arrow_extensions_enabled": False,
    "page_checksum_verification": True,
}


def _rows_of(body: SourceBody, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    # An error while the temporary file is written does not come from the source's content.
    with _opened(body) as opened, _naming(body.source):
        file = pq.ParquetFile(opened, **_OPTIONS)
        reading = plan_reading(file.metadata)
        if reading.as_dictionaries or isinstance(opened, str):
            options = {"buffer_size": reading.buffer_bytes, "metadata": file.metadata}
            options["read_dictionary"] = reading.as_dictionaries
            file.close()
            file = pq.ParquetFile(opened, **options, **_OPTIONS)
        with file:
            for number, rows in enumerate(reading.rows_at_once):
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


def _with_origins(batch: pa.RecordBatch, key: str, position: int) -> pa.RecordBatch:
    rows = batch.num_rows
    columns = [*batch.columns, pa.repeat(key, rows), pa.arange(position, position + rows)]
    return pa.RecordBatch.from_arrays(columns, schema=with_origin_columns(batch.schema))


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
    except (pa.ArrowException, OSError) as error:
        first = str(error).partition("\n")[0]
        detail = f"its rows cannot be read: {first}"
        raise UnreadableRows(source, QuarantineReason.CORRUPT, detail) from error


@contextmanager
def _opened(body: SourceBody) -> Iterator[Any]:
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


class _Ranges:
    """A file whose parts are read from the store when they are needed."""

    closed = False

    def __init__(self, store: ObjectStore, source: SourceObject) -> None:
        self._store = store
        self._source = source
        self._at = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._source.size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, count: int = -1) -> bytes:
        left = self._source.size - self._at
        count = left if count < 0 else min(count, left)
        if not count:
            return b""
        found = self._store.read_range(self._source, self._at, count)
        self._at += len(found)
        return found

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True
