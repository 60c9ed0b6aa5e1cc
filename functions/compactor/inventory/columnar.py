"""Inventories in ORC and Parquet, which are read by pyarrow where that is installed.

Columns are called otherwise than in CSV, keys are as they are, and times are timestamps (Amazon S3
User Guide, storage-inventory).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from tempfile import TemporaryFile
from typing import IO, Any

#: What CSV calls a column -> what these do.
NAMES: Mapping[str, str] = {
    "Key": "key",
    "VersionId": "version_id",
    "IsLatest": "is_latest",
    "IsDeleteMarker": "is_delete_marker",
    "Size": "size",
    "LastModifiedDate": "last_modified_date",
    "ETag": "e_tag",
    "StorageClass": "storage_class",
}
FORMATS = ("ORC", "Parquet")
_BATCH_ROWS = 65_536
# By name, so that the program is complete without it.
_PYARROW = "pyarrow"


def is_installed() -> bool:
    """True where these can be read."""
    return find_spec(_PYARROW) is not None


@contextmanager
def kept(chunks: Iterable[bytes]) -> Iterator[tuple[IO[bytes], str]]:
    """A file on this machine with these bytes, for as long as it is read, and its MD5."""
    digest = hashlib.md5(usedforsecurity=False)
    with TemporaryFile() as file:
        for chunk in chunks:
            digest.update(chunk)
            file.write(chunk)
        file.seek(0)
        yield file, digest.hexdigest()


def columns_of(
    file: IO[bytes], file_format: str, wanted: Iterable[str]
) -> Iterator[Mapping[str, list[Any]]]:
    """Batches of these columns, called as in CSV, each a list; times are UNIX seconds.

    Raises:
        ValueError, OSError, KeyError: it is no such file, or has no such columns.
    """
    names = {known: NAMES[known] for known in wanted}
    read = _parquet if file_format == "Parquet" else _orc
    for batch in read(file, list(names.values())):
        yield {known: _values(batch.column(name)) for known, name in names.items()}


def _parquet(file: IO[bytes], names: list[str]) -> Iterator[Any]:
    opened = import_module(f"{_PYARROW}.parquet").ParquetFile(file)
    yield from opened.iter_batches(batch_size=_BATCH_ROWS, columns=names)


def _orc(file: IO[bytes], names: list[str]) -> Iterator[Any]:
    opened = import_module(f"{_PYARROW}.orc").ORCFile(file)
    for stripe in range(opened.nstripes):
        yield opened.read_stripe(stripe, columns=names)


def _values(column: Any) -> list[Any]:
    arrow = import_module(_PYARROW)
    if not arrow.types.is_timestamp(column.type):
        values: list[Any] = column.to_pylist()
        return values
    milliseconds = column.cast(arrow.timestamp("ms", tz=column.type.tz), safe=False)
    return [None if one is None else one / 1000 for one in milliseconds.cast("int64").to_pylist()]
