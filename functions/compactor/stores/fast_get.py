"""Whole GETs of small objects through obstore, at a tenth of boto3's CPU time.

Only its synchronous API, called from our own threads: the asynchronous one can abort the
interpreter at exit. Keys that obstore would normalise (``//``, ``.`` and ``..`` segments,
control characters) or encode in ways of its own are refused here, and read through boto3.
"""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import botocore.session
import obstore
from obstore.exceptions import (
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import S3Store as ObstoreS3

from compactor.errors import InvalidInput, SourceChanged, TransientStoreError, UnreadableSource
from compactor.model import QuarantineReason, SourceObject

if TYPE_CHECKING:
    from obstore.store import S3Credential
    from types_boto3_s3.client import S3Client

# A segment of ordinary characters, not only one or two dots.
_PLAIN_SEGMENT = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9!_.'()=+,:@&;$~ -]+")
_AWS_HOST = re.compile(r"^https://[^/]*\.amazonaws\.com(?:\.cn)?/?$")
_SLOW_DOWN = re.compile(r"SlowDown|503|429")
_TIMEOUT_SECONDS = 60


class SlowDown(TransientStoreError):
    """S3 asked for fewer requests at once."""


class FastGet:
    """One obstore client per bucket, made when first needed; thread safe."""

    def __init__(self, client: S3Client) -> None:
        self._client = client
        self._stores: dict[str, ObstoreS3] = {}
        self._lock = threading.Lock()

    def takes(self, key: str) -> bool:
        """True for keys that obstore asks for exactly as they are."""
        parent, slash, name = key.rpartition("/")
        plain_above = not slash or _plain_segments(parent)
        return plain_above and _PLAIN_SEGMENT.fullmatch(name) is not None

    def get(self, source: SourceObject) -> bytes:
        """The whole object, pinned to its ETag.

        Raises:
            SourceChanged: it has another ETag, or is gone.
            UnreadableSource: it lies in an archive tier.
            InvalidInput: access denied.
            TransientStoreError: anything else; SlowDown where S3 asks for less.
        """
        store = self._stores.get(source.bucket) or self._store(source.bucket)
        try:
            answer = obstore.get(store, source.key, options={"if_match": f'"{source.etag}"'})
            return answer.bytes().to_bytes()
        except PreconditionError:
            raise SourceChanged(source.key, source.etag, "another ETag") from None
        except (NotFoundError, FileNotFoundError):
            raise SourceChanged(source.key, source.etag, "no object") from None
        except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
            if "InvalidObjectState" in str(error):
                detail = f"{source.key} must be restored from its archive tier first"
                raise UnreadableSource(QuarantineReason.ARCHIVED, detail) from error
            accepted = "a role that allows this request"
            raise InvalidInput("permission", _request(source), accepted) from error
        except BaseError as error:
            kind = SlowDown if _SLOW_DOWN.search(str(error)) else TransientStoreError
            raise kind(f"{_request(source)}: {error}") from error

    def _store(self, bucket: str) -> ObstoreS3:
        with self._lock:
            store = self._stores.get(bucket)
            if store is None:
                store = self._stores[bucket] = self._make(bucket)
            return store

    def _make(self, bucket: str) -> ObstoreS3:
        endpoint = self._client.meta.endpoint_url
        place: dict[str, Any] = {"region": self._client.meta.region_name or "us-east-1"}
        if not _AWS_HOST.match(endpoint):
            # Any other of obstore's names for it would give way to AWS_ENDPOINT_URL_S3.
            place |= {"aws_endpoint_url_s3": endpoint, "virtual_hosted_style_request": False}
        return ObstoreS3(
            bucket,
            credential_provider=_Credentials(),
            client_options={
                "allow_http": endpoint.startswith("http://"),
                "connect_timeout": "5 seconds",
                "timeout": f"{_TIMEOUT_SECONDS} seconds",
                "pool_max_idle_per_host": "512",
            },
            retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=_TIMEOUT_SECONDS)},
            **place,
        )


@lru_cache(1024)
def _plain_segments(parent: str) -> bool:
    """The same for all segments above the name, which many keys share."""
    return all(map(_PLAIN_SEGMENT.fullmatch, parent.split("/")))


def _request(source: SourceObject) -> str:
    return f"get s3://{source.bucket}/{source.key}"


class _Credentials:
    """The credentials that botocore finds, for obstore.

    obstore.auth.boto3 does the same and imports boto3 for it, a third of a worker's start.
    """

    def __init__(self) -> None:
        found = botocore.session.get_session().get_credentials()
        if found is None:
            raise InvalidInput("credentials", None, "AWS credentials as boto3 finds them")
        self._found = found

    def __call__(self) -> S3Credential:
        frozen = self._found.get_frozen_credentials()
        return {
            "access_key_id": frozen.access_key or "",
            "secret_access_key": frozen.secret_key or "",
            "token": frozen.token,
            # botocore renews what expires at least ten minutes ahead.
            "expires_at": datetime.now(UTC) + timedelta(minutes=5),
        }
