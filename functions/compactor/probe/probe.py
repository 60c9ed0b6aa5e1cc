"""Probes a store other than AWS for the conditions that compaction's guarantees rest on.

Each condition is tried on small objects below the state prefix, and judged by the objects
afterwards, not by the answer, which may have been lost.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from urllib.parse import urlsplit

import msgspec
from isal import isal_zlib

from compactor.decoding import decoder, numbered, require_version
from compactor.errors import (
    AlreadyExists,
    CompactorError,
    IntegrityError,
    InvalidInput,
    ObjectMissing,
    SourceChanged,
    object_gone,
)
from compactor.model import SourceObject
from compactor.ports import Deletes, ObjectStore, StoreTraits
from compactor.settings.uris import S3Uri

RECORD_VERSION = 1
REMEMBERED_SECONDS = 86_400.0
# The endpoints of AWS in all its partitions, VPC and dual-stack endpoints included.
_AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".amazonaws.eu")
_NO_ETAG = "0" * 32


class ProbeRecord(msgspec.Struct, frozen=True):
    """The result of one probe, which the workers of a run read instead of probing again.

    Attributes:
        at: time of the probe by the local clock, UNIX seconds.
    """

    endpoint: str
    at: float
    traits: StoreTraits


_decode = decoder(ProbeRecord)


def is_aws(endpoint_url: str) -> bool:
    """Return whether an endpoint belongs to AWS, which honours every condition."""
    host = urlsplit(endpoint_url).hostname or ""
    return host.endswith(_AWS_DOMAINS)


def traits_for(
    state: S3Uri, store: ObjectStore, now: float, *, remembered_seconds: float = math.inf
) -> StoreTraits:
    """Return what a store can be relied on to do. AWS is not asked.

    Args:
        state: where the state lies, in the bucket that is probed.
        store: the store.
        now: UNIX seconds.
        remembered_seconds: age of a recorded probe from which the store is probed again.

    Raises:
        InvalidInput: the store does not honour a condition without which no run is safe, or the
            state prefix cannot be written.
        TransientStoreError: the store did not answer.
    """
    if is_aws(store.endpoint_url):
        return StoreTraits()
    bucket, key = probe_key(state, store.endpoint_url)
    # Only a cache: a record that cannot be read is replaced.
    with suppress(ObjectMissing, msgspec.MsgspecError, IntegrityError):
        body = store.get(bucket, key)
        require_version(f"s3://{bucket}/{key}", body, RECORD_VERSION)
        record = _decode(body)
        if abs(now - record.at) < remembered_seconds:
            return record.traits
    traits = probe(state, store)
    record = ProbeRecord(store.endpoint_url, now, traits)
    encoded = msgspec.json.format(msgspec.json.encode(numbered(record, RECORD_VERSION)), indent=1)
    store.put(bucket, key, encoded, content_type="application/json")
    return traits


def probe(state: S3Uri, store: ObjectStore) -> StoreTraits:
    """Try every condition now; see :func:`traits_for`."""
    trial = _Trial(state, store)
    try:
        trial.require("If-None-Match on PutObject", trial.creates_once)
        trial.require("If-Match on GetObject", trial.reads_if_match)
        checks_crc32 = trial.refuses_wrong_crc32()
        if checks_crc32:
            trial.require("the full-object CRC32 on CompleteMultipartUpload", trial.publishes)
        trial.require("If-None-Match on CompleteMultipartUpload", trial.publishes_once)
        return StoreTraits(copies=False, checks_crc32=checks_crc32, deletes=trial.deletes())
    finally:
        trial.remove()


def probe_key(state: S3Uri, endpoint_url: str) -> tuple[str, str]:
    """Return the bucket and key of the record of the probe of this endpoint."""
    name = hashlib.blake2b(endpoint_url.encode(), digest_size=16).hexdigest()
    return state.bucket, f"{state.prefix}probes/{name}.json"


class _Trial:
    """One probe, below a prefix of its own."""

    def __init__(self, state: S3Uri, store: ObjectStore) -> None:
        self._store = store.with_traits(StoreTraits())
        self._bucket, self._prefix = state.bucket, f"{state.prefix}probes/{uuid.uuid4().hex}/"

    def require(self, condition: str, is_honoured: Callable[[], bool]) -> None:
        url, act = self._store.endpoint_url, "ignores"
        try:
            if is_honoured():
                return
        except InvalidInput as error:
            # Other fields concern the bucket, the credentials or the role.
            if error.field != "request":
                raise
            act = "refuses"
        accepted = f"a store that honours {condition}"
        line = f"endpoint: {url} {act} {condition}, without which no run is safe"
        raise InvalidInput("endpoint", url, accepted, message=line)

    def creates_once(self) -> bool:
        for body in (b"the first", b"the second"):
            with suppress(AlreadyExists):
                self._store.create(self._bucket, self._prefix + "create", body)
        return self._store.get(self._bucket, self._prefix + "create") == b"the first"

    def reads_if_match(self) -> bool:
        source = self._written("create")
        try:
            self._store.read_range(replace(source, etag=_NO_ETAG), 0, source.size)
        except SourceChanged as error:
            # With its ETag, the store has sent the object, and only the client refused it.
            return error.found != source.etag
        return False

    def refuses_wrong_crc32(self) -> bool:
        with suppress(IntegrityError, InvalidInput):
            self._publish(b"the first", damage=1)
        return self._store.head(self._bucket, self._prefix + "publish") is None

    def publishes(self) -> bool:
        self._publish(b"the first")
        return self._store.head(self._bucket, self._prefix + "publish") is not None

    def publishes_once(self) -> bool:
        with suppress(AlreadyExists):
            self._publish(b"the second")
        return self._store.get(self._bucket, self._prefix + "publish") == b"the first"

    def deletes(self) -> Deletes:
        return next(filter(self._honours, (Deletes.BATCH, Deletes.SINGLE)), Deletes.NONE)

    def remove(self) -> None:
        """Remove what was written, as far as this role may."""
        store = self._store.with_traits(StoreTraits(deletes=Deletes.SINGLE))
        with suppress(CompactorError):
            for upload in list(store.list_uploads(self._bucket, self._prefix)):
                store.abort_upload(self._bucket, upload.key, upload.upload_id)
        with suppress(CompactorError):
            for page in list(store.list_objects(self._bucket, self._prefix)):
                store.delete_sources(page)

    def _honours(self, deletes: Deletes) -> bool:
        name = f"delete-{deletes}"
        self._store.put(self._bucket, self._prefix + name, b"not to be deleted")
        source = self._written(name)
        store = self._store.with_traits(StoreTraits(deletes=deletes))
        store.delete_sources([replace(source, etag=_NO_ETAG)])
        if store.head(source.bucket, source.key) is None:
            return False
        store.delete_sources([source])
        return store.head(source.bucket, source.key) is None

    def _publish(self, body: bytes, *, damage: int = 0) -> None:
        key, crc32 = self._prefix + "publish", isal_zlib.crc32(body) ^ damage
        upload_id = self._store.create_upload(self._bucket, key)
        parts = [self._store.upload_part(self._bucket, key, upload_id, 1, body)]
        self._store.complete_upload(self._bucket, key, upload_id, parts, crc32=crc32)

    def _written(self, name: str) -> SourceObject:
        key = self._prefix + name
        head = self._store.head(self._bucket, key)
        if head is None:
            raise object_gone(
                f"s3://{self._bucket}/{key}", "it was just written; use another store"
            )
        return SourceObject(self._bucket, key, head.etag, head.size, head.last_modified)
