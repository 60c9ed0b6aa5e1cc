"""The store that commands use: a person waits at the terminal."""

from __future__ import annotations

from compactor.errors import InvalidInput
from compactor.s3.retries import Patience
from compactor.s3.store import S3Store, make_client
from compactor_cli.commands.endpoint import check_url, require_answer

# A worker asks for two minutes; a person wants to know of a wrong endpoint sooner.
_PATIENCE = Patience(deadline_seconds=20.0)


def open_store(endpoint_url: str | None = None, bucket: str | None = None) -> S3Store:
    """A store with the credentials and region that boto3 finds.

    Args:
        endpoint_url: of an S3-compatible store; None for AWS, or what the environment names.
        bucket: one that the command is about; it is asked for once, to see whether anything
            answers. Empty where none is known yet; None for a command that has asked AWS for
            something before.

    Raises:
        InvalidInput: there can be no server at this endpoint.
        TransientStoreError: the store does not answer.
    """
    check_url(endpoint_url)
    try:
        client = make_client(endpoint_url)
    except ValueError as error:
        if type(error).__name__ == "InvalidRegionError":
            raise
        # What the environment or the profile names.
        raise InvalidInput("endpoint", str(error), "a URL such as http://localhost:9000") from None
    store = S3Store(client, patience=_PATIENCE)
    if bucket is not None:
        require_answer(client, bucket)
    return store
