"""An S3-compatible store: libcurl for the usual requests, botocore for all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self

from botocore.config import Config

from compactor.model import SourceObject
from compactor.ports import SourceBody
from compactor.s3.curl_handle import USER_AGENT
from compactor.s3.deletes import S3Deletes
from compactor.s3.listing import S3Listing
from compactor.s3.retries import PATIENCE, SILENCE_SECONDS, Patience
from compactor.s3.sessions import made_by, new_session
from compactor.s3.sources import SourceReader
from compactor.s3.tags import S3Tags
from compactor.s3.uploads import S3Uploads
from compactor.sizes import MIB

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client


def make_client(endpoint_url: str | None = None, *, connections: int = 64) -> S3Client:
    """A boto3 client for :class:`S3Store`: it tries once, for asking again is the store's.

    Made by botocore itself: importing boto3 takes a third of a worker's start, and would bring
    what is not used here.
    """
    config = Config(
        max_pool_connections=connections,
        retries={"mode": "standard", "total_max_attempts": 1},
        connect_timeout=5,
        read_timeout=SILENCE_SECONDS,
        # Our own CRC32 travels with every part; botocore need not compute another.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        # botocore builds its own again for each request, twice: a tenth of its CPU time.
        user_agent=USER_AGENT,
    )
    session = new_session()
    client = session.create_client("s3", endpoint_url=endpoint_url, config=config)
    made: S3Client = made_by(session, client)
    return made


class S3Store(S3Listing, S3Deletes, S3Uploads, S3Tags):
    """Implements :class:`compactor.ports.ObjectStore` and :class:`compactor.ports.TaggedStore`.

    Args:
        client: boto3 S3 client, whose endpoint, region and credentials serve all requests. It
            belongs to the store from now on: its listings carry :class:`ListedPage` alone.
        threads: sources read at the same time, at most.
        budget_bytes: bytes of sources fetched or waiting at the same time.
        direct: make the usual requests by libcurl, where it is installed: through botocore each
            takes five times the CPU time.
        patience: how long a request is asked again, whatever it is.
    """

    def __init__(
        self,
        client: S3Client,
        *,
        threads: int = 64,
        budget_bytes: int = 64 * MIB,
        direct: bool = True,
        patience: Patience = PATIENCE,
    ) -> None:
        super().__init__(client, threads, patience, direct=direct)
        self._sources = SourceReader(
            self,
            threads=threads,
            budget_bytes=budget_bytes,
            direct=self._direct,
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
