"""Streams and checks the objects that one file of an inventory lists.

A file is gzipped CSV without a header. Every field is quoted, and keys are URL-encoded, with ``+``
for a space (Amazon S3 User Guide, storage-inventory). The manifest has its MD5.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from compactor.errors import IntegrityError, ObjectMissing
from compactor.inventory.inventory_manifest import InventoryFile, Manifest
from compactor.ports import ObjectStore

_BUFFER_BYTES = 1024 * 1024
_TRUE = "true"
# Raised if the file is not in the expected format.
_DAMAGE = (
    ValueError,
    IndexError,
    KeyError,
    AttributeError,
    TypeError,
    csv.Error,
    OSError,
    EOFError,
    zlib.error,
)


#: Size of a row that keeps its key out of the listing.
UNLISTED = -1


class Row(NamedTuple):
    """One object. Rows sort by key, then by time.

    Attributes:
        sequence: orders rows with the same key and second; empty if the inventory has only current
            objects.
    """

    key: str
    last_modified: float
    sequence: str
    etag: str
    size: int
    storage_class: str


def rows_of(
    file: InventoryFile, manifest: Manifest, store: ObjectStore, prefix: str
) -> Iterator[Row]:
    """Yield the current objects below a prefix, in the order of the file.

    Older versions and delete markers are skipped.

    Raises:
        IntegrityError: the file is missing, is not such a CSV, or does not match the manifest's
            MD5, which is only known after the last row.
    """
    where = f"s3://{file.bucket}/{file.key}"
    try:
        md5 = yield from _csv_rows(store.open(file.bucket, file.key), manifest, prefix)
    except ObjectMissing:
        raise IntegrityError(f"{where} is gone, and the inventory names it") from None
    except _DAMAGE as error:
        raise IntegrityError(f"{where} is no file of an inventory: {error}") from error
    if md5 != file.md5:
        raise IntegrityError(f"{where} has the MD5 {md5}, and the manifest says {file.md5}")


def _csv_rows(
    chunks: Iterator[bytes], manifest: Manifest, prefix: str
) -> Generator[Row, None, str]:
    """Yield the rows of a file; return its MD5."""
    body = _Body(chunks)
    with gzip.GzipFile(fileobj=io.BufferedReader(body, _BUFFER_BYTES)) as plain:
        text = io.TextIOWrapper(plain, "utf-8", newline="")
        yield from _rows(csv.reader(text, strict=True), manifest.columns, prefix)
    return body.md5()


def _rows(lines: Iterator[list[str]], columns: Sequence[str], prefix: str) -> Iterator[Row]:
    at = {name: number for number, name in enumerate(columns)}
    key_at, size_at, etag_at, time_at = (
        at[name] for name in ("Key", "Size", "ETag", "LastModifiedDate")
    )
    class_at, is_current = at.get("StorageClass"), _current(at)
    for line in lines:
        if len(line) != len(columns):
            raise ValueError(f"{len(line)} fields in a row, and not {len(columns)}")
        key = unquote_to_bytes(line[key_at].replace("+", " ")).decode()
        if key.startswith(prefix) and is_current(line):
            yield Row(
                key,
                _seconds(line[time_at]),
                "",
                line[etag_at].strip('"'),
                int(line[size_at]),
                (line[class_at] if class_at is not None else "") or "STANDARD",
            )


def _current(at: Mapping[str, int]) -> Callable[[Sequence[str]], bool]:
    """Return a function that is True for rows of objects that a GET of the key returns."""
    if "IsLatest" not in at:
        # The inventory has current versions only.
        return lambda line: True
    latest_at, marker_at = at["IsLatest"], at["IsDeleteMarker"]
    return lambda line: line[latest_at] == _TRUE and line[marker_at] != _TRUE


def _seconds(text: str) -> float:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class _Body(io.RawIOBase):
    """Chunks as a binary file that computes its MD5 while it is read."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")
        self._digest = hashlib.md5(usedforsecurity=False)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # any buffer is one
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._digest.update(chunk)
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count

    def md5(self) -> str:
        """Return the MD5 of the whole file in hexadecimal, reading what is left of it."""
        for chunk in self._chunks:
            self._digest.update(chunk)
        return self._digest.hexdigest()
