"""What is left beside the log once a commit of older rules was examined, and found sound."""

from __future__ import annotations

import msgspec

from compactor import layout
from compactor.decoding import decoder
from compactor.documents import find_document, leave_first
from compactor.errors import IntegrityError
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri

RECORD_VERSION = 1


class PassedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """An independent reader found in the output what it found in the sources.

    Attributes:
        at: UNIX seconds.
        by: command that examined it.
    """

    version: int = RECORD_VERSION
    commit_id: str
    at: float
    by: str


_decode = decoder(PassedRecord)


def has_passed(state: S3Uri, path: str, sequence: int, commit_id: str, store: ObjectStore) -> bool:
    """True when this very commit of the partition at ``path`` was examined, and found sound.

    Raises:
        IntegrityError: the record is damaged, or of a later version.
    """
    place = (state.bucket, state.prefix + layout.passed_name(path, sequence))
    found = find_document(store, place, _decode, RECORD_VERSION)
    return found is not None and found.commit_id == commit_id


def write_passed(
    state: S3Uri, path: str, sequence: int, record: PassedRecord, store: ObjectStore
) -> None:
    """Write the record, once; the first one stands.

    Raises:
        IntegrityError: there is one already, about another commit.
    """
    bucket, key = state.bucket, state.prefix + layout.passed_name(path, sequence)
    if leave_first(store, (bucket, key), record, RECORD_VERSION):
        return
    if not has_passed(state, path, sequence, record.commit_id, store):
        raise IntegrityError(f"s3://{bucket}/{key} is about another commit")
