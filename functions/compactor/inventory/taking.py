"""Sorts an inventory: reads each of its files once, and writes pages in key order.

This is an external merge sort, so memory is bounded: rows are sorted in memory up to a limit and
stored as sorted parts, which are then merged. The time of a call is bounded, too: when it runs out,
the rows in memory are stored as a part, and the next call resumes after the last file that was
read, or after the last page that was merged.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from math import inf

from compactor.clock import NoDeadline
from compactor.errors import IntegrityError
from compactor.inventory.inventory_listing import InventoryListing
from compactor.inventory.inventory_pieces import SortedPart, TakenPiece, add_piece, read_pieces
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
from compactor.inventory.rows import UNLISTED, Row
from compactor.inventory.source import Inventory, Opens, open_delivered
from compactor.ports import Deadline, ObjectStore
from compactor.settings.settings import Settings

#: Maximum rows in memory; about 300 bytes each, and 150 more for rows with a sequence.
HELD_ROWS = 500_000
#: Rows per page of the listing, and of a sorted part. The merge holds a page of each part.
PAGE_ROWS, SORTED_ROWS = 10_000, 5_000
# Kept at a call's end for storing the rows in memory, and for what follows.
RESERVE_SECONDS = 60.0


def take_inventory(
    settings: Settings,
    store: ObjectStore,
    shelf: Shelf,
    *,
    opens: Opens = open_delivered,
    held_rows: int = HELD_ROWS,
) -> InventoryListing:
    """Sort an inventory in one call and return its listing; see :func:`take_on`."""
    listing = take_on(settings, store, shelf, NoDeadline(), opens=opens, held_rows=held_rows)
    if listing is None:
        raise AssertionError("a deadline that never comes has come")
    return listing


def take_on(
    settings: Settings,
    store: ObjectStore,
    shelf: Shelf,
    deadline: Deadline,
    *,
    opens: Opens = open_delivered,
    held_rows: int = HELD_ROWS,
) -> InventoryListing | None:
    """Sort an inventory as far as the deadline allows. Safe to repeat and to run concurrently.

    A run has one listing: what is on the shelf is used again, even if a newer inventory was
    delivered since.

    Args:
        settings: names the inventory.
        store: where it is.
        shelf: where the pages are written.
        deadline: deadline of this call, which reads at least one file or writes one page.
        opens: opens the inventory.
        held_rows: maximum number of rows in memory.

    Returns:
        The listing; None if time ran out and another call must continue.

    Raises:
        InvalidInput: there is no such inventory, it is of another bucket, or it lacks a required
            field.
        IntegrityError: a checksum does not match, or the inventory is not the one with which
            earlier calls began.
    """
    root = settings.source.root
    known = read_index(shelf)
    if known is not None:
        return InventoryListing(known, shelf)
    pieces = read_pieces(shelf)
    inventory = opens(settings, store, pieces[0].manifest_uri if pieces else "")
    if pieces and inventory.md5 != pieces[0].manifest_md5:
        raise IntegrityError(f"{inventory.uri} is not what it was when this run began to take it")
    time = _Time(deadline)
    taking = _Taking(inventory, shelf, root.prefix, held_rows, time, pieces)
    if not (taking.read() and taking.merge()):
        taking.leave()
        return None
    index = InventoryIndex(
        inventory.uri, inventory.md5, inventory.created_at, root.bucket, root.prefix, taking.pages
    )
    write_index(shelf, index)
    return InventoryListing(index, shelf)


class _Time:
    """Decides when a call stops, after at least one step of work."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._worked = False

    def left(self) -> float:
        """Return the seconds left."""
        return self._deadline.remaining_seconds()

    def worked(self) -> None:
        """Record that a step of work is done."""
        self._worked = True

    def is_up(self, next_seconds: float = 0.0) -> bool:
        """Return whether there is no time left for a step of ``next_seconds``."""
        return self._worked and self.left() < RESERVE_SECONDS + next_seconds


@dataclass(slots=True)
class _Taking:
    """The work of one call.

    Attributes:
        prefix: prefix of the source.
        before: pieces of the earlier calls.
        files: number of files read so far.
        parts: sorted parts stored so far.
        pages: pages of the listing written so far.
        held: rows in memory.
    """

    inventory: Inventory
    shelf: Shelf
    prefix: str
    held_rows: int
    time: _Time
    before: Sequence[TakenPiece]
    files: int = 0
    parts: list[SortedPart] = field(default_factory=list)
    pages: list[PageLine] = field(default_factory=list)
    held: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        for piece in self.before:
            self.files = piece.files
            self.parts += piece.parts
            self.pages += piece.pages

    def read(self) -> bool:
        """Read the remaining files; return False if time ran out."""
        longest = 0.0
        for number in range(self.files, self.inventory.files):
            if self.time.is_up(1.5 * longest):
                return False
            before = self.time.left()
            self._read(number)
            self.files += 1
            self.time.worked()
            if before < inf:
                longest = max(longest, before - self.time.left())
        return True

    def merge(self) -> bool:
        """Write the remaining pages; return False if time ran out."""
        after = self.pages[-1].last if self.pages else ""
        self.held.sort()
        rows = merge(*(self._rows(part, after) for part in self.parts), self.held)
        for page in _batches(_newest(rows), PAGE_ROWS):
            if self.time.is_up():
                return False
            number = len(self.pages)
            self.shelf.put(page_name(self.inventory.md5, number), encode_page(page))
            self.pages.append(PageLine(number, page[0].key, page[-1].key, len(page)))
            self.time.worked()
        return True

    def leave(self) -> None:
        """Store the progress of this call for the next one."""
        if self.held:
            # The suffix is needed because two concurrent calls may stop after different files.
            self._lay_aside(f"-{self.files:06d}")
        parts = self.parts[sum(len(piece.parts) for piece in self.before) :]
        pages = self.pages[sum(len(piece.pages) for piece in self.before) :]
        piece = TakenPiece(self.inventory.uri, self.inventory.md5, self.files, parts, pages)
        add_piece(self.shelf, len(self.before), piece)

    def _read(self, file: int) -> None:
        rows = self.inventory.rows(file, self.prefix)
        for row in rows:
            if len(self.held) == self.held_rows:
                self._lay_aside()
            self.held.append(row)
            self.held += islice(rows, self.held_rows - len(self.held))

    def _lay_aside(self, suffix: str = "") -> None:
        self.held.sort()
        part = SortedPart(f"{len(self.before):05d}-{len(self.parts):05d}{suffix}", [])
        for number, page in enumerate(_batches(self.held, SORTED_ROWS)):
            name = sorted_name(self.inventory.md5, part.name, number)
            self.shelf.put(name, encode_page(page))
            part.last.append(page[-1].key)
        self.parts.append(part)
        self.held = []

    def _rows(self, part: SortedPart, after: str) -> Iterator[Row]:
        """Yield the rows of a part after a key."""
        for number in range(bisect_right(part.last, after), len(part.last)):
            page = read_page(self.shelf, sorted_name(self.inventory.md5, part.name, number))
            yield from page[bisect_right(page, after, key=lambda row: row.key) :]


def _newest(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the last row of each key, unless it is unlisted.

    An object that was overwritten while it was listed may be listed twice.
    """
    last: Row | None = None
    for row in rows:
        if last is not None and last.key != row.key and last.size != UNLISTED:
            yield last._replace(sequence="") if last.sequence else last
        last = row
    if last is not None and last.size != UNLISTED:
        yield last._replace(sequence="") if last.sequence else last


def _batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    every = iter(rows)
    while batch := list(islice(every, size)):
        yield batch
