"""Registries for tests: in memory, on moto, and on DynamoDB Local."""

from __future__ import annotations

from itertools import count
from typing import Any

import botocore.session

from compactor.aws.registry import DynamoRegistry
from compactor.aws.registry_rows import create_table

_numbers = count()
# The credentials that tests/conftest.py sets for every test.
_KEY = "testing"


def client_at(url: str) -> Any:
    """Return a DynamoDB client for a local endpoint, independent of the environment."""
    return botocore.session.get_session().create_client(
        "dynamodb",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=_KEY,
        aws_secret_access_key=_KEY,
    )


def registry_on(url: str, *, inserts: bool = True) -> DynamoRegistry:
    """Return a registry with a new, empty table.

    Args:
        url: URL of the endpoint.
        inserts: the endpoint supports the PartiQL that is needed; moto does not.
    """
    client, table = client_at(url), f"pending-{next(_numbers)}"
    create_table(client, table)
    return DynamoRegistry(table, client, pause=lambda longest: None, inserts=inserts)
