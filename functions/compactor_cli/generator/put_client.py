"""The one S3 request that the generator makes, as fast as it can be made.

smart-open writes a small object with a single ``put_object`` of the client it is given. The
boto3 client spends about 1.5 ms of CPU on it, which ends at some 600 objects a second for a
process; the client here makes the same request through the store, in a fraction of that.
"""

from __future__ import annotations

from typing import IO, Any, Protocol

import boto3
import botocore.config
import botocore.exceptions

from compactor.errors import InvalidInput, TransientStoreError, no_credentials
from compactor.s3.store import S3Store, make_client

_CONNECT_SECONDS = 5
_ANSWER_SECONDS = 10
_REDIRECT = 301
_FORBIDDEN = 403
_BUCKET_ACCEPTED = "an existing bucket that these credentials may write to"


class PutClient(Protocol):
    """What smart-open needs of an S3 client to write an object in one request."""

    def put_object(self, *, Bucket: str, Key: str, Body: IO[bytes]) -> object:  # noqa: N803 - the names are those of boto3
        """Store one object."""
        ...


class FastPutClient:
    """Stores objects in one bucket; safe to share between threads.

    Endpoint, region and credentials are those boto3 finds: environment, profile or role.

    Args:
        bucket: an existing bucket.
        endpoint_url: an S3-compatible endpoint; None for what boto3 is configured with.
        workers: how many threads will share this client.

    Raises:
        InvalidInput: no such bucket, no credentials, or no such endpoint.
        TransientStoreError: the endpoint does not answer.
    """

    def __init__(self, bucket: str, endpoint_url: str | None, workers: int) -> None:
        session = boto3.Session()
        if session.get_credentials() is None:
            raise no_credentials()
        _require_bucket(session, bucket, endpoint_url)
        self._store = S3Store(make_client(endpoint_url, connections=workers), threads=workers)

    def put_object(self, *, Bucket: str, Key: str, Body: IO[bytes]) -> object:  # noqa: N803 - the names are those of boto3
        """Store one object; the names of the arguments are boto3's.

        Raises:
            InvalidInput: not permitted, or the bucket is gone.
            TransientStoreError: still failing after the store's own retries.
        """
        try:
            self._store.put(Bucket, Key, Body.read())
        except InvalidInput:
            raise InvalidInput("output", f"s3://{Bucket}/{Key}", _BUCKET_ACCEPTED) from None
        return {}


def _require_bucket(session: boto3.Session, bucket: str, endpoint_url: str | None) -> None:
    """Ask for a bucket once, by HEAD."""
    config = botocore.config.Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_ANSWER_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 2},
    )
    try:
        client: Any = session.client("s3", endpoint_url=endpoint_url, config=config)
    except ValueError:
        accepted = "a URL such as http://localhost:9000"
        raise InvalidInput("endpoint_url", endpoint_url, accepted) from None
    except botocore.exceptions.BotoCoreError as error:
        raise InvalidInput("credentials", str(error), "a usable AWS configuration") from None
    try:
        client.head_bucket(Bucket=bucket)
    except botocore.exceptions.ClientError as error:
        # A writer may lack s3:ListBucket (403), and a bucket may be elsewhere (301).
        if error.response["ResponseMetadata"]["HTTPStatusCode"] not in (_REDIRECT, _FORBIDDEN):
            raise InvalidInput("output", f"s3://{bucket}", _BUCKET_ACCEPTED) from None
    except botocore.exceptions.ParamValidationError:
        raise InvalidInput("output", f"s3://{bucket}", "a valid bucket name") from None
    except botocore.exceptions.BotoCoreError as error:
        raise TransientStoreError(f"the S3 endpoint does not answer: {error}") from error
