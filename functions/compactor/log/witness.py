"""Witness: the object beside an entry that keeps its number taken, should the entry be deleted.

It is created after the entry and before the output is published. A writer that gets a number that
an entry had before finds its witness, which names another commit, and publishes nothing. So of two
workers that both believe to have committed as number n, because an entry of
the log was deleted between them, one alone publishes.
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
    """Which commit the entry of its number is.

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
    """Write the witness of an entry that is there; safe to run twice, also concurrently.

    Args:
        store: where it is.
        bucket: in which bucket.
        key: and under which key.
        witness: of that entry.
        again: write over what is there, such as that of an entry that is gone.

    Raises:
        IntegrityError: there is one already, of another commit.
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
    """The witness of an entry; None where there is none.

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
    """Make sure that a witness is that of the entry with this commit id.

    Raises:
        IntegrityError: it is another commit's, damaged, of a later version, or gone since it was
            listed.
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
