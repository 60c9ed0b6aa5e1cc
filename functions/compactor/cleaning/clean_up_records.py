"""Records stored next to the log for commits that clean-up has finished."""

from __future__ import annotations

import msgspec

from compactor.decoding import decoder
from compactor.documents import leave_first, read_document
from compactor.errors import damaged
from compactor.ports import ObjectStore

RECORD_VERSION = 1


class CleanUpRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Says that clean-up has finished a commit: no source that it names is requested again.

    Attributes:
        at: UNIX seconds.
        deleted, deleted_bytes: sources that are gone.
        markers: how many of those remain as a noncurrent version under a delete marker.
        changed: sources that stay because their key holds another object.
    """

    version: int = RECORD_VERSION
    commit_id: str
    run_id: str
    at: float
    deleted: int = 0
    deleted_bytes: int = 0
    markers: int = 0
    changed: int = 0


_decode = decoder(CleanUpRecord)


def write_record(store: ObjectStore, bucket: str, key: str, record: CleanUpRecord) -> bool:
    """Write a record unless there is one; the first one stands.

    Returns:
        True if this record was written.

    Raises:
        IntegrityError: there is already one, about another commit.
    """
    is_first = leave_first(store, (bucket, key), record, RECORD_VERSION)
    if not is_first:
        check_record(store, bucket, key, record.commit_id)
    return is_first


def check_record(store: ObjectStore, bucket: str, key: str, commit_id: str) -> None:
    """Check that a record is about this commit.

    Raises:
        IntegrityError: it is about another one, damaged, or of a later version.
    """
    read_record(store, bucket, key, commit_id)


def read_record(store: ObjectStore, bucket: str, key: str, commit_id: str) -> CleanUpRecord:
    """Return the record about this commit.

    Raises:
        IntegrityError: it is about another one, damaged, or of a later version.
    """
    record = read_document(store, (bucket, key), _decode, RECORD_VERSION)
    if record.commit_id != commit_id:
        about = f"it is about commit {record.commit_id}, and the log has {commit_id} there"
        raise damaged(f"s3://{bucket}/{key}", about)
    return record
