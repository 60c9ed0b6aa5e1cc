"""The S3 store of a command, and whether its endpoint answers, before and during a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    SSLError,
)

from compactor.errors import CompactorError, InvalidInput, TransientStoreError
from compactor.s3.retries import Patience, limit_silence, sent_within
from compactor.s3.store import S3Store, make_client
from compactor.s3.translate import NO_CREDENTIALS, WEATHER, one_line, without_credentials
from compactor_cli.console import print_note

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

# Workers retry for two minutes; a user should learn of a wrong endpoint sooner.
_PATIENCE = Patience(deadline_seconds=20.0)
_ACCEPTED = "a URL such as http://localhost:9000"
# Connecting takes up to five seconds more, so at most 29 in all.
_TRIES, _WAIT_SECONDS, _SILENCE_SECONDS = 3, 1.0, 4.0
# During a run, only 25 seconds without an answer are reported.
_WATCH_SECONDS, _LONGEST_ANSWER_SECONDS = 5.0, 25.0


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


def check_url(url: str | None) -> None:
    """Check that requests can be sent to an endpoint URL; None is AWS.

    Raises:
        InvalidInput: it is not the URL of a server.
    """
    if url is None:
        return
    try:
        parts = urlsplit(url)
        is_server = bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise InvalidInput("--endpoint-url", url, _ACCEPTED) from None
    plain = url.isprintable() and " " not in url and not (parts.query or parts.fragment)
    if parts.scheme not in ("http", "https") or not is_server or not plain:
        raise InvalidInput("--endpoint-url", url, _ACCEPTED)


def require_answer(client: S3Client, bucket: str) -> None:
    """Send one cheap request; any response counts as an answer.

    An unreachable endpoint is reported within 30 seconds; requests for data are retried longer.

    Args:
        client: the client that the command will use.
        bucket: a bucket of the command; empty if none is known yet.

    Raises:
        TransientStoreError: there was no response.
        InvalidInput: the responder is not S3, or there are no credentials.
    """
    silence = _silence(client, bucket, _SILENCE_SECONDS)
    for _ in range(_TRIES - 1):
        if not silence:
            return
        time.sleep(_WAIT_SECONDS)
        silence = _silence(client, bucket, _SILENCE_SECONDS)
    if not silence:
        return
    raise TransientStoreError(
        f"{client.meta.endpoint_url} does not answer ({silence}); check the endpoint, and that this"
        " machine can reach it"
    )


@contextmanager
def watched(endpoint_url: str | None, bucket: str) -> Iterator[None]:
    """Print one warning if the endpoint stops answering within the block."""
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(endpoint_url, bucket, ended), daemon=True)
    watch.start()
    try:
        yield
    finally:
        ended.set()


def _watch(endpoint_url: str | None, bucket: str, ended: threading.Event) -> None:
    client = make_client(endpoint_url, connections=1)
    limit_silence(client)
    silences = 0
    while not ended.wait(_WATCH_SECONDS):
        try:
            silence = _silence(client, bucket, _LONGEST_ANSWER_SECONDS)
        except CompactorError as error:
            silence = str(error)
        silences = silences + 1 if silence else 0
        if silences == 2 and not ended.is_set():
            print_note(f"compactor: {client.meta.endpoint_url} has stopped answering ({silence})")
            print_note("  the run retries until its time is up; Ctrl-C keeps committed work")


def _silence(client: S3Client, bucket: str, seconds: float) -> str:
    """Return why there was no response; empty when there was one, even an error."""
    try:
        with sent_within(seconds):
            if bucket:
                client.head_bucket(Bucket=bucket)
            else:
                client.list_buckets()
    except ClientError:
        return ""
    except SSLError as error:
        raise TransientStoreError(f"{client.meta.endpoint_url}: {one_line(error)}") from error
    except NO_CREDENTIALS as error:
        raise without_credentials(error) from None
    except RecursionError:
        # botocore looks up the bucket's region with a request that is redirected again.
        accepted = "an S3 endpoint; this one answers every request with a redirection"
        raise InvalidInput("endpoint", client.meta.endpoint_url, accepted) from None
    except WEATHER as error:
        return one_line(error)
    except BotoCoreError:
        # Parameter errors are reported better by the request that needs them.
        return ""
    return ""
