"""What clean-up leaves beside the log once nothing of a commit is left for it to do."""

from __future__ import annotations

import msgspec

from compactor.decoding import decoder
from compactor.documents import leave_first, read_document
from compactor.errors import IntegrityError
from compactor.ports import ObjectStore

RECORD_VERSION = 1


class CleanUpRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One commit is done with: no source that it names will be asked for again.

    Attributes:
        at: UNIX seconds.
        deleted, deleted_bytes: sources that are gone.
        markers: of those, the ones whose version stays under a delete marker.
        changed: sources that stay, because another object stands at their key.
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
    """Write a record, once; the first one stands.

    Returns:
        True when it is this one.

    Raises:
        IntegrityError: there is one already, about another commit.
    """
    is_first = leave_first(store, (bucket, key), record, RECORD_VERSION)
    if not is_first:
        check_record(store, bucket, key, record.commit_id)
    return is_first


def check_record(store: ObjectStore, bucket: str, key: str, commit_id: str) -> None:
    """Make sure that a record is about this commit.

    Raises:
        IntegrityError: it is about another one, damaged, or of a later version.
    """
    read_record(store, bucket, key, commit_id)


def read_record(store: ObjectStore, bucket: str, key: str, commit_id: str) -> CleanUpRecord:
    """The record about this commit.

    Raises:
        IntegrityError: it is about another one, damaged, or of a later version.
    """
    record = read_document(store, (bucket, key), _decode, RECORD_VERSION)
    if record.commit_id != commit_id:
        raise IntegrityError(
            f"s3://{bucket}/{key} is about commit {record.commit_id},"
            f" but the log has {commit_id} there: it was changed by hand"
        )
    return record
