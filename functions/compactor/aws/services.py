"""Clients of AWS services other than S3, and the translation of their errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoRegionError,
)

from compactor.errors import CompactorError, InvalidInput, TransientStoreError, no_credentials
from compactor.s3.curl_handle import USER_AGENT
from compactor.s3.sessions import new_session
from compactor.s3.translate import (
    NO_CREDENTIALS,
    WEATHER,
    Refusal,
    is_unparsed,
    one_line,
    refusal_of,
    without_credentials,
    worth_another_try,
)

_CONNECT_SECONDS, _READ_SECONDS = 5, 20
_TRIES = 6
# Error codes after which a retry may succeed, in addition to those of S3.
_PASSING = frozenset(
    {
        "InternalServerError",
        "InternalServiceException",
        "ItemCollectionSizeLimitExceededException",
        "LimitExceededException",
        "OperationTimeoutException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottledException",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)
_CREDENTIALS = frozenset(
    {"ExpiredTokenException", "InvalidSignatureException", "UnrecognizedClientException"}
)
_NO_SUCH = frozenset(
    {
        "EntityNotFoundException",
        "NotFoundException",
        "ResourceNotFoundException",
        "StateMachineDoesNotExist",
    }
)
_DENIED = frozenset(
    {"AccessDenied", "AccessDeniedException", "ForbiddenException", "KmsAccessDeniedException"}
)


def service_client(name: str, *, connections: int = 10) -> Any:
    """Return a botocore client of a service, with retries.

    It finds region, credentials and endpoint as boto3 does.

    Raises:
        InvalidInput: no region is set.
    """
    config = Config(
        max_pool_connections=connections,
        retries={"mode": "standard", "total_max_attempts": _TRIES},
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        user_agent=USER_AGENT,
        # Validation takes a tenth of the time of a small request, and the service validates anyway.
        parameter_validation=False,
    )
    try:
        return new_session().create_client(name, config=config)
    except NoRegionError:
        raise InvalidInput("region", None, "a region, in AWS_REGION") from None


@dataclass(frozen=True, slots=True)
class Thing:
    """The resource that a request is about, for the error if it does not exist.

    Attributes:
        field: the input field or environment variable that names it.
        value: its name.
        accepted: description of an accepted value.
    """

    field: str
    value: str
    accepted: str


@contextmanager
def answers_of(what: str, thing: Thing) -> Iterator[None]:
    """Turn botocore's errors into this project's.

    Args:
        what: the operation, as named in errors.
        thing: the resource that it is about.

    Raises:
        TransientStoreError: the service did not answer, or throttled the request.
        InvalidInput: the resource does not exist or may not be used.
    """
    try:
        yield
    except ClientError as error:
        raise _judged(refusal_of(error), what, thing) from error
    except NO_CREDENTIALS as error:
        raise without_credentials(error) from None
    except WEATHER as error:
        raise TransientStoreError(f"{what}: {one_line(error)}") from error
    except BotoCoreError as error:
        accepted = "one that botocore can send"
        raise InvalidInput("request", f"{what}: {one_line(error)}", accepted) from error
    except Exception as error:
        if not is_unparsed(error):
            raise
        raise TransientStoreError(f"{what}: {one_line(error)}") from error


def _judged(refusal: Refusal, what: str, thing: Thing) -> CompactorError:
    if refusal.code in _NO_SUCH:
        return InvalidInput(thing.field, thing.value, thing.accepted)
    if refusal.code in _DENIED:
        accepted = "a role that allows this request"
        return InvalidInput("permission", f"{what}: {refusal}", accepted)
    if refusal.code in _CREDENTIALS:
        return no_credentials(refusal.code)
    if refusal.code in _PASSING or worth_another_try(refusal):
        return TransientStoreError(f"{what}: {refusal}")
    return InvalidInput("request", f"{what}: {refusal}", "a request that this service takes")
