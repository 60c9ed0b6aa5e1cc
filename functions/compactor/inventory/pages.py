"""The pages into which a run sorts an inventory, and their index."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import starmap
from pathlib import Path
from typing import Protocol

import msgspec

from compactor.decoding import decoder, numbered, require_version
from compactor.errors import AlreadyExists, IntegrityError, ObjectMissing
from compactor.inventory.rows import Row
from compactor.layout import run_key
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

LISTING_VERSION = 1
INDEX_NAME = "index.json"
_PLACE = "listing/"
_DAMAGE = (msgspec.MsgspecError, ValueError, OSError, EOFError)


@dataclass(slots=True)
class PageLine:
    """A page's entry in the index: number (from 0), first and last key, number of objects."""

    number: int
    first: str
    last: str
    objects: int


@dataclass(slots=True)
class InventoryIndex:
    """The index of the pages that a run made from an inventory.

    Attributes:
        manifest_uri: URI of the inventory's manifest.
        manifest_md5: MD5 of the manifest; identifies the inventory.
        created_at: when S3 began to list, UNIX seconds.
        bucket: bucket of the source.
        prefix: prefix of all keys.
        pages: the pages in key order, which do not overlap.
    """

    manifest_uri: str
    manifest_md5: str
    created_at: float
    bucket: str
    prefix: str
    pages: list[PageLine] = field(default_factory=list)

    @property
    def objects(self) -> int:
        """Number of objects in all pages."""
        return sum(page.objects for page in self.pages)


class ListedPage(msgspec.Struct, omit_defaults=True):
    """Objects in key order, as columns.

    Attributes:
        sequence: only in sorted parts, and if the inventory has several rows per key.
    """

    key: list[str]
    etag: list[str]
    size: list[int]
    last_modified: list[float]
    storage_class: list[str]
    sequence: list[str] = []


_decode_index, _decode_page = decoder(InventoryIndex), decoder(ListedPage)


class Shelf(Protocol):
    """A place to store pages by name."""

    def put(self, name: str, body: bytes) -> None:
        """Write a page, replacing any of that name."""
        ...

    def create(self, name: str, body: bytes) -> None:
        """Write a new page; raises AlreadyExists if there is one of that name."""
        ...

    def get(self, name: str) -> bytes:
        """Return a page; raises ObjectMissing."""
        ...


class RunShelf:
    """Stores pages below the run's prefix in the state."""

    def __init__(self, settings: Settings, run_id: str, store: ObjectStore) -> None:
        self._settings, self._run_id, self._store = settings, run_id, store

    def put(self, name: str, body: bytes) -> None:
        """Write a page, replacing any of that name."""
        self._store.put(*run_key(self._settings, self._run_id, _PLACE + name), body)

    def create(self, name: str, body: bytes) -> None:
        """Write a new page; raises AlreadyExists if there is one of that name."""
        self._store.create(*run_key(self._settings, self._run_id, _PLACE + name), body)

    def get(self, name: str) -> bytes:
        """Return a page; raises ObjectMissing."""
        return self._store.get(*run_key(self._settings, self._run_id, _PLACE + name))


class DirectoryShelf:
    """Stores pages in a local directory, for callers that may not write to the state."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(self, name: str, body: bytes) -> None:
        """Write a page, replacing any of that name."""
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    def create(self, name: str, body: bytes) -> None:
        """Write a new page; raises AlreadyExists if there is one of that name."""
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("xb") as file:
                file.write(body)
        except FileExistsError:
            raise AlreadyExists(name) from None

    def get(self, name: str) -> bytes:
        """Return a page; raises ObjectMissing."""
        try:
            return (self._directory / name).read_bytes()
        except FileNotFoundError:
            raise ObjectMissing(name) from None


def page_name(md5: str, number: int) -> str:
    """Return the name of a page of the listing.

    Args:
        md5: MD5 of the inventory's manifest, so that concurrent calls with different inventories
            do not overwrite each other's pages.
        number: number of the page, from 0.
    """
    return f"pages/{md5}/{number:08d}.json.gz"


def sorted_name(md5: str, part: str, number: int) -> str:
    """Return the name of a page of a sorted part."""
    return f"sorted/{md5}/{part}/{number:08d}.json.gz"


def encode_page(rows: Sequence[Row]) -> bytes:
    """Encode a page of a sorted part; or of the listing, if the rows have no sequences."""
    keys, times, sequences, etags, sizes, classes = map(list, zip(*rows, strict=True))
    page = ListedPage(keys, etags, sizes, times, classes, sequences if any(sequences) else [])
    return gzip.compress(msgspec.json.encode(page), 1, mtime=0)


def read_page(shelf: Shelf, name: str) -> list[Row]:
    """Return the rows of a page.

    Raises:
        IntegrityError: the page is missing or damaged.
    """
    try:
        page = _decode_page(gzip.decompress(shelf.get(name)))
        sequences = page.sequence or [""] * len(page.key)
        columns = (page.key, page.last_modified, sequences, page.etag, page.size)
        rows = list(starmap(Row, zip(*columns, page.storage_class, strict=True)))
    except ObjectMissing as error:
        raise IntegrityError(f"{error} is gone: discover again, under another run id") from None
    except _DAMAGE as error:
        raise IntegrityError(f"{name} of the listing is damaged: {error}") from error
    return rows


def read_listed(shelf: Shelf, index: InventoryIndex, line: PageLine) -> list[Row]:
    """Return the rows of a page of the listing, checked against the index.

    Raises:
        IntegrityError: the page is missing, damaged, or not the one in the index.
    """
    name = page_name(index.manifest_md5, line.number)
    rows = read_page(shelf, name)
    listed = (line.first, line.last, line.objects)
    if not rows or (rows[0].key, rows[-1].key, len(rows)) != listed:
        raise IntegrityError(f"{name} of the listing is damaged: its index names another one")
    return rows


def write_index(shelf: Shelf, index: InventoryIndex) -> None:
    """Write the index. Must be written last: without it, there is no listing."""
    shelf.put(INDEX_NAME, msgspec.json.encode(numbered(index, LISTING_VERSION)))


def read_index(shelf: Shelf) -> InventoryIndex | None:
    """Return the index; None if there is no index.

    Raises:
        IntegrityError: the index is damaged, or a later version wrote it.
    """
    try:
        body = shelf.get(INDEX_NAME)
    except ObjectMissing:
        return None
    require_version(f"{_PLACE}{INDEX_NAME} of the run", body, LISTING_VERSION)
    try:
        return _decode_index(body)
    except _DAMAGE as error:
        raise IntegrityError(f"the listing's {INDEX_NAME} is damaged: {error}") from error
