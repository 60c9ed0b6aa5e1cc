"""Reads the Parquet sources of a group: footers first, then rows in bounded batches.

Small sources are read once and kept until their rows are needed, within a budget. Of the others
the footer is read by ranges, and the rest when their turn comes.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.encoding.parquet_footer import ParquetFooter, read_footer
from compactor.errors import InvalidInput, UnreadableSource
from compactor.model import Quarantined, QuarantineReason, SourceObject
from compactor.outputs.group_reading import Denials
from compactor.ports import ObjectStore, SourceBody
from compactor.rows.batch_sizes import BATCH_BYTES, Reading, plan_reading
from compactor.rows.conform import conformed_batch, decoded_bytes
from compactor.rows.parquet_types import UnsupportedColumn, columns_of
from compactor.rows.schema import SUPERSET_ACCEPTED, SchemaClash, merged
from compactor.rows.sink import with_origin_columns
from compactor.sizes import MIB

#: Sources kept in memory between the two readings, in total.
KEPT_BYTES = 64 * MIB
#: A larger source passes through a temporary file.
IN_MEMORY_BYTES = 16 * MIB
_CONCURRENT_FOOTERS = 32


@dataclass(slots=True)
class ParquetSources:
    """The sources of one group, whose footers were read.

    Attributes:
        store: holds the sources.
        footers: of each readable source, in the given order.
        quarantined: sources that are not complete Parquet objects.
        schemas: columns of the readable sources, by the digest of their schemas.
        schema: the safe superset of these.
        readings: how each readable source is read, by key.
        kept: content of the sources that are read only once, by key.
    """

    store: ObjectStore
    footers: list[tuple[SourceObject, ParquetFooter]] = field(default_factory=list)
    quarantined: list[Quarantined] = field(default_factory=list)
    schemas: dict[str, pa.Schema] = field(default_factory=dict)
    schema: pa.Schema = field(default_factory=lambda: pa.schema([]))
    readings: dict[str, Reading] = field(default_factory=dict, repr=False)
    kept: dict[str, bytes] = field(default_factory=dict, repr=False)

    def commonest_codec(self, otherwise: str) -> str:
        """Return the codec that most sources have; ``otherwise`` if no source has row groups."""
        found = Counter(footer.codec for _, footer in self.footers if footer.row_groups)
        return max(sorted(found), key=found.__getitem__) if found else otherwise

    def bodies(self) -> Iterator[tuple[SourceBody, ParquetFooter]]:
        """Yield each source's content and footer, in order."""
        unkept = [source for source, _ in self.footers if source.key not in self.kept]
        others = self.store.read_sources(unkept)
        for source, footer in self.footers:
            kept = self.kept.get(source.key)
            body = SourceBody(source, kept) if kept is not None else next(iter(others))
            yield body, footer

    def rows_of(self, body: SourceBody, *, origins: bool = False) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one source in order, with the columns of the superset.

        A batch has about 32 MiB at most, unless a single row has more.

        Args:
            body: of the source.
            origins: whether each row also gets the columns for its origin.

        Raises:
            SourceChanged: the source differs from the listing.
            UnreadableRows: its rows cannot be read to the end.
            InvalidInput: a column has the name of one for origins.
        """
        schema = with_origin_columns(self.schema) if origins else self.schema
        key, position = pa.scalar(body.source.key, pa.string()), 0
        for batch in _batches(body, self.readings[body.source.key], self.schema):
            rows = batch.num_rows
            own = (pa.repeat(key, rows), pa.arange(position, position + rows)) if origins else ()
            yield pa.RecordBatch.from_arrays([*batch.columns, *own], schema=schema)
            position += rows

    def unreadable(self) -> list[Quarantined]:
        """Read all rows, and return the sources for which that fails."""
        found = []
        for body, _ in self.bodies():
            try:
                for _ in self.rows_of(body):
                    pass
            except UnreadableRows as error:
                found.append(error.quarantined)
        return found

    def without(self, quarantined: Sequence[Quarantined]) -> ParquetSources:
        """Return the same sources, of which these are quarantined, too."""
        left_out = {one.source.key for one in quarantined}
        footers = [one for one in self.footers if one[0].key not in left_out]
        every = [*self.quarantined, *quarantined]
        schema = _superset(self.schemas, footers)
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
        InvalidInput: a column's type has no counterpart in outputs, or no type holds a column of
            two sources without loss; names the column, both types and a source of each.
        SourceChanged: a source differs from the listing.
        NothingReadable: this role can read none of many sources.
    """
    found = ParquetSources(store)
    opening = _Opening(found, Denials(sources, store))
    kept = _first_within(sources, KEPT_BYTES)
    for body in store.read_sources(sources[:kept]):
        opening.add_body(body)
    with ThreadPoolExecutor(_CONCURRENT_FOOTERS, thread_name_prefix="footer") as pool:
        footers = pool.map(partial(_footer_at, store), sources[kept:])
        for source, footer in zip(sources[kept:], footers, strict=True):
            opening.add(source, footer, None)
    found.schema = _superset(found.schemas, found.footers)
    return found


def _first_within(sources: Sequence[SourceObject], budget: int) -> int:
    """Return how many of the first sources have no more than a budget together."""
    total = 0
    for number, source in enumerate(sources):
        total += source.size
        if total > budget:
            return number
    return len(sources)


_Footer = ParquetFooter | UnreadableSource


class _Opening:
    """Adds sources, in order, to those that are readable or quarantined."""

    def __init__(self, found: ParquetSources, denials: Denials) -> None:
        self._found = found
        self._denials = denials

    def add_body(self, body: SourceBody) -> None:
        """Add a source that was read, and keep its content."""
        source = body.source
        if body.error is not None:
            if not isinstance(body.error, UnreadableSource):
                raise body.error
            self.add(source, body.error, None)
            return
        content = _content(body)
        footer = _footer(lambda start, length: content[start : start + length], len(content))
        self._found.kept[source.key] = content
        self.add(source, footer, content)

    def add(self, source: SourceObject, footer: _Footer, content: bytes | None) -> None:
        """Add a source by its footer; of the first with a schema, the columns are read.

        Args:
            source: to add.
            footer: of the source, or why there is none.
            content: of the source; None to read it from the store.
        """
        try:
            if isinstance(footer, UnreadableSource):
                raise footer
            if footer.schema_digest not in self._found.schemas:
                self._found.schemas[footer.schema_digest] = self._columns(source, content)
        except UnreadableSource as error:
            self._denials.count(error)
            self._found.kept.pop(source.key, None)
            reason = QuarantineReason(error.reason)
            self._found.quarantined.append(Quarantined(source, reason, error.detail))
            return
        self._denials.read()
        # A group may have many thousand sources: of the row groups only the plan is kept.
        self._found.readings[source.key] = plan_reading(footer.groups)
        self._found.footers.append((source, replace(footer, groups=())))

    def _columns(self, source: SourceObject, content: bytes | None) -> pa.Schema:
        if content is None:
            opened = pa.PythonFile(_Ranges(self._found.store, source), mode="r")
        else:
            opened = pa.py_buffer(content)
        with _naming(source):
            return _columns(pq.ParquetFile(opened, **_OPTIONS), source)


def _footer(read_range: Callable[[int, int], bytes], size: int) -> _Footer:
    try:
        return read_footer(read_range, size)
    except UnreadableSource as error:
        return error


def _footer_at(store: ObjectStore, source: SourceObject) -> _Footer:
    # Each range read has If-Match, so the footer is that of the listed object.
    return _footer(partial(store.read_range, source), source.size)


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


def _batches(body: SourceBody, reading: Reading, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    # An error while the temporary file is written does not come from the source's content.
    with _opened(body) as opened, _naming(body.source):  # noqa: SIM117 - the last needs the first
        with pq.ParquetFile(
            opened,
            read_dictionary=reading.as_dictionaries,
            buffer_size=reading.buffer_bytes if isinstance(opened, str) else 0,
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


# What Arrow raises for footers and pages that are damaged.
_DAMAGES = (pa.ArrowException, OSError, ValueError, LookupError, ArithmeticError)


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
    except _DAMAGES as error:
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
