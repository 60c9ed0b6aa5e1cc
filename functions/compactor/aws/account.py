"""What the AWS account allows, as Lambda reports it to a function."""

from __future__ import annotations

from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

_SECONDS = 3


def concurrency_of_account() -> int | None:
    """How many functions without a reservation of their own the account runs concurrently.

    Lambda's GetAccountSettings, which costs nothing.

    Returns:
        None where this process may not ask, or gets no answer within seconds: it is asked for
        advice only.
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
