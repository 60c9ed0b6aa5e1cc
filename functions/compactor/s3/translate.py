"""Translates answers of S3 and network failures into errors that say what the caller can do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    MetadataRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    SSLError,
)

from compactor.errors import (
    AlreadyExists,
    CompactorError,
    IntegrityError,
    InvalidInput,
    ObjectArchived,
    ObjectMissing,
    TransientStoreError,
    no_credentials,
)
from compactor.escaping import visible

_LONGEST_TEXT = 300
#: What botocore raises if it finds no credentials, or incomplete ones.
NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError)


class Again(TransientStoreError):
    """An answer after which a retry may succeed. Its text is that answer, in one line.

    Used only within the store: callers get :meth:`as_error`, by default the TransientStoreError
    that the state machine retries.

    Args:
        answer: text of the answer, of any number of lines.
        slow_down: S3 asked for fewer concurrent requests.
        after_seconds: the wait that S3 asked for.
        at_last: makes the error to raise when no try succeeded.
        cut_short: a success with fewer bytes than announced, or than the object has.
    """

    def __init__(
        self,
        answer: object,
        *,
        slow_down: bool = False,
        after_seconds: float = 0.0,
        at_last: Callable[[str], CompactorError] = TransientStoreError,
        cut_short: bool = False,
    ) -> None:
        super().__init__(one_line(answer))
        self.slow_down = slow_down
        self.after_seconds = after_seconds
        self.cut_short = cut_short
        self._at_last = cut_short_each_time if cut_short else at_last

    def as_error(self, where: str, tries: int, seconds: float) -> CompactorError:
        """Return the error for the caller after ``tries`` unsuccessful tries in ``seconds``."""
        count = "1 try" if tries == 1 else f"{tries} tries"
        return self._at_last(f"{where}: {count} in {seconds:.1f} s, the last answer: {self}")


def cut_short_each_time(progress: str) -> InvalidInput:
    """Return the error for answers that were truncated at every try. It is not retried."""
    accepted = "a store, and proxies in between, that send all of each object"
    line = f"endpoint: answers are cut short each time: {progress}; expected {accepted}"
    return InvalidInput("endpoint", progress, accepted, message=line)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error answer.

    Attributes:
        status: HTTP status.
        code: S3's error code, or the status if there is none.
        message: S3's error message.
        after_seconds: the wait that Retry-After asks for.
        region: the bucket's region, if the answer names it; otherwise empty.
    """

    status: int
    code: str
    message: str = ""
    after_seconds: float = 0.0
    region: str = ""

    def __str__(self) -> str:
        code = "" if self.code == str(self.status) else f" {self.code}"
        message = f": {self.message}" if self.message else ""
        return one_line(f"{self.status}{code}{message}")


_Make = Callable[[str, Refusal, str], CompactorError]
# The permission that a refused operation needs, where that is certain.
_ACTIONS: Mapping[str, str] = {
    "list": "s3:ListBucket",
    "get": "s3:GetObject",
    "head": "s3:GetObject",
    "read": "s3:GetObject",
    "put": "s3:PutObject",
    "create": "s3:PutObject",
}


def _missing(message: str, refusal: Refusal, bucket: str) -> CompactorError:
    return ObjectMissing(message)


def _taken(message: str, refusal: Refusal, bucket: str) -> CompactorError:
    return AlreadyExists(message)


def _denied(message: str, refusal: Refusal, bucket: str) -> CompactorError:
    action = _ACTIONS.get(message.partition(" ")[0])
    needed = "" if action is None or "s3:" in refusal.message else f" ({action} is needed)"
    line = (
        f"not allowed: {message}{needed}: give that right to the owner of these credentials, or"
        " name another profile in AWS_PROFILE"
    )
    return InvalidInput("permission", message, "a role that allows this request", message=line)


def _credentials(message: str, refusal: Refusal, bucket: str) -> CompactorError:
    return no_credentials(refusal.code)


def _damaged(message: str, refusal: Refusal, bucket: str) -> CompactorError:
    return IntegrityError(message)


def _archived(message: str, refusal: Refusal, bucket: str) -> CompactorError:
    return ObjectArchived(message)


def _no_bucket(message: str, refusal: Refusal, bucket: str) -> CompactorError:
    line = f"there is no bucket {bucket}: is its name right, and is this the endpoint where it is?"
    return InvalidInput("bucket", bucket, "a bucket that exists", message=line)


def _region(message: str, refusal: Refusal, bucket: str) -> CompactorError:
    where, value = f"the region {refusal.region}", refusal.region
    if not refusal.region:
        where = "another region than the one that was asked"
        value = f"what aws s3api get-bucket-location --bucket {bucket} shows"
    line = f"the bucket {bucket} is in {where}: set AWS_REGION to {value}"
    return InvalidInput("region", bucket, "the region of this bucket, in AWS_REGION", message=line)


def _later(message: str, refusal: Refusal, bucket: str) -> CompactorError:
    return TransientStoreError(f"{message}: is the clock of this machine right?")


def _not_taken(message: str, refusal: Refusal, bucket: str) -> CompactorError:
    return InvalidInput("request", message, "a request that this store takes")


_BY_CODE: Mapping[str, _Make] = {
    "NoSuchKey": _missing,
    "NoSuchUpload": _missing,
    "NotFound": _missing,
    "404": _missing,
    "InvalidRange": _missing,
    "416": _missing,
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
    "InvalidToken": _credentials,
    "TokenRefreshRequired": _credentials,
    "InvalidObjectState": _archived,
    "BadDigest": _damaged,
    "InvalidPart": _damaged,
    "InvalidPartOrder": _damaged,
    "301": _region,
    "PermanentRedirect": _region,
    "IllegalLocationConstraintException": _region,
    "AuthorizationHeaderMalformed": _region,
    # An operator must set the clock first.
    "RequestTimeTooSkewed": _later,
}
# Answers in the 400s that do not blame the request. 409: another operation on the key is under way.
_AGAIN = frozenset(
    {
        "408",
        "409",
        "ConditionalRequestConflict",
        "IncompleteBody",
        "OperationAborted",
        "PriorRequestNotComplete",
        "RequestTimeout",
        "RequestTimeoutException",
    }
)
# The body changed in transit.
_DAMAGED_ON_THE_WAY = frozenset({"XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch"})
_SLOW_DOWN = re.compile(r"SlowDown|Throttl|TooManyRequests|RequestLimitExceeded")
_CHANGED, _TOO_MANY_REQUESTS, _UNAVAILABLE = 412, 429, 503
# Not Implemented and HTTP Version Not Supported are permanent.
_LASTING = frozenset({501, 505})
# The number of truncated answers in a row after which to give up; with the waits between them,
# this takes seconds.
MOST_CUT_SHORT = 8
# Errors after which a retry may succeed; botocore's other errors are about its arguments.
WEATHER = (
    ConnectionError,
    CredentialRetrievalError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    MetadataRetrievalError,
)


def judged(refusal: Refusal, operation: str, bucket: str, key: str) -> CompactorError:
    """Return the error for a refusal; :class:`Again` if another try may help."""
    code = refusal.code
    if code in _DAMAGED_ON_THE_WAY or (code == "BadDigest" and operation != "complete upload"):
        return Again(refusal, at_last=IntegrityError)
    # Not every store uses S3's code for a failed condition.
    make = _BY_CODE.get(code) or (_taken if refusal.status == _CHANGED else None)
    if make is None and worth_another_try(refusal):
        return Again(
            refusal, slow_down=_asks_for_less(refusal), after_seconds=refusal.after_seconds
        )
    return (make or _not_taken)(f"{place(operation, bucket, key)}: {refusal}", refusal, bucket)


def worth_another_try(refusal: Refusal) -> bool:
    """Return True for temporary refusals, which do not depend on the request."""
    if {refusal.code, str(refusal.status)} & _AGAIN or _asks_for_less(refusal):
        return True
    return refusal.status >= 500 and refusal.status not in _LASTING


def _asks_for_less(refusal: Refusal) -> bool:
    if refusal.status in {_TOO_MANY_REQUESTS, _UNAVAILABLE}:
        return True
    # The status is in the 400s for throttled KMS keys, and 200 if S3 had begun to answer.
    return _SLOW_DOWN.search(refusal.code) is not None


def without_credentials(error: Exception) -> InvalidInput:
    """Return the error for one of :data:`NO_CREDENTIALS`, with a message for the operator."""
    return no_credentials(one_line(error) if isinstance(error, PartialCredentialsError) else "")


@contextmanager
def translated(operation: str, bucket: str, key: str = "") -> Iterator[None]:
    """Turn botocore's errors into this project's, naming bucket and key."""
    try:
        yield
    except ClientError as error:
        raise judged(refusal_of(error), operation, bucket, key) from error
    except NO_CREDENTIALS as error:
        raise without_credentials(error) from None
    except WEATHER as error:
        raise _without_answer(error) from error
    except RecursionError:
        # botocore asks for the bucket's region, and that request is redirected again.
        accepted = "an S3 endpoint; this one answers every request with a redirection"
        raise InvalidInput("endpoint", place(operation, bucket, key), accepted) from None
    except BotoCoreError as error:
        text = f"{place(operation, bucket, key)}: {one_line(error)}"
        raise InvalidInput("request", text, "one that botocore can send") from error
    except Exception as error:
        if not is_unparsed(error):
            raise
        raise Again(error) from error


def _without_answer(error: Exception) -> CompactorError:
    """Return the error for a request that got no whole answer."""
    text = str(error)
    # urllib3 compares the host's name itself.
    is_another_host = isinstance(error, SSLError) and "doesn't match" in text
    if "CERTIFICATE_VERIFY_FAILED" in text or is_another_host:
        accepted = "an endpoint whose certificate this machine trusts"
        return InvalidInput("endpoint", one_line(error), accepted)
    return Again(error, cut_short=isinstance(error, IncompleteReadError))


def is_unparsed(error: Exception) -> bool:
    """Return True for botocore's undocumented error for an answer that it cannot parse."""
    return type(error).__module__.partition(".")[0] == "botocore"


def refusal_of(error: ClientError) -> Refusal:
    """Return the refusal in a botocore ClientError."""
    said = error.response.get("Error", {})
    about = error.response.get("ResponseMetadata", {})
    headers = about.get("HTTPHeaders", {})
    after = _seconds(headers.get("retry-after", ""), headers.get("date", ""))
    status = int(about.get("HTTPStatusCode", 0))
    region = headers.get("x-amz-bucket-region") or said.get("Region", "")
    code, message = str(said.get("Code", status)), str(said.get("Message", ""))
    return Refusal(status, code, message, after, str(region))


def code_of(error: CompactorError) -> str:
    """Return the code of the answer that caused this error; empty if there was no answer."""
    cause = error.__cause__
    return refusal_of(cause).code if isinstance(cause, ClientError) else ""


def place(operation: str, bucket: str, key: str) -> str:
    """Return operation and URL in one line, whatever characters the key has."""
    return f"{operation} s3://{bucket}/{visible(key)}"


def one_line(text: object) -> str:
    """Return the beginning of another program's text, in one line."""
    line = visible(" ".join(str(text).split()))
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}…"


def _seconds(retry_after: str, date: str) -> float:
    """Return the seconds that a Retry-After header asks to wait; 0 if it is absent or invalid.

    It has a number of seconds, or a time by the server's clock.
    """
    try:
        if retry_after.strip().isdigit():
            return float(retry_after)
        until, now = parsedate_to_datetime(retry_after), parsedate_to_datetime(date)
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return 0.0
