"""Stores under contract, each on a bucket of its own.

To put another store class on a server under the same contract, add it to ``ON_A_SERVER``.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Protocol

import boto3
import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.stores.s3 import S3Store, make_client
from tests.support.memory_store import MemoryStore
from tests.support.moto_server import moto_server

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

ON_A_SERVER: Mapping[str, Callable[[S3Client], ObjectStore]] = {
    "boto3": lambda client: S3Store(client, threads=4, fast=False),
    "obstore": lambda client: S3Store(client, threads=4),
}
_numbers = count()


class Bench(Protocol):
    """A store, and another way to its bucket that is not under test."""

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


@dataclass
class OnServer:
    """A store on a server, and a client of that server."""

    store: ObjectStore
    client: S3Client
    bucket: str

    def seed(self, key: str, body: bytes = b"content") -> SourceObject:
        # A stream, because boto3 would take an empty body for none in some versions.
        etag = self.client.put_object(Bucket=self.bucket, Key=key, Body=io.BytesIO(body))["ETag"]
        head = self.client.head_object(Bucket=self.bucket, Key=key)
        arrived = head["LastModified"].timestamp()
        return SourceObject(self.bucket, key, etag.strip('"'), len(body), arrived)

    def seed_many(self, keys: Iterable[str]) -> None:
        # Past the protocol: the server is in this process, and takes 10 ms for a PUT.
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        for key in keys:
            backend.put_object(self.bucket, key, b"")

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


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server that this module has to itself."""
    with moto_server() as url:
        yield url


@pytest.fixture(scope="module")
def store_client(endpoint: str) -> S3Client:
    """The client that stores use."""
    return make_client(endpoint, connections=8)


@pytest.fixture(scope="module")
def plain_client(endpoint: str) -> S3Client:
    """A client of the same server that no store has had in its hands."""
    client: S3Client = boto3.client("s3", endpoint_url=endpoint)
    return client


@pytest.fixture(params=["memory", *ON_A_SERVER])
def bench(request: pytest.FixtureRequest) -> Bench:
    """Each store in turn, with an empty bucket."""
    if request.param == "memory":
        return InMemory()
    store = ON_A_SERVER[request.param](request.getfixturevalue("store_client"))
    client: S3Client = request.getfixturevalue("plain_client")
    bucket = f"bucket-{next(_numbers)}"
    client.create_bucket(Bucket=bucket)
    return OnServer(store, client, bucket)


@pytest.fixture
def strict_bench() -> Bench:
    """Only stores whose server honours every condition; moto ignores some."""
    return InMemory()
