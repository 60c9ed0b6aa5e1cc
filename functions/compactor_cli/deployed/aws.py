"""Clients of AWS services, and refusals of AWS as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

from compactor_cli.commands.failures import Failure

# Error codes of the services for a missing permission.
_DENIED = frozenset(
    {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "KmsAccessDeniedException"}
)
_CONNECT_SECONDS = 5
# The stack is looked up first, so few tries report an unreachable endpoint soon.
_TRIES = {"cloudformation": 3}


class Aws:
    """Clients by name of their service, created on first use.

    Region, credentials and endpoints are found as boto3 finds them: in the environment and in the
    profile.

    Args:
        region: instead of the one found.
    """

    def __init__(self, region: str | None = None) -> None:
        self._session = botocore.session.get_session()
        self._region: str | None = region or self._session.get_config_variable("region")
        self._clients: dict[str, Any] = {}

    @property
    def region(self) -> str:
        """The region of the clients, for messages."""
        return self._region or "no region"

    def client(self, service: str) -> Any:
        """Return the client of a service such as ``stepfunctions``.

        Raises:
            botocore.exceptions.BotoCoreError: there is no region.
        """
        if service not in self._clients:
            # Polling may exceed the request limits of Step Functions and CloudWatch.
            config = Config(
                connect_timeout=_CONNECT_SECONDS,
                retries={"mode": "standard", "total_max_attempts": _TRIES.get(service, 8)},
            )
            self._clients[service] = self._session.create_client(
                service, region_name=self._region, config=config
            )
        return self._clients[service]


def error_code(error: ClientError) -> str:
    """Return the error code of the service, such as ``ExecutionDoesNotExist``."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_denied(error: ClientError) -> bool:
    """Return whether the caller lacks a permission."""
    return error_code(error) in _DENIED


@contextmanager
def needing(action: str) -> Iterator[None]:
    """Turn a refusal within the block into one line that names the missing permission.

    Args:
        action: the IAM action that the request inside needs.

    Raises:
        Failure: the permission is missing. Other errors pass unchanged.
    """
    try:
        yield
    except ClientError as error:
        if not is_denied(error):
            raise
        message = str(error.response.get("Error", {}).get("Message", "")) or "no reason given"
        raise Failure(f"AccessDenied: {action} is needed, and AWS says: {message}") from None
