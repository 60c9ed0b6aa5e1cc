"""The part of the in-memory store that tests set up and inspect, and how it serves requests."""

from __future__ import annotations

import copy
import itertools
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Self

from compactor.errors import (
    IntegrityError,
    InvalidInput,
    ObjectArchived,
    SourceChanged,
    UnreadableSource,
)
from compactor.model import QuarantineReason, SourceObject
from compactor.ports import Clock, StoreTraits
from tests.support.memory_bucket import ARCHIVED, Bucket, Stored, stored
from tests.support.memory_hooks import Call, Hooks
from tests.support.memory_upload import MAX_PART_BYTES
from tests.support.server_differences import Condition

MIB = 1024 * 1024
AWS_ENDPOINT = "https://s3.us-east-1.amazonaws.com"
_KINDS = {
    "list_objects": "LIST",
    "list_level": "LIST",
    "list_uploads": "LIST",
    "read_source": "GET",
    "get": "GET",
    "get_range": "GET",
    "open": "GET",
    "head": "HEAD",
    "abort_upload": "DELETE",
    "delete_source": "DELETE",
}


@dataclass
class ManualClock:
    """A clock that only tests advance; UNIX seconds."""

    time: float = 1_700_000_000.0

    def now(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds


class MemoryBase:
    """Buckets, hooks and counts of :class:`tests.support.memory_store.MemoryStore`.

    Attributes:
        ignores: conditions that it accepts but does not enforce, like some servers.
        endpoint_url: an endpoint of AWS, unless a test changes it.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        *,
        min_part_bytes: int = 5 * MIB,
        max_part_bytes: int = MAX_PART_BYTES,
        page_size: int = 1_000,
        whole_bytes: int = MIB,
        chunk_bytes: int = 256 * 1024,
    ) -> None:
        self.clock = clock or ManualClock()
        self.hooks = Hooks()
        self.calls: list[Call] = []
        self.denied: set[str] = set()
        # Objects that this role cannot read, permanently or for now, by bucket and key.
        self.unreadable: dict[tuple[str, str], QuarantineReason] = {}
        self._min_part_bytes = min_part_bytes
        self._max_part_bytes = max_part_bytes
        self.page_size = page_size
        self._whole_bytes = whole_bytes
        self._chunk_bytes = chunk_bytes
        self._buckets: dict[str, Bucket] = {}
        self._moved: Counter[str] = Counter()
        self._started = itertools.count(1)
        self.traits = StoreTraits()
        self.ignores: set[Condition] = set()
        self.endpoint_url = AWS_ENDPOINT
        self.region = "us-east-1"
        self._lock = threading.RLock()

    def with_traits(self, traits: StoreTraits) -> Self:
        """Return a store with these traits that shares buckets, hooks and counts."""
        store = copy.copy(self)
        store.traits = traits
        return store

    # What tests set up and inspect; none of this is a request.

    def add_bucket(self, name: str, *, versioned: bool = False) -> None:
        """Create a bucket unless it exists; a versioned one stays versioned."""
        with self._lock:
            bucket = self._buckets.setdefault(name, Bucket(name))
            bucket.versioned = bucket.versioned or versioned

    def seed(
        self,
        bucket: str,
        key: str,
        body: bytes,
        *,
        last_modified: float | None = None,
        storage_class: str = "STANDARD",
        etag: str = "",
        restored_until: float = 0.0,
    ) -> SourceObject:
        """Put an object as a producer would; creates the bucket if needed.

        An explicit ETag is like that of an encrypted or multipart object on S3.
        """
        arrived = self.clock.now() if last_modified is None else last_modified
        one = stored(body, arrived, storage_class=storage_class)
        if etag:
            one = replace(one, etag=etag)
        one = replace(one, restored_until=restored_until)
        with self._lock:
            self.add_bucket(bucket)
            self._buckets[bucket].set(key, one)
        return one.listed(bucket, key)

    def remove(self, bucket: str, key: str) -> None:
        """Delete an object, as another program would."""
        with self._lock:
            self._buckets[bucket].remove(key)

    def rename(self, bucket: str, key: str, new_key: str) -> None:
        """Copy an object with its metadata and delete the original, as ``aws s3 mv`` does."""
        with self._lock:
            there = self._buckets[bucket]
            there.set(new_key, there.objects[key])
            there.remove(key)

    def contents(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        """Return the readable objects below a prefix, in key order."""
        with self._lock:
            objects = self._buckets[bucket].objects
            return {k: objects[k].body for k in sorted(objects) if k.startswith(prefix)}

    def noncurrent(self, bucket: str, key: str) -> list[bytes]:
        """Return the noncurrent versions of a key, oldest first."""
        with self._lock:
            return [one.body for one in self._buckets[bucket].noncurrent.get(key, ())]

    def unfinished_uploads(self, bucket: str) -> dict[str, str]:
        """Return upload id -> key of the uploads that were neither completed nor aborted."""
        with self._lock:
            return {id_: upload.key for id_, upload in self._buckets[bucket].uploads.items()}

    def count(self, *names: str, bucket: str | None = None, prefix: str = "") -> int:
        """Count the requests with these names (all by default) for keys below a prefix."""
        with self._lock:
            return sum(
                (not names or call.name in names)
                and bucket in (None, call.bucket)
                and call.key.startswith(prefix)
                for call in self.calls
            )

    def snapshot(self) -> Mapping[str, int]:
        """Return the number of requests by kind, and the bytes transferred."""
        with self._lock:
            kinds = Counter(_KINDS.get(call.name, "PUT") for call in self.calls)
            return dict(kinds + self._moved)

    # How a request is served.

    def _request(self, name: str, bucket: str, key: str) -> _Request:
        return _Request(self, Call(name, bucket, key))

    def _hooked(self, hooks: list[Callable[[Call], None]], call: Call) -> None:
        if hooks:
            for hook in tuple(hooks):
                hook(call)

    def _bucket(self, name: str) -> Bucket:
        if name in self.denied:
            raise InvalidInput("permission", name, "a role that allows this request")
        if name not in self._buckets:
            raise InvalidInput("bucket", name, "a bucket that exists")
        return self._buckets[name]

    def _pinned(self, source: SourceObject, condition: Condition = Condition.READ) -> Stored:
        """Return a source that this role may read, as it was listed if the condition is enforced.

        If it is not enforced, the client compares the ETag of the answer to a GET.
        """
        there = self._bucket(source.bucket)
        if condition in self.ignores and source.key in there.objects:
            current = there.objects[source.key].listed(source.bucket, source.key)
            if condition is Condition.READ and current.etag != source.etag:
                raise SourceChanged(source.key, source.etag, current.etag)
            source = current
        one = there.pinned(source)
        reason = self.unreadable.get((source.bucket, source.key))
        if reason is not None:
            raise UnreadableSource(reason, f"{source.key}: {reason}")
        return one

    def _require_restored(self, one: Stored, bucket: str, key: str) -> None:
        if one.storage_class in ARCHIVED:
            raise ObjectArchived(f"get s3://{bucket}/{key}: 403 InvalidObjectState")
        if (bucket, key) in self.unreadable:
            told = f"get s3://{bucket}/{key}: 403 AccessDenied"
            raise InvalidInput("permission", told, "a role that allows this request")

    def _sent(self, body: bytes) -> bytes:
        self._moved["bytes_read"] += len(body)
        return body

    def _arrived(self, name: str, bucket: str, key: str, body: bytes) -> bytes:
        """Return the body that arrives; a client also sends its checksum or signature."""
        self._moved["bytes_written"] += len(body)
        arrived = body
        for wire in self.hooks.wire:
            arrived = wire(Call(name, bucket, key), arrived)
        if arrived is not body and zlib.crc32(arrived) != zlib.crc32(body):
            raise IntegrityError(f"BadDigest: s3://{bucket}/{key}: {name}")
        return arrived


class _Request:
    """The context of a request: hooks, lock, bucket. A generator would take twice as long."""

    __slots__ = ("_call", "_store")

    def __init__(self, store: MemoryBase, call: Call) -> None:
        self._store = store
        self._call = call

    def __enter__(self) -> Bucket:
        store, call = self._store, self._call
        store._hooked(store.hooks.before, call)
        store._lock.acquire()
        try:
            store.calls.append(call)
            return store._bucket(call.bucket)
        except BaseException:
            store._lock.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._store._lock.release()
        if kind is None:
            self._store._hooked(self._store.hooks.after, self._call)
