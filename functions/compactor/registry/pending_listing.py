"""What is pending in a stream, as a listing of its source; and what becomes of it after a run."""

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
# Concurrent HEAD requests, where so many are asked that threads are worth it.
_CONCURRENT_HEADS, _FEW = 32, 8
#: Of a call: enough for percentiles, and what one metric of CloudWatch takes in one call.
MOST_AGES = 100


class Marked(msgspec.Struct):
    """What was noted of items.

    Attributes:
        compacted: that a commit names.
        gone: whose object is not there any more.
        left: that no run takes as things stand.
        ages: of some of those compacted: seconds from their arrival to the mark, at which they
            can be queried.
    """

    compacted: int = 0
    gone: int = 0
    left: int = 0
    ages: list[float] = msgspec.field(default_factory=list)


class EventListing:
    """What is pending in a stream; thread safe.

    Args:
        registry: where it is.
        stream: name of the stream.
        root: bucket and prefix of its source.
        at: when it is asked, UNIX seconds: ages count from then.
        left: also what earlier runs left; otherwise only of other settings than these.
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
        self._at = at
        self._left = left
        self._decided_by = decided_by
        self._gone: set[bytes] = set()

    @property
    def as_of(self) -> float:
        """When it is asked, UNIX seconds."""
        return self._at

    def covers(self, bucket: str, prefix: str) -> bool:
        """True where all that is below a prefix comes from events."""
        return bucket == self._bucket and prefix.startswith(self._prefix)

    def partitions(self) -> list[Partition]:
        """Partitions with something pending, in order of their paths."""
        paths = sorted(head.path for head in self.registry.heads(self.stream))
        return [Partition(self._bucket, self._prefix + path, path) for path in paths]

    def newest(self, partition: Partition) -> float:
        """When the latest object of a partition was put, pending or not; UNIX seconds.

        At most when it was asked: what comes later is for the next run.
        """
        head = self.registry.head(self.stream, partition.path)
        return min(head.newest, self._at) if head else 0.0

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Pages of what is pending in the partition with this prefix, as ObjectStore's.

        What came after it was asked is left for the next run: no age of it would be right.

        Raises:
            TransientStoreError: the table did not answer.
        """
        partition = Partition(bucket, prefix, prefix.removeprefix(self._prefix))
        after = start_after.removeprefix(prefix)
        items = iter(self.registry.pending(self.stream, partition, after))
        while page := list(islice(items, _PAGE_ITEMS)):
            yield [one.source for one in page if self._is_wanted(one)]

    def doubted(self, head: Callable[[str, str], ObjectHead | None]) -> Confirmed:
        """The same, but for what is not there any more.

        Args:
            head: asks the store for an object; from several threads concurrently.
        """
        return Confirmed(self, head)

    def is_gone(self, source: SourceObject) -> bool:
        """Whether it was seen that an object is not there any more."""
        return source.identity in self._gone

    def note_gone(self, sources: Iterable[SourceObject]) -> None:
        """These are not there any more."""
        self._gone |= {one.identity for one in sources}

    def settle(
        self, partition: Partition, judge: Callable[[Item], Mark | None], now: float
    ) -> Marked:
        """Note what became of all that is pending in a partition, after its commits.

        A process that dies before this leaves it to the next run: the commit log knows.

        Args:
            partition: which.
            judge: what is to be noted of an item; None to leave it pending.
            now: UNIX seconds.

        Raises:
            TransientStoreError: the table did not answer; commits stand.
        """
        head = self.registry.head(self.stream, partition.path)
        found, tally = Marked(), _Tally()
        marks = tally.over(self.registry.pending(self.stream, partition), judge)
        for one in _noting(marks, found, now):
            self.registry.mark(self.stream, one, now)
        # What was registered meanwhile has touched the head since.
        if head is not None and not tally.pending:
            self.registry.rest(self.stream, head, now)
        self.marked = found
        return found

    def _is_wanted(self, item: Item) -> bool:
        return item.source.last_modified <= self._at and (self._left or self._is_open(item))

    def _is_open(self, item: Item) -> bool:
        return item.state is ItemState.PENDING or not item.reason.endswith(f"@{self._decided_by}")


class _Tally:
    """Counts what stays pending while marks go by."""

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
    """The marks page by page, counted."""
    while page := list(islice(marks, _PAGE_ITEMS)):
        yield page
        compacted = [one for one in page if one.state is ItemState.COMPACTED]
        found.compacted += len(compacted)
        found.gone += sum(one.state is ItemState.GONE for one in page)
        found.left += sum(one.state is ItemState.LEFT for one in page)
        for one in compacted[: MOST_AGES - len(found.ages)]:
            found.ages.append(max(0.0, now - one.item.time))


class Confirmed:
    """What is pending and, as HEAD says, there.

    A source that changed while it was read shows that events are missing or late. LIST would cost
    a request for each thousand objects of the prefix, pending or not; HEAD one for each that is.
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
        """Pages of these, as ObjectStore's."""
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
