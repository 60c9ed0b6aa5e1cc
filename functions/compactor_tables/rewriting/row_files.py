"""Reads small data files concurrently, and writes their rows to few files that are read back.

Memory is bounded: rows go to a file on this machine row group by row group, and each file is stored
before the next one is begun. Nothing refers to the files before the table's commit, so whatever a
killed or beaten run leaves is an orphan.
"""

from __future__ import annotations

import posixpath
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from compactor.encoding.row_digest import RowDigest
from compactor.errors import IntegrityError
from compactor.model import SourceObject
from compactor.ports import ObjectStore, SourceBody
from compactor.sizes import MIB

_READERS, _AHEAD_BYTES = 16, 64 * MIB
# Rows in memory before they are encoded.
_ROW_GROUP_BYTES, _MOST_TABLES = 64 * MIB, 1_000
_BATCH_ROWS = 64 * 1024
_PART_BYTES = 32 * MIB
_FEWEST_LISTED, _LISTED_PAGES, _LISTED_A_PAGE = 64, 4, 250
_File = TypeVar("_File")


class StoredFile(NamedTuple):
    """A data file that was written, read back and stored.

    Attributes:
        metadata: its Parquet footer.
    """

    bucket: str
    key: str
    size: int
    metadata: pq.FileMetaData


class Located(NamedTuple, Generic[_File]):
    """A file to read, where it lies, and its size in bytes."""

    file: _File
    bucket: str
    key: str
    size: int


def read_ahead(
    files: Sequence[Located[_File]], decode: Callable[[_File, bytes], pa.Table], store: ObjectStore
) -> Iterator[pa.Table]:
    """Yield the rows of files in their order, several decoded concurrently in bounded memory."""
    waiting: deque[tuple[Future[pa.Table], int]] = deque()
    ahead = 0
    with ThreadPoolExecutor(_READERS) as pool:
        for one, fetch in zip(files, _fetches(files, store), strict=True):
            while waiting and (ahead + one.size > _AHEAD_BYTES or len(waiting) >= 4 * _READERS):
                future, taken = waiting.popleft()
                ahead -= taken
                yield future.result()
            waiting.append((pool.submit(_decoded, decode, one.file, fetch), one.size))
            ahead += one.size
        while waiting:
            yield waiting.popleft()[0].result()


def _decoded(
    decode: Callable[[_File, bytes], pa.Table], file: _File, fetch: Callable[[], bytes]
) -> pa.Table:
    return decode(file, fetch())


def _fetches(files: Sequence[Located[Any]], store: ObjectStore) -> Iterator[Callable[[], bytes]]:
    sources = _listed(files, store) if len(files) >= _FEWEST_LISTED else None
    if sources is None:
        for one in files:
            yield partial(store.get, one.bucket, one.key)
    else:
        for body in store.read_sources(sources):
            yield partial(_content, body)


def _listed(files: Sequence[Located[Any]], store: ObjectStore) -> list[SourceObject] | None:
    """Return files as listed, which are read at a tenth of the CPU time; None if that takes long.

    A LIST returns a thousand keys; one that returns few of ours would cost more than it saves.
    """
    waiting = {(one.bucket, one.key) for one in files}
    (bucket, *others), found = {one.bucket for one in files}, dict[str, SourceObject]()
    if others:
        return None
    prefix = posixpath.commonprefix([one.key for one in files]).rpartition("/")[0]
    pages = store.list_objects(bucket, f"{prefix}/" if prefix else "")
    for page in islice(pages, _LISTED_PAGES + len(files) // _LISTED_A_PAGE):
        for one in page:
            if (bucket, one.key) in waiting:
                found[one.key] = one
        if len(found) == len(waiting):
            return [found[one.key] for one in files]
    return None


def _content(body: SourceBody) -> bytes:
    if body.error is not None:
        raise body.error
    if body.content is not None:
        return body.content
    return b"".join(body.chunks()) if body.chunks is not None else b""


def write_files(
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    *,
    target_bytes: int,
    codec: str,
    place: Callable[[], tuple[str, str]],
    store: ObjectStore,
) -> list[StoredFile]:
    """Write rows to files of about a target size, and store these.

    Args:
        tables: the rows, in columns of the schema.
        schema: of the files.
        target_bytes: size at which the next file is begun.
        codec: compression of the files.
        place: returns bucket and key of the next file.
        store: where the files are stored.

    Raises:
        IntegrityError: the files do not have the rows that were to be written.
    """
    read, written = RowDigest(), RowDigest()
    stored: list[StoredFile] = []
    groups = _row_groups(tables, read)
    group = next(groups, None)
    with tempfile.TemporaryDirectory(prefix="compactor-tables-") as directory:
        path = Path(directory) / "rows.parquet"
        while group is not None:
            with pq.ParquetWriter(path, schema, compression=codec, store_schema=False) as writer:
                while group is not None:
                    writer.write_table(group, row_group_size=max(1, group.num_rows))
                    group = next(groups, None)
                    if path.stat().st_size >= target_bytes:
                        break
            for batch in pq.ParquetFile(path).iter_batches(batch_size=_BATCH_ROWS):
                written.add(batch)
            stored.append(_store(path, place(), store))
    if (read.rows, read.hash) != (written.rows, written.hash):
        raise IntegrityError(
            f"{read.rows:,} rows with hash {read.hash} were to be written, and the new files have"
            f" {written.rows:,} with hash {written.hash}; nothing was committed"
        )
    return stored


def _row_groups(tables: Iterable[pa.Table], digest: RowDigest) -> Iterator[pa.Table]:
    gathered: list[pa.Table] = []
    gathered_bytes = 0
    for table in tables:
        if not table.num_rows:
            continue
        gathered.append(table)
        gathered_bytes += table.nbytes
        if gathered_bytes >= _ROW_GROUP_BYTES or len(gathered) >= _MOST_TABLES:
            joined = pa.concat_tables(gathered).combine_chunks()
            gathered, gathered_bytes = [joined], joined.nbytes
        if gathered_bytes >= _ROW_GROUP_BYTES:
            digest.add(gathered[0])
            yield gathered[0]
            gathered, gathered_bytes = [], 0
    if gathered:
        joined = pa.concat_tables(gathered).combine_chunks()
        digest.add(joined)
        yield joined


def _store(path: Path, place: tuple[str, str], store: ObjectStore) -> StoredFile:
    size = path.stat().st_size
    if size <= _PART_BYTES:
        store.create(*place, path.read_bytes())
    else:
        upload, parts, crc32 = store.create_upload(*place), [], 0
        with path.open("rb") as file:
            for number, body in enumerate(iter(lambda: file.read(_PART_BYTES), b""), start=1):
                parts.append(store.upload_part(*place, upload, number, body))
                crc32 = zlib.crc32(body, crc32)
        store.complete_upload(*place, upload, parts, crc32=crc32)
    return StoredFile(*place, size, pq.read_metadata(path))


def plain(schema: pa.Schema) -> pa.Schema:
    """Return a schema with 32-bit offsets, as Parquet files are read by default."""
    return pa.schema([_plain_field(one) for one in schema])


def _plain_field(one: pa.Field) -> pa.Field:
    return pa.field(one.name, _plain_type(one.type), one.nullable, one.metadata)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(number)) for number in range(kind.num_fields)])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_field(kind.value_field))
    if pa.types.is_map(kind):
        return pa.map_(_plain_field(kind.key_field), _plain_field(kind.item_field))
    return kind


def fits(file: Sequence[pa.Field] | pa.Schema, wanted: Sequence[pa.Field] | pa.Schema) -> bool:
    """Return whether a file has exactly these columns: names, field ids and types."""
    return len(file) == len(wanted) and all(map(_fits, file, wanted))


def _fits(one: pa.Field, wanted: pa.Field) -> bool:
    if one.name != wanted.name or field_id(one) != field_id(wanted):
        return False
    kind, other = _plain_type(one.type), wanted.type
    if kind.num_fields and kind.id == other.id:
        return fits(_members(kind), _members(other))
    return bool(kind == other)


def _members(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        # The names of entries, keys and values differ between writers, and mean nothing.
        pairs = (("key", kind.key_field), ("value", kind.item_field))
        return [pa.field(name, one.type, True, one.metadata) for name, one in pairs]
    if pa.types.is_list(kind):
        return [pa.field("element", kind.value_type, True, kind.value_field.metadata)]
    return [kind.field(number) for number in range(kind.num_fields)]


def field_id(one: pa.Field) -> int | None:
    """Return the id of a column in Parquet; None if it has none."""
    text = (one.metadata or {}).get(b"PARQUET:field_id")
    return None if text is None else int(text)
