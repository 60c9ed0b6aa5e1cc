"""Witness: the object next to an entry that keeps its number taken if the entry is deleted.

It is created after the entry and before the output is published. A writer that reuses the number of
a deleted entry finds its witness, which names another commit, and publishes nothing. So if an entry
is deleted and two workers both believe they committed it as number n, only one publishes.
"""

from __future__ import annotations

import msgspec

from compactor.decoding import decoded, decoder
from compactor.errors import AlreadyExists, IntegrityError, ObjectMissing
from compactor.log.identity import WAY_OUT
from compactor.ports import ObjectStore

WITNESS_VERSION = 1
_JSON = "application/json"


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that owns a sequence number.

    Attributes:
        log_id: identity of the log.
    """

    version: int = WITNESS_VERSION
    commit_id: str
    log_id: str


_decode = decoder(Witness)


def leave_witness(
    store: ObjectStore, bucket: str, key: str, witness: Witness, *, again: bool = False
) -> None:
    """Write the witness of an existing entry; safe to run twice, also concurrently.

    Args:
        store: the store that holds the log.
        bucket: bucket of the witness.
        key: key of the witness.
        witness: the entry's witness.
        again: overwrite an existing witness, such as that of a lost entry.

    Raises:
        IntegrityError: there is already one, of another commit.
    """
    body = msgspec.json.encode(witness)
    if again:
        return store.put(bucket, key, body, content_type=_JSON)
    try:
        store.create(bucket, key, body, content_type=_JSON)
    except AlreadyExists:
        require_witness(store, bucket, key, witness.commit_id)
    return None


def read_witness(store: ObjectStore, bucket: str, key: str) -> Witness | None:
    """Return the witness of an entry, or None.

    Raises:
        IntegrityError: it is damaged, or of a later version.
    """
    where = f"s3://{bucket}/{key}"
    try:
        body = store.get(bucket, key)
    except ObjectMissing:
        return None
    return decoded(_decode, where, body, WITNESS_VERSION, way_out=WAY_OUT)


def require_witness(store: ObjectStore, bucket: str, key: str, commit_id: str) -> None:
    """Check that a witness names this commit.

    Raises:
        IntegrityError: it names another commit, is damaged or of a later version, or was deleted
            since it was listed.
    """
    found = read_witness(store, bucket, key)
    where = f"s3://{bucket}/{key}"
    if found is None:
        raise IntegrityError(f"{where} is damaged: it was deleted just now")
    if found.commit_id != commit_id:
        raise IntegrityError(
            f"{where} says that this entry of the commit log is commit {found.commit_id}, and it is"
            f" {commit_id}: an entry was deleted, or put back over another one; {WAY_OUT}"
        )
