"""The pages that a run makes of an inventory, in the order of keys, and their index."""

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
    """One page of the index: its number from 0, its first and last key, how many objects."""

    number: int
    first: str
    last: str
    objects: int


@dataclass(slots=True)
class InventoryIndex:
    """What a run took from an inventory.

    Attributes:
        manifest_uri: of the inventory.
        manifest_md5: names it for certain.
        created_at: when S3 began to look, UNIX seconds.
        bucket: of the source.
        prefix: that all keys have.
        pages: in the order of keys, which do not overlap.
    """

    manifest_uri: str
    manifest_md5: str
    created_at: float
    bucket: str
    prefix: str
    pages: list[PageLine] = field(default_factory=list)

    @property
    def objects(self) -> int:
        """How many objects it lists."""
        return sum(page.objects for page in self.pages)


class ListedPage(msgspec.Struct, omit_defaults=True):
    """Objects in the order of their keys, column by column.

    Attributes:
        sequence: only in sorted parts, where the inventory has several rows of a key.
    """

    key: list[str]
    etag: list[str]
    size: list[int]
    last_modified: list[float]
    storage_class: list[str]
    sequence: list[str] = []


_decode_index, _decode_page = decoder(InventoryIndex), decoder(ListedPage)


class Shelf(Protocol):
    """Where pages lie, by name."""

    def put(self, name: str, body: bytes) -> None:
        """Write, or write over."""
        ...

    def create(self, name: str, body: bytes) -> None:
        """Write where nothing is; raises AlreadyExists."""
        ...

    def get(self, name: str) -> bytes:
        """Raises ObjectMissing."""
        ...


class RunShelf:
    """The pages of a run, below its prefix in the state."""

    def __init__(self, settings: Settings, run_id: str, store: ObjectStore) -> None:
        self._settings, self._run_id, self._store = settings, run_id, store

    def put(self, name: str, body: bytes) -> None:
        """Write, or write over."""
        self._store.put(*run_key(self._settings, self._run_id, _PLACE + name), body)

    def create(self, name: str, body: bytes) -> None:
        """Write where nothing is; raises AlreadyExists."""
        self._store.create(*run_key(self._settings, self._run_id, _PLACE + name), body)

    def get(self, name: str) -> bytes:
        """Raises ObjectMissing."""
        return self._store.get(*run_key(self._settings, self._run_id, _PLACE + name))


class DirectoryShelf:
    """Pages in a directory of this machine, for who may not write to the state."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(self, name: str, body: bytes) -> None:
        """Write, or write over."""
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    def create(self, name: str, body: bytes) -> None:
        """Write where nothing is; raises AlreadyExists."""
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("xb") as file:
                file.write(body)
        except FileExistsError:
            raise AlreadyExists(name) from None

    def get(self, name: str) -> bytes:
        """Raises ObjectMissing."""
        try:
            return (self._directory / name).read_bytes()
        except FileNotFoundError:
            raise ObjectMissing(name) from None


def page_name(md5: str, number: int) -> str:
    """Name of a page of the listing.

    Args:
        md5: of the inventory's manifest: of two concurrent calls that take different inventories
            neither writes over pages of the other.
        number: from 0.
    """
    return f"pages/{md5}/{number:08d}.json.gz"


def sorted_name(md5: str, part: str, number: int) -> str:
    """Name of a page of one sorted part of the inventory."""
    return f"sorted/{md5}/{part}/{number:08d}.json.gz"


def encode_page(rows: Sequence[Row]) -> bytes:
    """One page of a sorted part, or, with no sequences, of the listing."""
    keys, times, sequences, etags, sizes, classes = map(list, zip(*rows, strict=True))
    page = ListedPage(keys, etags, sizes, times, classes, sequences if any(sequences) else [])
    return gzip.compress(msgspec.json.encode(page), 1, mtime=0)


def read_page(shelf: Shelf, name: str) -> list[Row]:
    """The rows of one page.

    Raises:
        IntegrityError: it is gone or damaged.
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
    """The rows of a page of the listing, as its index has it.

    Raises:
        IntegrityError: it is gone, damaged, or another page.
    """
    name = page_name(index.manifest_md5, line.number)
    rows = read_page(shelf, name)
    listed = (line.first, line.last, line.objects)
    if not rows or (rows[0].key, rows[-1].key, len(rows)) != listed:
        raise IntegrityError(f"{name} of the listing is damaged: its index names another one")
    return rows


def write_index(shelf: Shelf, index: InventoryIndex) -> None:
    """Written last: pages without an index are no listing."""
    shelf.put(INDEX_NAME, msgspec.json.encode(numbered(index, LISTING_VERSION)))


def read_index(shelf: Shelf) -> InventoryIndex | None:
    """None where there is none.

    Raises:
        IntegrityError: it is damaged, or a later version wrote it.
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
