"""Whole GETs of small objects through obstore, at a tenth of boto3's CPU time.

Only its synchronous API, called from our own threads: the asynchronous one can abort the
interpreter at exit. Keys that obstore would normalise (``//``, ``.`` and ``..`` segments,
control characters) or encode in ways of its own are refused here, and read through boto3.
"""

from __future__ import annotations

import re
import threading
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import (
    BaseError,
    NotFoundError,
    PreconditionError,
)
from obstore.store import S3Store as ObstoreS3

from compactor.conditions import StoreTraits
from compactor.errors import CompactorError, SourceChanged, no_credentials
from compactor.model import SourceObject
from compactor.stores.refused_reads import judged_read
from compactor.stores.sessions import ca_bundle, session_of
from compactor.stores.translate import Again, Refusal

if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import ClientConfig, S3Credential
    from types_boto3_s3.client import S3Client

# A segment of ordinary characters, not only one or two dots.
_PLAIN_SEGMENT = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9!_.'()=+,:@&;$~ -]+")
# Where obstore goes by itself. It knows neither China nor FIPS nor dual stack nor a VPC's endpoint.
_OWN_HOST = re.compile(r"https://s3(?:\.[a-z]+(?:-[a-z]+)+-\d+)?\.amazonaws\.com/?")
# What botocore calls us-east-1 there; no host has that name.
_NO_REGION = "aws-global"
# In front of obstore's account of its own structures, which names the object, too.
_STATUS = re.compile(r"status code: (\d{3})")
# What obstore tells of S3's 301, which it takes for a redirect.
_ELSEWHERE = "redirect without LOCATION"
_CODE = re.compile(r"<Code>([\w.]+)</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_CHANGED, _MISSING = 412, 404
_DEBUG = "\n\nDebug source:"
_TIMEOUT_SECONDS = 60.0
_HURRIED_SECONDS = 10.0


class FastGet:
    """One obstore client per bucket, made when first needed; thread safe.

    Each GET is tried once, for ``timeout_seconds`` in all.
    """

    def __init__(self, client: S3Client, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self.timeout_seconds = timeout_seconds
        self._client = client
        self._stores: dict[str, ObstoreS3] = {}
        self._lock = threading.Lock()

    def takes(self, key: str) -> bool:
        """True for keys that obstore asks for exactly as they are."""
        parent, slash, name = key.rpartition("/")
        plain_above = not slash or _plain_segments(parent)
        return plain_above and _PLAIN_SEGMENT.fullmatch(name) is not None

    def get(self, source: SourceObject, traits: StoreTraits) -> bytes:
        """The whole object, pinned to its ETag.

        Args:
            source: as it was listed.
            traits: of the store: what pins it.

        Raises:
            SourceChanged: it has another ETag, or is gone.
            UnreadableSource: it lies in an archive tier, or this role may not read it, or not
                use its key.
            InvalidInput: the credentials, the bucket or the request is wrong.
            Again: another try may help.
        """
        store = self._stores.get(source.bucket) or self._store(source.bucket)
        try:
            options: GetOptions = {}
            if traits.reads_if_match:
                options["if_match"] = f'"{source.etag}"'
            answer = obstore.get(store, source.key, options=options)
            require_etag(source, answer.meta["e_tag"], traits)
            return answer.bytes().to_bytes()
        except PreconditionError:
            raise SourceChanged(source.key, source.etag, "another ETag") from None
        except (NotFoundError, FileNotFoundError):
            raise SourceChanged(source.key, source.etag, "no object", gone=True) from None
        except (BaseError, PermissionError) as error:
            raise _judged(error, source) from error

    @cached_property
    def hurried(self) -> FastGet:
        """The same for the end of an invocation, which no GET must outlive."""
        return FastGet(self._client, _HURRIED_SECONDS)

    def _store(self, bucket: str) -> ObstoreS3:
        with self._lock:
            store = self._stores.get(bucket)
            if store is None:
                store = self._stores[bucket] = self._make(bucket)
            return store

    def _make(self, bucket: str) -> ObstoreS3:
        session = session_of(self._client)
        endpoint = self._client.meta.endpoint_url.replace(_NO_REGION, "us-east-1")
        place: dict[str, Any] = {"region": self._client.meta.region_name or "us-east-1"}
        if not _OWN_HOST.fullmatch(endpoint):
            # Any other of obstore's names for it would give way to AWS_ENDPOINT_URL_S3.
            place |= {"aws_endpoint_url_s3": endpoint, "virtual_hosted_style_request": False}
        return ObstoreS3(
            bucket,
            credential_provider=_Credentials(session),
            client_options={
                "allow_http": endpoint.startswith("http://"),
                "connect_timeout": "5 seconds",
                "timeout": f"{self.timeout_seconds:.0f} seconds",
                "pool_max_idle_per_host": "512",
                **(_trusted(session) if endpoint.startswith("https://") else {}),
            },
            retry_config={
                "max_retries": 0,
                "retry_timeout": timedelta(seconds=self.timeout_seconds),
            },
            **place,
        )


def _trusted(session: Any) -> ClientConfig:
    """Whom to trust beside those whom the system trusts: obstore has no settings of botocore's."""
    bundle = ca_bundle(session)
    return {"root_certificate": Path(bundle).read_bytes()} if bundle else {}


def require_etag(source: SourceObject, found: str | None, traits: StoreTraits) -> None:
    """Do nothing when an answer may be that of the object that was listed.

    Args:
        source: as it was listed.
        found: in the answer, which may be one to another request where something between here and
            the store mixes them up, or keeps old ones.
        traits: of the store; where it ignores If-Match, there must be one.

    Raises:
        SourceChanged: it has another ETag, or none although it must.
    """
    etag = (found or "").removeprefix("W/").strip('"')
    matters = not traits.reads_if_match or (etag and traits.refuses_other_etags)
    if matters and etag.lower() != source.etag.lower():
        raise SourceChanged(source.key, source.etag, etag or "an answer without an ETag")


@lru_cache(1024)
def _plain_segments(parent: str) -> bool:
    """The same for all segments above the name, which many keys share."""
    return all(map(_PLAIN_SEGMENT.fullmatch, parent.split("/")))


def _judged(error: Exception, source: SourceObject) -> CompactorError:
    """What S3's answer, or the lack of one, asks of the caller."""
    told = str(error).partition(_DEBUG)[0]
    if _ELSEWHERE in told:
        return _refused(source, "301", told)
    status = _STATUS.search(told)
    if status is None:
        return Again(told)
    return _refused(source, status[1], told)


def judged_answer(source: SourceObject, status: int, told: str) -> CompactorError:
    """What an answer with such a status asks of the caller: what :meth:`FastGet.get` raises.

    Args:
        source: as it was listed.
        status: of HTTP, 400 or more.
        told: the body.
    """
    if status == _CHANGED:
        return SourceChanged(source.key, source.etag, "another ETag")
    if status == _MISSING:
        return SourceChanged(source.key, source.etag, "no object", gone=True)
    return _refused(source, str(status), told)


def _refused(source: SourceObject, status: str, told: str) -> CompactorError:
    code, message = _CODE.search(told), _MESSAGE.search(told)
    refusal = Refusal(int(status), code[1] if code else status, message[1] if message else "")
    return judged_read(refusal, "get", source.bucket, source.key)


class _Credentials:
    """The credentials that botocore finds, for obstore.

    obstore.auth.boto3 does the same and imports boto3 for it, a third of a worker's start.
    """

    def __init__(self, session: Any) -> None:
        found = session.get_credentials()
        if found is None:
            raise no_credentials()
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
