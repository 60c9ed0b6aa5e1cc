"""The commit logs of a destination, found on S3 without knowing the partitions."""

from __future__ import annotations

from types import SimpleNamespace

from compactor.errors import InvalidInput
from compactor.log import log_reader as stored_logs
from compactor.log.log_reader import StoredLog
from compactor.ports import ObjectStore
from compactor.settings.layout import PARTITIONS
from compactor.settings.settings import default_state_uri
from compactor.settings.uris import S3Uri


def state_from(args: SimpleNamespace) -> S3Uri:
    """Return ``--state-uri``, or the default state prefix of a run into DEST.

    Raises:
        InvalidInput: one of the URIs is invalid.
    """
    if args.s3_state_uri:
        return S3Uri.parse("s3_state_uri", args.s3_state_uri)
    return S3Uri.parse("s3_state_uri", default_state_uri(args.s3_destination_uri))


def all_logs(state: S3Uri, store: ObjectStore) -> list[StoredLog]:
    """Return every commit log, sorted by path.

    Raises:
        InvalidInput: there are none.
    """
    logs = [log for log in stored_logs.all_logs(state, store) if log.entries]
    if not logs:
        raise no_state(state)
    return logs


def no_state(state: S3Uri) -> InvalidInput:
    """Return the error that no run has committed anything below a state prefix."""
    advice = (
        "check that it is the destination of a run; a run with its own s3_state_uri needs the"
        " same --state-uri here"
    )
    message = f"there is no state of a run at {state.uri}: {advice}"
    return InvalidInput("s3_state_uri", state.uri, advice, message=message)


def require_state(state: S3Uri, store: ObjectStore) -> None:
    """Check with one LIST that a run has committed something.

    Raises:
        InvalidInput: no run has, so no key can be found.
    """
    page = next(iter(store.list_level(state.bucket, _root(state))), None)
    if page is None or not page.prefixes:
        raise no_state(state)


def _root(state: S3Uri) -> str:
    return state.prefix + PARTITIONS
