"""The pending items of a stream as a listing of its source, and their state after a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import msgspec

from compactor.model import Partition, SourceObject
from compactor.ports import ObjectHead
from compactor.registry.items import Item, ItemState, Mark
from compactor.registry.registry_ports import Registry

_PAGE_ITEMS = 1_000
# Concurrent HEAD requests; up to _FEW are sent one after another.
_CONCURRENT_HEADS, _FEW = 32, 8
#: Ages kept per call: enough for percentiles, and the most that CloudWatch takes in one call.
MOST_AGES = 100


class Marked(msgspec.Struct):
    """Totals of the items whose state was recorded.

    Attributes:
        compacted: that a commit names.
        gone: whose object no longer exists.
        left: that no run takes under these settings.
        ages: of some of the compacted ones: seconds from arrival to the mark, when they can be
            queried.
    """

    compacted: int = 0
    gone: int = 0
    left: int = 0
    ages: list[float] = msgspec.field(default_factory=list)


class EventListing:
    """The pending items of a stream; thread-safe.

    Args:
        registry: has the items.
        stream: name of the stream.
        root: bucket and prefix of its source.
        at: time of the listing, UNIX seconds; ages are relative to it.
        left: include all items that earlier runs left; otherwise only those left under other
            settings.
        decided_by: the settings, as text.
    """

    def __init__(
        self,
        registry: Registry,
        stream: str,
        root: tuple[str, str],
        at: float,
        *,
        left: bool = True,
        decided_by: str = "",
    ) -> None:
        self.registry = registry
        self.stream = stream
        self.marked = Marked()
        self._bucket, self._prefix = root
        self.at = at
        self._left = left
        self._decided_by = decided_by
        self._gone: set[bytes] = set()

    def partitions(self) -> list[Partition]:
        """Return the partitions with pending items, sorted by path."""
        paths = sorted(head.path for head in self.registry.heads(self.stream))
        return [Partition(self._bucket, self._prefix + path, path) for path in paths]

    def newest(self, partition: Partition) -> float:
        """Return when the latest object of a partition was put, pending or not; UNIX seconds.

        Never later than the listing: objects that arrive after it are left to the next run.
        """
        head = self.registry.head(self.stream, partition.path)
        return min(head.newest, self.at) if head else 0.0

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Yield pages of the pending objects of a partition, like ObjectStore's method.

        Objects that arrived after the listing are left to the next run, because their ages would be
        wrong.

        Raises:
            TransientStoreError: the table did not answer.
        """
        partition = Partition(bucket, prefix, prefix.removeprefix(self._prefix))
        after = start_after.removeprefix(prefix)
        items = iter(self.registry.pending(self.stream, partition, after))
        while page := list(islice(items, _PAGE_ITEMS)):
            yield [one.source for one in page if self._is_wanted(one)]

    def doubted(self, head: Callable[[str, str], ObjectHead | None]) -> Confirmed:
        """Return the same listing without objects that no longer exist.

        Args:
            head: sends HEAD for an object; called from several threads.
        """
        return Confirmed(self, head)

    def is_gone(self, source: SourceObject) -> bool:
        """Return True if an object was found to no longer exist."""
        return source.identity in self._gone

    def note_gone(self, sources: Iterable[SourceObject]) -> None:
        """Record that these objects no longer exist."""
        self._gone |= {one.identity for one in sources}

    def settle(
        self, partition: Partition, judge: Callable[[Item], Mark | None], now: float
    ) -> Marked:
        """Record the new state of everything pending in a partition, after its commits.

        If the process dies before this, the next run does it, because the commit log has the facts.

        Args:
            partition: the partition.
            judge: returns the change to record for an item; None to leave it pending.
            now: UNIX seconds.

        Raises:
            TransientStoreError: the table did not answer; commits are not affected.
        """
        head = self.registry.head(self.stream, partition.path)
        found, tally = Marked(), _Tally()
        marks = tally.over(self.registry.pending(self.stream, partition), judge)
        for one in _noting(marks, found, now):
            self.registry.mark(self.stream, one, now)
        # Items registered meanwhile have touched the head, so this then fails, as it should.
        if head is not None and not tally.pending:
            self.registry.rest(self.stream, head, now)
        self.marked = found
        return found

    def _is_wanted(self, item: Item) -> bool:
        return item.source.last_modified <= self.at and (self._left or self._is_open(item))

    def _is_open(self, item: Item) -> bool:
        return item.state is ItemState.PENDING or not item.reason.endswith(f"@{self._decided_by}")


class _Tally:
    """Counts the items that stay pending, while passing on marks."""

    def __init__(self) -> None:
        self.pending = 0

    def over(self, items: Iterable[Item], judge: Callable[[Item], Mark | None]) -> Iterator[Mark]:
        for item in items:
            mark = judge(item)
            if mark is None or mark.state is ItemState.LEFT:
                self.pending += 1
            if mark is not None and (mark.state, mark.reason) != (item.state, item.reason):
                yield mark


def _noting(marks: Iterator[Mark], found: Marked, now: float) -> Iterator[list[Mark]]:
    """Yield the marks in pages, and count them."""
    while page := list(islice(marks, _PAGE_ITEMS)):
        yield page
        compacted = [one for one in page if one.state is ItemState.COMPACTED]
        found.compacted += len(compacted)
        found.gone += sum(one.state is ItemState.GONE for one in page)
        found.left += sum(one.state is ItemState.LEFT for one in page)
        for one in compacted[: MOST_AGES - len(found.ages)]:
            found.ages.append(max(0.0, now - one.item.time))


class Confirmed:
    """The pending objects that exist according to HEAD.

    Used once a source has changed while it was read, which means that events are missing or late.
    LIST would cost a request per thousand objects in the prefix, pending or not; HEAD costs one per
    pending object.
    """

    def __init__(
        self, listing: EventListing, head: Callable[[str, str], ObjectHead | None]
    ) -> None:
        self._listing = listing
        self._head = head
        self._there: set[bytes] = set()

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Yield pages of these objects, like ObjectStore's method."""
        for page in self._listing.list_objects(bucket, prefix, start_after=start_after):
            unknown = [one for one in page if one.identity not in self._there]
            gone = [
                one for one, there in zip(unknown, self._ask(unknown), strict=True) if not there
            ]
            self._listing.note_gone(gone)
            found = [one for one in page if not self._listing.is_gone(one)]
            self._there |= {one.identity for one in found}
            yield found

    def _ask(self, sources: Sequence[SourceObject]) -> list[bool]:
        if len(sources) <= _FEW:
            return [self._is_there(one) for one in sources]
        with ThreadPoolExecutor(_CONCURRENT_HEADS, thread_name_prefix="head") as pool:
            return list(pool.map(self._is_there, sources))

    def _is_there(self, source: SourceObject) -> bool:
        found = self._head(source.bucket, source.key)
        return found is not None and found.etag == source.etag
