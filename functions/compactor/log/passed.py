"""What is left beside the log once a commit of older rules was examined, and found sound."""

from __future__ import annotations

import msgspec

from compactor import layout
from compactor.decoding import decoder, require_version
from compactor.errors import AlreadyExists, IntegrityError, ObjectMissing
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
    key = state.prefix + layout.passed_name(path, sequence)
    try:
        body = store.get(state.bucket, key)
    except ObjectMissing:
        return False
    require_version(f"s3://{state.bucket}/{key}", body, RECORD_VERSION)
    try:
        return _decode(body).commit_id == commit_id
    except (ValueError, msgspec.MsgspecError) as error:
        raise IntegrityError(f"s3://{state.bucket}/{key} is damaged: {error}") from error


def write_passed(
    state: S3Uri, path: str, sequence: int, record: PassedRecord, store: ObjectStore
) -> None:
    """Write the record, once; the first one stands.

    Raises:
        IntegrityError: there is one already, about another commit.
    """
    key = state.prefix + layout.passed_name(path, sequence)
    body = msgspec.json.encode(record)
    try:
        store.create(state.bucket, key, body, content_type="application/json")
    except AlreadyExists:
        if not has_passed(state, path, sequence, record.commit_id, store):
            message = f"s3://{state.bucket}/{key} is about another commit"
            raise IntegrityError(message) from None
