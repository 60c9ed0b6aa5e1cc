"""What S3 and the network answer, in terms of what the caller does next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)

from compactor.errors import (
    AlreadyExists,
    CompactorError,
    IntegrityError,
    InvalidInput,
    ObjectMissing,
    TransientStoreError,
)

_Make = Callable[[str, str, str], CompactorError]


def _missing(message: str, code: str, bucket: str) -> CompactorError:
    return ObjectMissing(message)


def _taken(message: str, code: str, bucket: str) -> CompactorError:
    return AlreadyExists(message)


def _denied(message: str, code: str, bucket: str) -> CompactorError:
    return InvalidInput("permission", message, "a role that allows this request")


def _credentials(message: str, code: str, bucket: str) -> CompactorError:
    return InvalidInput("credentials", code, "valid AWS credentials")


def _damaged(message: str, code: str, bucket: str) -> CompactorError:
    return IntegrityError(message)


def _no_bucket(message: str, code: str, bucket: str) -> CompactorError:
    return InvalidInput("bucket", bucket, "a bucket that exists")


def _region(message: str, code: str, bucket: str) -> CompactorError:
    return InvalidInput("region", bucket, "the region of this bucket, in AWS_REGION")


# Every other answer (409 on CompleteMultipartUpload, SlowDown, 5xx) asks for another try.
_BY_CODE: Mapping[str, _Make] = {
    "NoSuchKey": _missing,
    "NoSuchUpload": _missing,
    "NotFound": _missing,
    "404": _missing,
    "NoSuchBucket": _no_bucket,
    "PreconditionFailed": _taken,
    "412": _taken,
    "AccessDenied": _denied,
    "AllAccessDisabled": _denied,
    "Forbidden": _denied,
    "403": _denied,
    "InvalidAccessKeyId": _credentials,
    "SignatureDoesNotMatch": _credentials,
    "ExpiredToken": _credentials,
    "BadDigest": _damaged,
    "InvalidPart": _damaged,
    "InvalidPartOrder": _damaged,
    "XAmzContentSHA256Mismatch": _damaged,
    "PermanentRedirect": _region,
    "IllegalLocationConstraintException": _region,
}


@contextmanager
def translated(operation: str, bucket: str, key: str = "") -> Iterator[None]:
    """Turn what botocore raises into this project's errors, naming bucket and key."""
    where = f"{operation} s3://{bucket}/{key}"
    try:
        yield
    except ClientError as error:
        raise _from_answer(error, where, bucket) from error
    except (NoCredentialsError, PartialCredentialsError) as error:
        raise InvalidInput(
            "credentials", str(error), "AWS credentials as boto3 finds them"
        ) from None
    except (ConnectionError, HTTPClientError, BotoCoreError) as error:
        raise TransientStoreError(f"{where}: {error}") from error


def _from_answer(error: ClientError, where: str, bucket: str) -> CompactorError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    message = f"{where}: {error}"
    make = _BY_CODE.get(code)
    return make(message, code, bucket) if make else TransientStoreError(message)
