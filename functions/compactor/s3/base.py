"""What the parts of the S3 store share: one client, one count of requests, one way to ask."""

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
from compactor.conditions import StoreTraits
from compactor.errors import UnreadableSource
from compactor.model import SourceObject
from compactor.ports import Deadline
from compactor.s3.bodies import TimeIsUp
from compactor.s3.curl_handle import IS_INSTALLED, Received
from compactor.s3.direct import Asked, Direct
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

if sys.platform != "win32":
    import resource

if TYPE_CHECKING:
    import threading

    from types_boto3_s3.client import S3Client

Answer = TypeVar("Answer")


class S3Base:
    """A boto3 client, which tries once, and what stands around its requests.

    Attributes:
        client: of boto3.
        limiter: how many requests are made concurrently.
        retries: how a request is asked again.
    """

    def __init__(
        self, client: S3Client, most_concurrent: int, patience: Patience, *, direct: bool = True
    ) -> None:
        install(client)
        limit_silence(client)
        self.client = client
        self._direct = Direct(client) if direct and IS_INSTALLED else None
        self.limiter = Limiter(_with_files_left(most_concurrent), clock=patience.clock)
        self.retries = Retries(self.limiter, patience)
        self.requests = RequestCounter()
        self.traits = StoreTraits()
        #: Of buckets whose objects' tags were asked for, whether this role may see them.
        self.sees_tags_of: dict[str, bool] = {}

    @property
    def endpoint_url(self) -> str:
        return self.client.meta.endpoint_url

    @property
    def region(self) -> str:
        return self.client.meta.region_name or ""

    def with_traits(self, traits: StoreTraits) -> Self:
        """See the port; connections, counts, and what was learned of S3's patience are shared."""
        store = self._twin()
        store.traits = traits
        return store

    def within(self, deadline: Deadline) -> Self:
        """This very store for one invocation: it waits for nothing beyond the invocation's end.

        Connections, counts, and what was learned of S3's patience are shared.
        """
        store = self._twin()
        store.retries = self.retries.within(deadline)
        return store

    def _twin(self) -> Self:
        """A store beside this one, on the same connections."""
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
        """Ask until there is an answer; reads of sources leave room for it.

        Args:
            kind: what each try is counted as.
            operation: what is asked for, as errors name it.
            bucket: likewise.
            key: likewise.
            request: asks once, reading the body if there is one; is given a function that
                says whether the time for that is up.
            stopped: set when no caller wants the answer any more.
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
        """The same for a read of a source, for which the caller holds a permit."""
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

    def _direct_or(
        self,
        asked: Asked,
        sound: Callable[[Received], Answer | None],
        otherwise: Callable[[TimeIsUp], Answer],
    ) -> Callable[[TimeIsUp], Answer]:
        """The request by libcurl, where it is installed: see :meth:`Direct.ask`."""
        if self._direct is None:
            return otherwise
        return partial(self._direct.ask, asked, sound, otherwise)


def _with_files_left(most: int) -> int:
    """The most concurrent connections: this many, or half of the files that the process may open.

    A shell of macOS gives it 256 files in all.
    """
    if sys.platform == "win32":
        return most
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return most if files == resource.RLIM_INFINITY else max(1, min(most, files // 2))


def parameters_of(attributes: Attributes) -> dict[str, Any]:
    """What botocore calls the headers of these."""
    headers = attributes.headers
    named = {"content-encoding": "ContentEncoding", "x-amz-tagging": "Tagging"}
    found: dict[str, Any] = {named[one]: headers[one] for one in named if one in headers}
    return found | ({"Metadata": dict(attributes.metadata)} if attributes.metadata else {})


def encoded_crc32(value: int) -> str:
    """CRC32 as S3 writes it: base64 of four bytes, big end first."""
    return base64.b64encode(value.to_bytes(4, "big")).decode()


def decoded_crc32(text: str | None) -> int | None:
    """The number again; None for no text."""
    return None if text is None else int.from_bytes(base64.b64decode(text), "big")


@contextmanager
def about_source(operation: str, bucket: str, key: str) -> Iterator[None]:
    """What S3 answers about one source alone becomes UnreadableSource.

    Of an archive tier of INTELLIGENT_TIERING, of keys and of rights, a listing shows nothing.
    """
    try:
        yield
    except ClientError as error:
        judged = judged_read(refusal_of(error), operation, bucket, key)
        if isinstance(judged, UnreadableSource):
            raise judged from error
        raise
