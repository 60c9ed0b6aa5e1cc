"""Limits of the AWS account, as reported by Lambda."""

from __future__ import annotations

from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

_SECONDS = 3


def concurrency_of_account() -> int | None:
    """Return the account's concurrency limit for functions without reserved concurrency.

    Uses Lambda's GetAccountSettings, which is free.

    Returns:
        The limit; None if this process may not read it, or gets no answer within seconds. The
        caller can do without.
    """
    config = Config(
        connect_timeout=_SECONDS,
        read_timeout=_SECONDS,
        retries={"mode": "standard", "total_max_attempts": 2},
    )
    try:
        client: Any = botocore.session.get_session().create_client("lambda", config=config)
        limit = client.get_account_settings()["AccountLimit"]
    except (BotoCoreError, ClientError):
        return None
    found = limit.get("UnreservedConcurrentExecutions")
    return found if isinstance(found, int) and found > 0 else None
