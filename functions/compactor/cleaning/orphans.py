"""Finds uploads that can no longer be published, left by workers that lost a race or died."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from compactor.destination import Destination
from compactor.log.entries import Commit
from compactor.ports import ObjectStore, OpenUpload

# No worker takes this long from the first part of an output to its commit.
ORPHAN_SECONDS = 3 * 86_400


def abort_losers(
    store: ObjectStore, destination: Destination, unpublished: Iterable[Commit]
) -> int:
    """Abort a partition's uploads for keys at which an output is already readable.

    If two tasks stored the same group, one output is published, and CompleteMultipartUpload with
    ``If-None-Match: *`` can never succeed for the other. Uploads for keys without a readable output
    are left alone: a worker may be about to commit them.

    Args:
        store: the store that holds the outputs.
        destination: the partition's destination.
        unpublished: commits whose outputs are not known to be readable; their uploads are kept.

    Returns:
        Number of aborted uploads.
    """
    needed = {commit.output.upload_id for commit in unpublished if commit.output is not None}
    prefix = destination.stem_prefix
    aborted = 0
    readable: dict[str, bool] = {}
    for upload in store.list_uploads(destination.bucket, prefix):
        if upload.upload_id in needed:
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
    """Yield old uploads of a partition's outputs that no commit names.

    Args:
        store: the store that holds the uploads.
        destination: the partition's destination; deeper keys belong to other partitions.
        named: ids of the uploads that valid commits name.
        now: UNIX seconds, by the earlier of our clock and the store's.
    """
    for upload in store.list_uploads(destination.bucket, destination.stem_prefix):
        old = now - upload.began >= ORPHAN_SECONDS
        if old and upload.upload_id not in named and destination.is_output(upload.key):
            yield upload
