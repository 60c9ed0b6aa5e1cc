"""What S3 and the network answer, in terms of what the caller does next."""

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
#: What botocore raises where it finds no credentials, or a part of some.
NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError)


class Again(TransientStoreError):
    """An answer after which another try may help; its text is that answer, in one line.

    Only the store sees it: callers get the name that the state machine retries.

    Args:
        answer: in any number of lines.
        slow_down: S3 asked for fewer concurrent requests.
        after_seconds: it asked not to come back before.
        at_last: the kind of error to raise when no try helped.
        cut_short: it was a success with fewer bytes than it or the object has.
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
        """The error for the caller, when so many tries in so many seconds did not help."""
        count = "1 try" if tries == 1 else f"{tries} tries"
        return self._at_last(f"{where}: {count} in {seconds:.1f} s, the last answer: {self}")


def cut_short_each_time(progress: str) -> InvalidInput:
    """The error about answers that are cut short at each try: a later try will not help."""
    accepted = "a store, and proxies in between, that send all of each object"
    line = f"endpoint: answers are cut short each time: {progress}; expected {accepted}"
    return InvalidInput("endpoint", progress, accepted, message=line)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is an error.

    Attributes:
        status: of HTTP.
        code: S3's, or the status where it had none.
        after_seconds: what Retry-After says.
        region: where the bucket is, of an answer that says so; empty where it does not.
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
# What a refused operation would have needed, where it is certain.
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
# In the 400s, and yet no word about the request. 409: something else is under way at this key.
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
# What was sent is not what arrived.
_DAMAGED_ON_THE_WAY = frozenset({"XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch"})
_SLOW_DOWN = re.compile(r"SlowDown|Throttl|TooManyRequests|RequestLimitExceeded")
_CHANGED, _TOO_MANY_REQUESTS, _UNAVAILABLE = 412, 429, 503
# Not implemented, and a version of HTTP that is not supported, stay so.
_LASTING = frozenset({501, 505})
# Answers that were cut short, one after the other; with the waits between them it is seconds.
MOST_CUT_SHORT = 8
# After these another try may help; botocore's other errors are about what it was given.
WEATHER = (
    ConnectionError,
    CredentialRetrievalError,
    FlexibleChecksumError,
    HTTPClientError,
    IncompleteReadError,
    MetadataRetrievalError,
)


def judged(refusal: Refusal, operation: str, bucket: str, key: str) -> CompactorError:
    """What an answer asks of the caller; :class:`Again` where another try may help."""
    code = refusal.code
    if code in _DAMAGED_ON_THE_WAY or (code == "BadDigest" and operation != "complete upload"):
        return Again(refusal, at_last=IntegrityError)
    # Not every store names a failed condition as S3 does.
    make = _BY_CODE.get(code) or (_taken if refusal.status == _CHANGED else None)
    if make is None and worth_another_try(refusal):
        return Again(
            refusal, slow_down=_asks_for_less(refusal), after_seconds=refusal.after_seconds
        )
    return (make or _not_taken)(f"{place(operation, bucket, key)}: {refusal}", refusal, bucket)


def worth_another_try(refusal: Refusal) -> bool:
    """True for answers that speak of the moment, not of the request."""
    if {refusal.code, str(refusal.status)} & _AGAIN or _asks_for_less(refusal):
        return True
    return refusal.status >= 500 and refusal.status not in _LASTING


def _asks_for_less(refusal: Refusal) -> bool:
    if refusal.status in {_TOO_MANY_REQUESTS, _UNAVAILABLE}:
        return True
    # In the 400s for throttled keys of KMS, and with status 200 where the answer was begun.
    return _SLOW_DOWN.search(refusal.code) is not None


def without_credentials(error: Exception) -> InvalidInput:
    """What one of :data:`NO_CREDENTIALS` means to a person."""
    return no_credentials(one_line(error) if isinstance(error, PartialCredentialsError) else "")


@contextmanager
def translated(operation: str, bucket: str, key: str = "") -> Iterator[None]:
    """Turn what botocore raises into this project's errors, naming bucket and key."""
    try:
        yield
    except ClientError as error:
        raise judged(refusal_of(error), operation, bucket, key) from error
    except NO_CREDENTIALS as error:
        raise without_credentials(error) from None
    except WEATHER as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            accepted = "an endpoint whose certificate this machine trusts"
            raise InvalidInput("endpoint", one_line(error), accepted) from error
        raise Again(error, cut_short=isinstance(error, IncompleteReadError)) from error
    except BotoCoreError as error:
        text = f"{place(operation, bucket, key)}: {one_line(error)}"
        raise InvalidInput("request", text, "one that botocore can send") from error
    except Exception as error:
        if not is_unparsed(error):
            raise
        raise Again(error) from error


def is_unparsed(error: Exception) -> bool:
    """True for what botocore raises of an answer that it cannot parse: it documents no name."""
    return type(error).__module__.partition(".")[0] == "botocore"


def refusal_of(error: ClientError) -> Refusal:
    """What a server said, as botocore returns it."""
    said = error.response.get("Error", {})
    about = error.response.get("ResponseMetadata", {})
    headers = about.get("HTTPHeaders", {})
    after = _seconds(headers.get("retry-after", ""), headers.get("date", ""))
    status = int(about.get("HTTPStatusCode", 0))
    region = headers.get("x-amz-bucket-region") or said.get("Region", "")
    code, message = str(said.get("Code", status)), str(said.get("Message", ""))
    return Refusal(status, code, message, after, str(region))


def code_of(error: CompactorError) -> str:
    """The code of the answer that led to this error; empty where none did."""
    cause = error.__cause__
    return refusal_of(cause).code if isinstance(cause, ClientError) else ""


def place(operation: str, bucket: str, key: str) -> str:
    """What was asked for, in one line whatever the key is."""
    return f"{operation} s3://{bucket}/{visible(key)}"


def one_line(text: object) -> str:
    """The beginning of a text that another program wrote."""
    line = visible(" ".join(str(text).split()))
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}…"


def _seconds(retry_after: str, date: str) -> float:
    """How long a Retry-After header asks to wait: seconds, or a time by the server's clock."""
    try:
        if retry_after.strip().isdigit():
            return float(retry_after)
        until, now = parsedate_to_datetime(retry_after), parsedate_to_datetime(date)
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError):
        return 0.0
