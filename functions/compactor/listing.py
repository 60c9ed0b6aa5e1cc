"""Take the listing of one partition, in bounded memory."""

from __future__ import annotations

from collections.abc import Container

from compactor.model import Listing, Partition, SourceObject
from compactor.ports import ObjectStore

# With its row in the manifest a source takes about 1 KB: 50 MB, whatever the partition.
LISTING_WINDOW = 50_000


def take_listing(
    store: ObjectStore, partition: Partition, committed: Container[bytes], start_after: str = ""
) -> Listing:
    """List a partition, holding only what no commit names, about ``LISTING_WINDOW`` of it.

    Args:
        store: where the partition is.
        partition: what to list.
        committed: identities of sources that commits name; they are only counted.
        start_after: list from behind this key on; empty for the start.
    """
    fresh: list[SourceObject] = []
    committed_objects = committed_bytes = 0
    newest = 0.0
    complete = True
    last_key = ""
    pages = store.list_objects(partition.bucket, partition.prefix, start_after=start_after)
    for page in pages:
        if len(fresh) >= LISTING_WINDOW:
            complete = False
            break
        for source in page:
            newest = max(newest, source.last_modified)
            if source.identity in committed:
                committed_objects += 1
                committed_bytes += source.size
            else:
                fresh.append(source)
        last_key = page[-1].key if page else last_key
    return Listing(
        partition, tuple(fresh), committed_objects, committed_bytes, newest, complete, last_key
    )
