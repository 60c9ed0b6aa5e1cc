"""Publish: makes a committed output readable, whichever process stored it."""

from __future__ import annotations

from compactor.errors import AlreadyExists, IntegrityError, ObjectMissing, UploadLost
from compactor.log.entries import Commit, Output, require_stored
from compactor.ports import ObjectStore


def publish(commit: Commit, store: ObjectStore) -> bool:
    """Complete the upload that a commit names. Idempotent, also if two runs do it concurrently.

    Returns:
        False if the output was readable already, or the commit has no output.

    Raises:
        UploadLost: the output is neither readable nor pending.
        IntegrityError: another object is at the output's key, or the store's checksum differs from
            the committed one.
    """
    output = commit.output
    if output is None:
        return False
    try:
        store.complete_upload(
            output.bucket, output.key, output.upload_id, output.parts, crc32=output.crc32
        )
    except IntegrityError as error:
        remedy = f"abort upload {output.upload_id}, and the next run builds it again"
        raise IntegrityError(
            f"{error}; it stays unreadable, its sources as they are: {remedy}"
        ) from error
    except (AlreadyExists, ObjectMissing):
        # Another run completed it first, or our own first try did and its response was lost.
        if not is_published(output, store):
            raise UploadLost(f"commit {commit.sequence}: no upload for {output.key}") from None
        return False
    return True


def is_published(output: Output, store: ObjectStore) -> bool:
    """Return True if the output is readable, with the committed size and checksum.

    Raises:
        IntegrityError: a different object is at its key.
    """
    head = store.head(output.bucket, output.key)
    if head is None:
        return False
    require_stored(output.uri, (head.size, head.crc32), (output.size, output.crc32))
    return True


def withdraw(commit: Commit, store: ObjectStore) -> bool:
    """Ensure that this commit's upload can never be published; return False if it already was.

    Another commit may replace this one only after True. The abort comes first, so that no other
    run can complete the upload between the check and the new commit.
    """
    output = commit.output
    if output is None:
        return False
    store.abort_upload(output.bucket, output.key, output.upload_id)
    return not is_published(output, store)
