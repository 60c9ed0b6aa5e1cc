"""Tables of what is pending for tests: in memory, on moto, and on DynamoDB Local."""

from __future__ import annotations

from itertools import count
from typing import Any

import botocore.session

from compactor.stores.registry import DynamoRegistry, create_table

_numbers = count()


def client_at(url: str) -> Any:
    """A client of DynamoDB at an endpoint."""
    return botocore.session.get_session().create_client(
        "dynamodb", endpoint_url=url, region_name="us-east-1"
    )


def registry_on(url: str) -> DynamoRegistry:
    """An empty table there, of a name of its own."""
    client, table = client_at(url), f"pending-{next(_numbers)}"
    create_table(client, table)
    return DynamoRegistry(table, client, pause=lambda longest: None)
