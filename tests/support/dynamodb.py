"""Tables of what is pending for tests: in memory, on moto, and on DynamoDB Local."""

from __future__ import annotations

from itertools import count
from typing import Any

import botocore.session

from compactor.aws.registry import DynamoRegistry
from compactor.aws.registry_rows import create_table

_numbers = count()
# What tests/conftest.py puts into the environment of every test.
_KEY = "testing"


def client_at(url: str) -> Any:
    """A client of DynamoDB at an endpoint of this machine, whatever the environment says."""
    return botocore.session.get_session().create_client(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=_KEY,
        aws_secret_access_key=_KEY,
    )


def registry_on(url: str, *, inserts: bool = True) -> DynamoRegistry:
    """An empty table there, of a name of its own.

    Args:
        url: of the endpoint.
        inserts: it knows PartiQL, which moto does not, as far as it is needed.
    """
    client, table = client_at(url), f"pending-{next(_numbers)}"
    create_table(client, table)
    return DynamoRegistry(table, client, pause=lambda longest: None, inserts=inserts)
