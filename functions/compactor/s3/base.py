"""The base of the S3 store: its client, request counter, limiter and retries."""

from __future__ import annotations

import base64
import copy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from botocore.exceptions import ClientError

from compactor.attributes import Attributes
from compactor.errors import UnreadableSource
from compactor.model import SourceObject
from compactor.ports import Deadline, StoreTraits
from compactor.s3.bodies import TimeIsUp
from compactor.s3.limiter import Limiter
from compactor.s3.list_parser import install
from compactor.s3.refused_reads import judged_read
from compactor.s3.requests import RequestCounter
from compactor.s3.retries import (
    LEAST_SECONDS,
    NEVER,
    Patience,
    Retries,
    limit_silence,
    sent_within,
)
from compactor.s3.translate import refusal_of, translated
from compactor.settings.encryption import encryptions

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    import threading

    from types_boto3_s3.client import S3Client

Answer = TypeVar("Answer")


class S3Base:
    """A boto3 client that tries each request once, with the limiter and retries around it.

    Attributes:
        client: the boto3 client.
        limiter: bounds the number of concurrent requests.
        retries: repeats failed requests.
        encryptions: what writes name, by bucket.
    """

    def __init__(self, client: S3Client, most_concurrent: int, patience: Patience) -> None:
        install(client)
        limit_silence(client)
        self.client = client
        self.limiter = Limiter(_with_files_left(most_concurrent), clock=patience.clock)
        self.retries = Retries(self.limiter, patience)
        self.requests = RequestCounter()
        self.traits = StoreTraits()
        self.encryptions = encryptions()

    @property
    def endpoint_url(self) -> str:
        return self.client.meta.endpoint_url

    @property
    def region(self) -> str:
        return self.client.meta.region_name or ""

    def with_traits(self, traits: StoreTraits) -> Self:
        """See the port. The new store shares connections, counts and the limiter."""
        store = self._twin()
        store.traits = traits
        return store

    def within(self, deadline: Deadline) -> Self:
        """Return a store for one invocation, which never waits beyond the invocation's end.

        It shares connections, counts and the limiter with this one.
        """
        store = self._twin()
        store.retries = self.retries.within(deadline)
        return store

    def counted_apart(self) -> Self:
        """Return a store that counts its own requests.

        It shares connections and the limiter with this one.
        """
        store = self._twin()
        store.requests = RequestCounter()
        return store

    def _twin(self) -> Self:
        """Return a copy of this store that uses the same connections."""
        return copy.copy(self)

    def _answer(
        self,
        kind: str,
        operation: str,
        bucket: str,
        key: str,
        request: Callable[[TimeIsUp], Answer],
        stopped: threading.Event = NEVER,
    ) -> Answer:
        """Make a request, with retries, and return its result.

        It needs no permit. While it is in flight, there is one permit fewer for source reads.

        Args:
            kind: the name under which each try is counted.
            operation: the operation's name in error messages.
            bucket: named in error messages.
            key: named in error messages.
            request: makes the request once and reads the body, if any. Its argument is a
                function that returns True when the time for this try is up.
            stopped: set when the caller no longer wants the result.
        """
        once = partial(self._once, kind, operation, bucket, key, request=request)
        with self.limiter.beside():
            return self.retries.ask(operation, bucket, key, once, stopped)

    def read_of(
        self,
        kind: str,
        operation: str,
        source: SourceObject,
        request: Callable[[TimeIsUp], Answer],
        stopped: threading.Event,
    ) -> Answer:
        """Read a source, with retries, and return the result. The caller holds a permit."""
        bucket, key = source.bucket, source.key
        once = partial(self._once, kind, operation, bucket, key, request=request)
        return self.retries.ask(operation, bucket, key, once, stopped, reads=True)

    def _once(
        self,
        kind: str,
        operation: str,
        bucket: str,
        key: str,
        seconds: float,
        *,
        request: Callable[[TimeIsUp], Answer],
    ) -> Answer:
        self.requests.add(kind)
        clock = self.retries.patience.clock
        seconds = max(LEAST_SECONDS, seconds)
        until = clock() + seconds
        with sent_within(seconds), translated(operation, bucket, key):
            return request(lambda: clock() >= until)


def _with_files_left(most: int) -> int:
    """Return ``most``, or half of the process's limit on open files if that is less.

    The default limit in a macOS shell is 256 files.
    """
    if sys.platform == "win32":
        return most
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if files == resource.RLIM_INFINITY else max(1, min(most, files // 2))


def parameters_of(attributes: Attributes) -> dict[str, Any]:
    """Return the attributes as botocore's request parameters."""
    parameters = {
        "ContentEncoding": attributes.encoding,
        "ContentType": attributes.content_type,
        "Metadata": dict(attributes.metadata),
    }
    return {name: value for name, value in parameters.items() if value}


def encoded_crc32(value: int) -> str:
    """Return a CRC32 as S3 writes it: base64 of four bytes, big-endian."""
    return base64.b64encode(value.to_bytes(4, "big")).decode()


def decoded_crc32(text: str | None) -> int | None:
    """Return the CRC32 that S3 wrote as ``text``, or None."""
    return None if text is None else int.from_bytes(base64.b64decode(text), "big")


@contextmanager
def about_source(operation: str, bucket: str, key: str) -> Iterator[None]:
    """Turn errors that concern only this source into UnreadableSource.

    A listing shows neither INTELLIGENT_TIERING archive tiers nor encryption keys nor permissions.
    """
    try:
        yield
    except ClientError as error:
        judged = judged_read(refusal_of(error), operation, bucket, key)
        if isinstance(judged, UnreadableSource):
            raise judged from error
        raise
