"""The one S3 request the generator makes, as fast as it can be made.

smart-open writes a small object with a single ``put_object`` of the client it is given. The
boto3 client spends about 1.5 ms of CPU on it, which ends at some 600 objects a second for a
process; the client here does the same request through obstore in about a tenth of that.
"""

from __future__ import annotations

from typing import IO, Any, Protocol
from urllib.parse import urlsplit

import boto3
import botocore.config
import botocore.exceptions
import obstore.exceptions
import obstore.store
from obstore.auth.boto3 import Boto3CredentialProvider

from compactor.errors import InvalidInput, TransientStoreError, no_credentials

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
        url, region = _located(session, bucket, endpoint_url)
        self._bucket = bucket
        amazon = (urlsplit(url).hostname or "").endswith((".amazonaws.com", ".amazonaws.com.cn"))
        self._store = obstore.store.S3Store(
            bucket,
            region=region,
            endpoint=None if amazon else url,
            virtual_hosted_style_request=amazon,
            credential_provider=Boto3CredentialProvider(session),
            client_options={"allow_http": True, "pool_max_idle_per_host": str(workers)},
        )

    def put_object(self, *, Bucket: str, Key: str, Body: IO[bytes]) -> object:  # noqa: N803 - the names are those of boto3
        """Store one object; the names of the arguments are boto3's.

        Raises:
            InvalidInput: not permitted, or the bucket is gone.
            TransientStoreError: still failing after obstore's own retries.
        """
        try:
            # Without use_multipart=False obstore splits bodies of 5 MiB and more.
            return obstore.put(self._store, Key, Body.read(), use_multipart=False)
        except (
            obstore.exceptions.PermissionDeniedError,
            obstore.exceptions.UnauthenticatedError,
            obstore.exceptions.NotFoundError,
        ):
            raise InvalidInput("output", f"s3://{Bucket}/{Key}", _BUCKET_ACCEPTED) from None
        except obstore.exceptions.BaseError as error:
            reason = str(error).splitlines()[0]
            raise TransientStoreError(f"PUT s3://{Bucket}/{Key} failed: {reason}") from error


def _located(session: boto3.Session, bucket: str, endpoint_url: str | None) -> tuple[str, str]:
    """Endpoint and region of a bucket, from one HEAD request."""
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
        answer = client.head_bucket(Bucket=bucket)["ResponseMetadata"]
    except botocore.exceptions.ClientError as error:
        answer = error.response["ResponseMetadata"]
        # A writer may lack s3:ListBucket (403), and a bucket may be elsewhere (301): both name
        # its region.
        if answer["HTTPStatusCode"] not in (_REDIRECT, _FORBIDDEN):
            raise InvalidInput("output", f"s3://{bucket}", _BUCKET_ACCEPTED) from None
    except botocore.exceptions.ParamValidationError:
        raise InvalidInput("output", f"s3://{bucket}", "a valid bucket name") from None
    except botocore.exceptions.BotoCoreError as error:
        raise TransientStoreError(f"the S3 endpoint does not answer: {error}") from error
    region = answer.get("HTTPHeaders", {}).get("x-amz-bucket-region")
    return client.meta.endpoint_url, region or client.meta.region_name or "us-east-1"
