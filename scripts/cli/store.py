"""The store that commands use: somebody waits before the terminal."""

from __future__ import annotations

from compactor.stores.retries import Patience
from compactor.stores.s3 import S3Store, make_client

# A worker asks for two minutes; a person wants to know of a wrong endpoint sooner.
_PATIENCE = Patience(deadline_seconds=20.0)


def open_store(endpoint_url: str | None = None) -> S3Store:
    """A store with the credentials and region that boto3 finds.

    Args:
        endpoint_url: of an S3-compatible store; None for AWS, or what the environment names.
    """
    return S3Store(make_client(endpoint_url), patience=_PATIENCE)
