"""The S3 store that commands use, with short timeouts for a user at a terminal."""

from __future__ import annotations

from compactor.errors import InvalidInput
from compactor.s3.retries import Patience
from compactor.s3.store import S3Store, make_client
from compactor_cli.commands.endpoint import check_url, require_answer

# Workers retry for two minutes; a user should learn of a wrong endpoint sooner.
_PATIENCE = Patience(deadline_seconds=20.0)


def open_store(endpoint_url: str | None = None, bucket: str | None = None) -> S3Store:
    """Return a store with the credentials and region that boto3 finds.

    Args:
        endpoint_url: of an S3-compatible store; None for AWS, or what the environment names.
        bucket: checked with one request, so that an unreachable endpoint is reported first.
            Empty if no bucket is known yet; None to skip the check after earlier AWS requests.

    Raises:
        InvalidInput: the URL is not that of a server.
        TransientStoreError: the endpoint does not answer.
    """
    check_url(endpoint_url)
    try:
        client = make_client(endpoint_url)
    except ValueError as error:
        if type(error).__name__ == "InvalidRegionError":
            raise
        # The invalid URL is from the environment or the profile.
        raise InvalidInput("endpoint", str(error), "a URL such as http://localhost:9000") from None
    store = S3Store(client, patience=_PATIENCE)
    if bucket is not None:
        require_answer(client, bucket)
    return store
