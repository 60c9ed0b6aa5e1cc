"""The store for S3 and compatible servers: libcurl reads sources, botocore does all else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self

from botocore.config import Config

from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.s3.curl_handle import IS_INSTALLED, USER_AGENT
from compactor.s3.deletes import S3Deletes
from compactor.s3.listing import S3Listing
from compactor.s3.many_gets import Curl
from compactor.s3.retries import PATIENCE, SILENCE_SECONDS, Patience
from compactor.s3.routes import Routes
from compactor.s3.sessions import ca_bundle, made_by, new_session
from compactor.s3.sources import SourceReader
from compactor.s3.transfers import Transfers
from compactor.s3.uploads import S3Uploads
from compactor.sizes import MIB

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client


def make_client(endpoint_url: str | None = None, *, connections: int = 64) -> S3Client:
    """Return a boto3 client for :class:`S3Store`. It tries once: the store does the retries.

    It is made by botocore alone: importing boto3 would take a third of a worker's start-up time,
    and nothing else of boto3 is used.

    Raises:
        InvalidInput: the file of trusted certificates does not exist.
    """
    config = Config(
        max_pool_connections=connections,
        retries={"mode": "standard", "total_max_attempts": 1},
        connect_timeout=5,
        read_timeout=SILENCE_SECONDS,
        # Every part is sent with our own CRC32; botocore need not compute another.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        # By default botocore builds it twice per request, which takes a tenth of its CPU time.
        user_agent=USER_AGENT,
    )
    session = new_session()
    client = session.create_client("s3", endpoint_url=endpoint_url, config=config)
    made: S3Client = made_by(session, client)
    if made.meta.endpoint_url.startswith("https://"):
        # botocore would report a missing file once for each request.
        ca_bundle(session)
    return made


class S3Store(S3Listing, S3Deletes, S3Uploads):
    """Implements :class:`compactor.ports.ObjectStore`.

    Args:
        client: boto3 S3 client whose endpoint, region and credentials are used for all requests.
            The store owns it from now on: its listings are not parsed by botocore.
        threads: maximum number of sources read concurrently.
        budget_bytes: maximum bytes of sources in flight or waiting to be consumed.
        libcurl: read whole sources by libcurl, if it is installed. Through botocore, each takes
            five times the CPU time.
        patience: how long any request is retried.
    """

    def __init__(
        self,
        client: S3Client,
        *,
        threads: int = 64,
        budget_bytes: int = 64 * MIB,
        libcurl: bool = True,
        patience: Patience = PATIENCE,
    ) -> None:
        super().__init__(client, threads, patience)
        self._sources = SourceReader(
            self,
            threads=threads,
            budget_bytes=budget_bytes,
            curl=Curl(Routes(client), Transfers()) if libcurl and IS_INSTALLED else None,
            compares_etags=client.meta.endpoint_url.startswith("http://"),
        )

    def read_sources(self, sources: Iterable[SourceObject]) -> Iterator[SourceBody]:
        return self._sources.read_sources(sources)

    def read_range(self, source: SourceObject, start: int, length: int) -> bytes:
        return self._sources.read_range(source, start, length)

    def _twin(self) -> Self:
        store = super()._twin()
        store._sources = self._sources.of(store)
        return store
