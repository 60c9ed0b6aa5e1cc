"""The pending items of a stream as a listing of its source, and their state after a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

import msgspec

from compactor.log.digests import Digests
from compactor.model import SHOWN_EXAMPLES, Partition, Skipped, SourceObject
from compactor.planning.partition_listing import ListAfter, Pages
from compactor.ports import ObjectHead
from compactor.registry.items import Item, ItemState, Mark
from compactor.registry.registry_ports import Registry

_PAGE_ITEMS = 1_000
# Concurrent HEAD requests; up to _FEW are sent one after another.
_CONCURRENT_HEADS, _FEW = 32, 8
#: Ages kept per call: enough for percentiles, and the most that CloudWatch takes in one call.
MOST_AGES = 100
#: Sends HEAD for the object with this bucket and key.
Head = Callable[[str, str], ObjectHead | None]


class Marked(msgspec.Struct):
    """Totals of the items whose state was recorded.

    Attributes:
        compacted: that a commit names.
        gone: whose object no longer exists.
        left: that no run takes under these settings, or under any.
        ages: of some of the compacted ones: seconds from arrival to the mark, when they can be
            queried.
    """

    compacted: int = 0
    gone: int = 0
    left: int = 0
    ages: list[float] = msgspec.field(default_factory=list)


_LEFT = frozenset({ItemState.LEFT, ItemState.OVERWRITTEN})


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
        self._gone: dict[bytes, SourceObject] = {}
        self._confirmed: set[bytes] = set()

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

    def of(self, partition: Partition, head: Head | None = None) -> ListAfter:
        """Return what lists the pending objects of a partition.

        Objects that arrived after the listing are left to the next run, because their ages would be
        wrong.

        Args:
            partition: the partition.
            head: sends HEAD, from several threads; objects without their listed ETag are noted as
                gone and left out. Given once a source has changed while it was read, which means
                that events are missing or late. LIST would cost a request per thousand objects,
                pending or not; HEAD costs one per pending object.

        Raises:
            TransientStoreError: later, by the listing: the table did not answer.
        """
        return partial(self._after, partition, head)

    def _after(self, partition: Partition, head: Head | None, key: str) -> Pages:
        after = key.removeprefix(partition.prefix)
        items = iter(self.registry.pending(self.stream, partition, after))
        while page := list(islice(items, _PAGE_ITEMS)):
            sources = [item.source for item in page if self._is_wanted(item)]
            if head is not None:
                self._confirm(sources, head)
            yield [source for source in sources if not self.is_gone(source)]

    def _confirm(self, sources: Sequence[SourceObject], head: Head) -> None:
        """Note which of the objects are gone."""

        def is_there(source: SourceObject) -> bool:
            current = head(source.bucket, source.key)
            return current is not None and current.etag == source.etag

        unknown = [one for one in sources if one.identity not in self._confirmed]
        if len(unknown) <= _FEW:
            present = list(map(is_there, unknown))
        else:
            with ThreadPoolExecutor(_CONCURRENT_HEADS, thread_name_prefix="head") as pool:
                present = list(pool.map(is_there, unknown))
        for source, there in zip(unknown, present, strict=True):
            if there:
                self._confirmed.add(source.identity)
            else:
                self._gone[source.identity] = source

    def is_gone(self, source: SourceObject) -> bool:
        """Return True if an object was found to no longer exist."""
        return source.identity in self._gone

    def gone_in(self, partition: Partition, committed: Digests) -> Skipped:
        """Return the sum of the objects of a partition that were gone before their commit."""
        gone = [
            one
            for identity, one in self._gone.items()
            if one.key.startswith(partition.prefix) and not committed.has_key_of(identity)
        ]
        keys = tuple(one.key for one in gone[:SHOWN_EXAMPLES])
        return Skipped(len(gone), sum(one.size for one in gone), keys)

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
        found.left += sum(one.state in _LEFT for one in page)
        for one in compacted[: MOST_AGES - len(found.ages)]:
            found.ages.append(max(0.0, now - one.item.time))
