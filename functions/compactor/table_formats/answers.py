"""Translates errors of catalogs into this project's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from compactor.errors import CompactorError, InvalidInput, TransientStoreError, no_credentials
from compactor.escaping import visible

# By name, because each library has its own classes, and some may not be installed.
_LATER = frozenset(
    {
        "CommitStateUnknownException",
        "ServerError",
        "ServiceUnavailableError",
        "TooManyRequestsError",
        # SQLAlchemy: a catalog that another process has locked.
        "OperationalError",
        # botocore, requests and urllib3.
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "ConnectionError",
        "EndpointConnectionError",
        "ReadTimeoutError",
        "SSLError",
        "Timeout",
    }
)
# As urllib3 names a server that it could not reach.
_UNREACHED = re.compile(r"^HTTPS?ConnectionPool\(host='([^']+)', port=(\d+)\)")
_DENIED = frozenset({"ForbiddenError", "UnauthorizedError", "AuthorizationExpiredError"})
_DENIED_CODES = (
    "AccessDenied",
    "Forbidden",
    "UnauthorizedOperation",
    "ExpiredToken",
    "InvalidSignature",
)
_LATER_CODES = (
    "Throttl",
    "InternalService",
    "InternalServer",
    "OperationTimeout",
    "ServiceUnavailable",
    "TooMany",
)


@contextmanager
def translated(table: str) -> Iterator[None]:
    """Translate transient and permission errors of a catalog's library into our errors.

    Errors about the table itself are passed through.

    Args:
        table: its address.
    """
    try:
        yield
    except CompactorError:
        raise
    except Exception as error:
        found = _judged(error, table)
        if found is None:
            raise
        raise found from error


def _judged(error: Exception, table: str) -> CompactorError | None:
    names = {kind.__name__ for kind in type(error).__mro__}
    code = error_code(error)
    text = visible(" ".join(str(error).split()))
    if names & _DENIED or code.startswith(_DENIED_CODES):
        return InvalidInput("permission", f"{table}: {text}", "a role that may use this table")
    if "NoCredentialsError" in names:
        return no_credentials()
    if "PartialCredentialsError" in names:
        return no_credentials(text)
    if names & _LATER or code.startswith(_LATER_CODES):
        where = _UNREACHED.search(text)
        what = f"{where[1]}:{where[2]} does not answer" if where else text
        return TransientStoreError(f"{table}: {what}")
    return None


def error_code(error: Exception) -> str:
    """Return AWS's error code; empty if the error is not a response of AWS."""
    response = getattr(error, "response", None)
    found = response.get("Error", {}).get("Code", "") if isinstance(response, dict) else ""
    return str(found)
