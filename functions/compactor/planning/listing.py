"""Take the listing of one partition, in bounded memory."""

from __future__ import annotations

from collections.abc import Container, Iterator
from math import inf

from compactor.limits import USUAL, WorkerLimits
from compactor.model import Listing, Partition, SourceObject
from compactor.ports import ObjectStore


def take_listing(
    store: ObjectStore,
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
        store: where the partition is.
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


def _objects(store: ObjectStore, partition: Partition, start_after: str) -> Iterator[SourceObject]:
    for page in store.list_objects(partition.bucket, partition.prefix, start_after=start_after):
        yield from page
