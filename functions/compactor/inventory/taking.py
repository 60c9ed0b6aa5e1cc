"""Take an inventory: read each of its files once, and write pages in the order of keys.

Memory is bounded however many objects there are: as many rows as are held together are sorted and,
where there are more, laid aside as a sorted part; then the parts are merged. So is the time of a
call: when it runs out, what was read is laid aside, too, and the next call goes on after that
file, or after the last page that was merged.
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

#: Some 300 bytes each, and 150 more where rows have a sequence.
HELD_ROWS = 500_000
#: Of a listing, and of a sorted part: when merged, a page of each part is held.
PAGE_ROWS, SORTED_ROWS = 10_000, 5_000
# Kept of a call for laying aside what is held, and for what follows.
RESERVE_SECONDS = 60.0


def take_inventory(
    settings: Settings,
    store: ObjectStore,
    shelf: Shelf,
    *,
    opens: Opens = open_delivered,
    held_rows: int = HELD_ROWS,
) -> InventoryListing:
    """The listing of a source as its inventory has it, in one go; as :func:`take_on` otherwise."""
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
    """Take an inventory as far as the deadline allows. Safe to run again, and concurrently.

    What lies on the shelf already is used again, whatever was delivered since: a run has one
    listing.

    Args:
        settings: names the inventory.
        store: where it is.
        shelf: where the pages go.
        deadline: of this call, which reads one file or writes one page in any case.
        opens: finds the inventory.
        held_rows: how many rows are held together.

    Returns:
        The listing; None where time ran out, and another call is to go on.

    Raises:
        InvalidInput: there is no such inventory, it is of another bucket, or leaves out what is
            needed.
        IntegrityError: a checksum of the inventory does not fit, or it is another one than the
            calls before have begun to take.
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
    """Says when a call stops; each does at least one thing."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._worked = False

    def left(self) -> float:
        """Seconds."""
        return self._deadline.remaining_seconds()

    def worked(self) -> None:
        """Something is done."""
        self._worked = True

    def is_up(self, next_seconds: float = 0.0) -> bool:
        """Whether no time is left for work of this length."""
        return self._worked and self.left() < RESERVE_SECONDS + next_seconds


@dataclass(slots=True)
class _Taking:
    """One call's part in taking an inventory.

    Attributes:
        prefix: of the source.
        before: what the calls before this one took.
        files: how many are read.
        pages: of the listing, as far as it is written.
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
        """Read the files that are left; False when time ran out."""
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
        """Write the pages that are left; False when time ran out."""
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
        """Store what this call did, for the next one."""
        if self.held:
            # Two concurrent calls may stop after different files.
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
        """The rows of a part after a key."""
        for number in range(bisect_right(part.last, after), len(part.last)):
            page = read_page(self.shelf, sorted_name(self.inventory.md5, part.name, number))
            yield from page[bisect_right(page, after, key=lambda row: row.key) :]


def _newest(rows: Iterable[Row]) -> Iterator[Row]:
    """The last row of each key, unless it says that there is nothing to list.

    An object that was written over meanwhile may be listed twice.
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
