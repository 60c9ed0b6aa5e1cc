"""A store under contract, and another way to its bucket that is not under test."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol
from unittest.mock import patch

import obstore
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from obstore.store import S3Store as ObstoreStore

from compactor.model import SourceObject
from compactor.ports import ObjectStore
from tests.support.memory_store import Call, MemoryStore

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

_SEEDED_AT_ONCE = 16
_DAMAGED = "AAAAAA=="


class Bench(Protocol):
    """What the cases need of a store and its bucket."""

    bucket: str

    @property
    def store(self) -> ObjectStore:
        """What is under test."""
        ...

    def seed(self, key: str, body: bytes = b"content") -> SourceObject:
        """Put an object there as some producer did; returns it as it must be listed."""
        ...

    def seed_many(self, keys: Iterable[str]) -> None:
        """Put objects of no bytes there, fast."""
        ...

    def remove(self, key: str) -> None:
        """Take an object away as some other program would."""
        ...

    def contents(self) -> dict[str, bytes]:
        """The readable objects."""
        ...

    def uploads(self) -> set[str]:
        """Ids of the uploads neither completed nor aborted."""
        ...

    def keep_versions(self) -> None:
        """Make the bucket a versioned one."""
        ...

    def versions(self, key: str) -> set[bytes]:
        """All that is kept under a key, readable or not."""
        ...

    def damaged_parts(self) -> AbstractContextManager[None]:
        """While it lasts, the bytes of parts are not those of their checksums."""
        ...

    def pages_of(self, size: int) -> AbstractContextManager[None]:
        """While it lasts, lists of uploads come in pages of this size."""
        ...


class InMemory:
    """The strict in-memory store."""

    def __init__(self) -> None:
        self.bucket = "bucket"
        self.store = MemoryStore()
        self.store.add_bucket(self.bucket)

    def seed(self, key: str, body: bytes = b"content") -> SourceObject:
        return self.store.seed(self.bucket, key, body)

    def seed_many(self, keys: Iterable[str]) -> None:
        for key in keys:
            self.seed(key, b"")

    def remove(self, key: str) -> None:
        self.store.remove(self.bucket, key)

    def contents(self) -> dict[str, bytes]:
        return self.store.contents(self.bucket)

    def uploads(self) -> set[str]:
        return set(self.store.unfinished_uploads(self.bucket))

    def keep_versions(self) -> None:
        self.store.add_bucket(self.bucket, versioned=True)

    def versions(self, key: str) -> set[bytes]:
        current = self.contents().get(key)
        return {*self.store.noncurrent(self.bucket, key)} | ({current} if current else set())

    @contextmanager
    def damaged_parts(self) -> Iterator[None]:
        def damage(call: Call, body: bytes) -> bytes:
            return body[:-1] + b"?"

        self.store.hooks.wire.append(damage)
        yield
        self.store.hooks.wire.remove(damage)

    @contextmanager
    def pages_of(self, size: int) -> Iterator[None]:
        self.store.page_size, before = size, self.store.page_size
        yield
        self.store.page_size = before


@dataclass
class OnServer:
    """A store on a server, a client of its own there, and a client that no store has."""

    store: ObjectStore
    store_client: S3Client
    client: S3Client
    bucket: str

    def seed(self, key: str, body: bytes = b"content") -> SourceObject:
        # A stream, because boto3 would take an empty body for none in some versions.
        etag = self.client.put_object(Bucket=self.bucket, Key=key, Body=io.BytesIO(body))["ETag"]
        head = self.client.head_object(Bucket=self.bucket, Key=key)
        arrived = head["LastModified"].timestamp()
        return SourceObject(self.bucket, key, etag.strip('"'), len(body), arrived)

    def seed_many(self, keys: Iterable[str]) -> None:
        there = ObstoreStore(
            self.bucket,
            endpoint=self.client.meta.endpoint_url,
            client_options={"allow_http": True},
            virtual_hosted_style_request=False,
        )
        with ThreadPoolExecutor(_SEEDED_AT_ONCE) as pool:
            list(pool.map(lambda key: obstore.put(there, key, b""), keys))

    def remove(self, key: str) -> None:
        self.client.delete_object(Bucket=self.bucket, Key=key)

    def contents(self) -> dict[str, bytes]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        return {
            key: self.client.get_object(Bucket=self.bucket, Key=key)["Body"].read() for key in keys
        }

    def uploads(self) -> set[str]:
        answer = self.client.list_multipart_uploads(Bucket=self.bucket)
        return {upload["UploadId"] for upload in answer.get("Uploads", ())}

    def keep_versions(self) -> None:
        self.client.put_bucket_versioning(
            Bucket=self.bucket, VersioningConfiguration={"Status": "Enabled"}
        )

    def versions(self, key: str) -> set[bytes]:
        listed = self.client.list_object_versions(Bucket=self.bucket, Prefix=key)
        get = self.client.get_object
        return {
            get(Bucket=self.bucket, Key=key, VersionId=one["VersionId"])["Body"].read()
            for one in listed.get("Versions", ())
            if one["Key"] == key
        }

    @contextmanager
    def damaged_parts(self) -> Iterator[None]:
        # The body arrives as it was sent, but its checksum is that of other bytes.
        with patch("compactor.s3.uploads.encoded_crc32", return_value=_DAMAGED):
            yield

    @contextmanager
    def pages_of(self, size: int) -> Iterator[None]:
        with self._changed("ListMultipartUploads", {"MaxUploads": size}):
            yield

    @contextmanager
    def _changed(self, operation: str, parameters: dict[str, Any]) -> Iterator[None]:
        """The store's own requests of one kind, with other parameters than it gave."""

        def change(params: dict[str, Any], **_: object) -> dict[str, Any]:
            return params | parameters

        events: Any = self.store_client.meta.events
        events.register(f"provide-client-params.s3.{operation}", change)
        try:
            yield
        finally:
            # The client is that of other tests, too.
            events.unregister(f"provide-client-params.s3.{operation}", change)


class OnMoto(OnServer):
    """As on any server, but that one is in this process."""

    def seed_many(self, keys: Iterable[str]) -> None:
        # Past the protocol, because it takes 10 ms for a PUT.
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        for key in keys:
            backend.put_object(self.bucket, key, b"")
