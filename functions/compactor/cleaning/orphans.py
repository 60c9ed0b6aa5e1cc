"""Uploads that can no longer be published: what is left of workers that lost a race or died."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from compactor.destination import Destination
from compactor.log.entries import Commit
from compactor.ports import ObjectStore, OpenUpload

# No worker takes so long from the first part of an output to its commit.
ORPHAN_SECONDS = 3 * 86_400


def abort_losers(
    store: ObjectStore, destination: Destination, unpublished: Iterable[Commit]
) -> int:
    """Abort the uploads of a partition for keys at which an output is readable already.

    Of two tasks that stored the same group one is published. CompleteMultipartUpload with
    ``If-None-Match: *`` can never succeed for the other. Uploads for keys at
    which nothing is readable are left alone: a worker may be about to commit them.

    Args:
        store: where the outputs are.
        destination: of the partition.
        unpublished: commits whose outputs are not known to be readable; their uploads are kept.

    Returns:
        How many uploads were aborted.
    """
    kept = {commit.output.upload_id for commit in unpublished if commit.output is not None}
    prefix = destination.stem_prefix
    aborted = 0
    readable: dict[str, bool] = {}
    for upload in store.list_uploads(destination.bucket, prefix):
        if upload.upload_id in kept:
            continue
        if upload.key not in readable:
            readable[upload.key] = store.head(destination.bucket, upload.key) is not None
        if readable[upload.key]:
            store.abort_upload(destination.bucket, upload.key, upload.upload_id)
            aborted += 1
    return aborted


def find_orphans(
    store: ObjectStore, destination: Destination, named: Container[str], now: float
) -> Iterator[OpenUpload]:
    """The uploads of a partition's outputs that no commit names, once they are old.

    Args:
        store: where the uploads are.
        destination: of the partition; what lies deeper belongs to other partitions.
        named: ids of the uploads that valid commits name.
        now: UNIX seconds, by the earlier of our clock and the store's.
    """
    for upload in store.list_uploads(destination.bucket, destination.stem_prefix):
        old = now - upload.began >= ORPHAN_SECONDS
        if old and upload.upload_id not in named and destination.is_output(upload.key):
            yield upload
