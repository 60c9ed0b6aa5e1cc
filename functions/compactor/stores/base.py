"""What the parts of the S3 store share: one client, one count of its requests."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from compactor.errors import UnreadableSource
from compactor.model import QuarantineReason
from compactor.stores.list_parser import install
from compactor.stores.requests import RequestCounter

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client


class S3Base:
    """A boto3 client and the requests made."""

    def __init__(self, client: S3Client) -> None:
        install(client)
        self._client = client
        self.requests = RequestCounter()


def encoded_crc32(value: int) -> str:
    """CRC32 as S3 writes it: base64 of four bytes, big end first."""
    return base64.b64encode(value.to_bytes(4, "big")).decode()


def decoded_crc32(text: str | None) -> int | None:
    """The number again; None for no text."""
    return None if text is None else int.from_bytes(base64.b64decode(text), "big")


@contextmanager
def readable_tier(key: str) -> Iterator[None]:
    """Listings do not tell that INTELLIGENT_TIERING has put an object into an archive tier."""
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "InvalidObjectState":
            raise
        detail = f"{key} must be restored from its archive tier before it can be read"
        raise UnreadableSource(QuarantineReason.ARCHIVED, detail) from error
