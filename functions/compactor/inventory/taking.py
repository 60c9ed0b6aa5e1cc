"""Take an inventory: read each of its files once, and write pages in the order of keys.

Memory is bounded however many objects there are: as many rows as are held at once are sorted and,
where there are more, laid aside as a sorted part; then the parts are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import merge
from itertools import chain, islice

from compactor.errors import InvalidInput
from compactor.inventory.listing import InventoryListing
from compactor.inventory.manifest import FIELD, Manifest, manifest_uri, read_manifest
from compactor.inventory.pages import (
    InventoryIndex,
    PageLine,
    Shelf,
    encode_page,
    page_name,
    read_index,
    read_page,
    sorted_name,
    write_index,
)
from compactor.inventory.rows import Row, rows_of
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings

#: Some 300 bytes each.
HELD_ROWS = 500_000
#: Of a listing, and of a sorted part: when merged, a page of each part is held.
PAGE_ROWS, SORTED_ROWS = 10_000, 5_000


def take_inventory(
    settings: Settings, store: ObjectStore, shelf: Shelf, *, held_rows: int = HELD_ROWS
) -> InventoryListing:
    """The listing of a source as its inventory has it. Safe to run again.

    What lies on the shelf already is used again, whatever was delivered since: a run has one
    listing.

    Args:
        settings: names the inventory.
        store: where it is.
        shelf: where the pages go.
        held_rows: how many rows are held at once.

    Raises:
        InvalidInput: there is no such inventory, it is of another bucket, or leaves out what is
            needed.
        IntegrityError: a checksum of the inventory does not fit.
    """
    root = settings.source.root
    known = read_index(shelf)
    if known is not None:
        return InventoryListing(known, shelf)
    uri = manifest_uri(settings.inventory_manifest_uri or "", store)
    manifest = read_manifest(uri, store)
    if manifest.source_bucket != root.bucket:
        accepted = f"an inventory of the source's bucket {root.bucket}"
        raise InvalidInput(FIELD, uri, f"{accepted}; this one is of {manifest.source_bucket}")
    index = InventoryIndex(uri, manifest.md5, manifest.created_at, root.bucket, root.prefix)
    rows = _in_order(manifest, store, shelf, root.prefix, held_rows)
    for number, page in enumerate(_batches(_newest(rows), PAGE_ROWS)):
        shelf.put(page_name(manifest.md5, number), encode_page(page))
        index.pages.append(PageLine(number, page[0].key, page[-1].key, len(page)))
    write_index(shelf, index)
    return InventoryListing(index, shelf)


def _in_order(
    manifest: Manifest, store: ObjectStore, shelf: Shelf, prefix: str, held_rows: int
) -> Iterable[Row]:
    """All rows of all files, by key and time."""
    every = chain.from_iterable(rows_of(one, manifest, store, prefix) for one in manifest.files)
    parts: list[Iterator[Row]] = []
    held: list[Row] = []
    for rows in _batches(every, held_rows):
        if held:
            parts.append(_laid_aside(held, partial(sorted_name, manifest.md5, len(parts)), shelf))
        rows.sort()
        held = rows
    return merge(*parts, held) if parts else held


def _laid_aside(rows: list[Row], name_of: Callable[[int], str], shelf: Shelf) -> Iterator[Row]:
    names = []
    for number, page in enumerate(_batches(rows, SORTED_ROWS)):
        names.append(name_of(number))
        shelf.put(names[-1], encode_page(page))
    return chain.from_iterable(read_page(shelf, name) for name in names)


def _newest(rows: Iterable[Row]) -> Iterator[Row]:
    """Of each key the last: an object that was written over meanwhile may be listed twice."""
    last: Row | None = None
    for row in rows:
        if last is not None and last.key != row.key:
            yield last
        last = row
    if last is not None:
        yield last


def _batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    every = iter(rows)
    while batch := list(islice(every, size)):
        yield batch
