"""Take the listing of one partition, in bounded memory."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from compactor.limits import USUAL, WorkerLimits
from compactor.model import Listing, Partition, SourceObject


class Lists(Protocol):
    """Whatever tells which objects there are: a store, or what was listed before."""

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Pages of all objects below a prefix in UTF-8 key order."""
        ...


class EarlierListing(Lists, Protocol):
    """What was listed before the run began."""

    @property
    def as_of(self) -> float:
        """When it was, UNIX seconds."""
        ...

    def newest(self, partition: Partition) -> float:
        """When a partition's latest object arrived, listed or not; 0.0 where all are listed."""
        ...


@dataclass(frozen=True, slots=True)
class AsOf:
    """What a store lists, but for what arrived after a time.

    Attributes:
        at: UNIX seconds.
    """

    store: Lists
    at: float

    def list_objects(
        self, bucket: str, prefix: str, *, start_after: str = ""
    ) -> Iterator[Sequence[SourceObject]]:
        """Pages of what was there before, and is there still."""
        for page in self.store.list_objects(bucket, prefix, start_after=start_after):
            yield [one for one in page if one.last_modified <= self.at]


def take_listing(
    store: Lists,
    partition: Partition,
    committed: Container[bytes],
    start_after: str = "",
    until: str | None = None,
    *,
    written_at: float = inf,
    limits: WorkerLimits = USUAL,
) -> Listing:
    """List a partition, holding only what no commit names, at most ``window_objects`` of it.

    Where a listing ends hangs on the keys alone, never on how the store cuts its pages: two
    workers that list the same objects hold the same.

    Args:
        store: what tells what is in the partition.
        partition: what to list.
        committed: identities of sources that commits name; they are only counted.
        start_after: list from behind this key on; empty for the start.
        written_at: when the newest commit was written, by the store's clock; UNIX seconds. What
            one names, and is younger, was put again.
        until: the last key to list, however many there are before it; None for as many as a
            listing may hold.
        limits: what a worker keeps to.
    """
    fresh: list[SourceObject] = []
    returned: list[SourceObject] = []
    committed_objects = committed_bytes = 0
    newest = 0.0
    complete = True
    last_key = ""
    most = limits.window_objects
    for source in _objects(store, partition, start_after):
        if until is not None and source.key > until:
            break
        held = len(fresh) + len(returned)
        if source.identity in committed:
            if source.last_modified <= written_at:
                committed_objects += 1
                committed_bytes += source.size
            elif until is None and held >= most:
                complete = False
                break
            else:
                returned.append(source)
        elif until is None and held >= most:
            complete = False
            break
        else:
            fresh.append(source)
        newest = max(newest, source.last_modified)
        last_key = source.key
    if until is not None:
        complete, last_key = False, until
    return Listing(
        partition,
        tuple(fresh),
        committed_objects,
        committed_bytes,
        newest,
        complete,
        last_key,
        tuple(returned),
    )


def _objects(store: Lists, partition: Partition, start_after: str) -> Iterator[SourceObject]:
    for page in store.list_objects(partition.bucket, partition.prefix, start_after=start_after):
        yield from page
