"""The commit logs of a destination, found on S3 without knowing its partitions."""

from __future__ import annotations

import argparse

from compactor import layout
from compactor.errors import InvalidInput
from compactor.log import log_reader as stored_logs
from compactor.log.log_reader import StoredLog
from compactor.ports import ObjectStore
from compactor.settings.settings import default_state_uri
from compactor.settings.uris import S3Uri


def state_from(args: argparse.Namespace) -> S3Uri:
    """Where the state of DEST is: ``--state-uri``, or where a run puts it by default.

    Raises:
        InvalidInput: one of the URIs is not accepted.
    """
    destination = S3Uri.parse("s3_destination_uri", args.s3_destination_uri)
    uri = args.s3_state_uri or default_state_uri(destination.uri)
    return S3Uri.parse("s3_state_uri", uri)


def all_logs(state: S3Uri, store: ObjectStore) -> list[StoredLog]:
    """Every commit log, in the order of paths.

    Raises:
        InvalidInput: there is none.
    """
    logs = [log for log in stored_logs.all_logs(state, store) if log.entries]
    if not logs:
        raise no_state(state)
    return logs


def no_state(state: S3Uri) -> InvalidInput:
    """The error that no run has committed anything below a state prefix."""
    accepted = "where a run has left its state"
    message = (
        f"no run has left its state at {state.uri}: is this the destination of a run? One with an"
        " s3_state_uri of its own needs the same --state-uri here"
    )
    return InvalidInput("s3_state_uri", state.uri, accepted, message=message)


def require_state(state: S3Uri, store: ObjectStore) -> None:
    """Do nothing where a run has committed something; one LIST.

    Raises:
        InvalidInput: none has, so that no key can be found.
    """
    page = next(iter(store.list_level(state.bucket, _root(state))), None)
    if page is None or not page.prefixes:
        raise no_state(state)


def _root(state: S3Uri) -> str:
    return state.prefix + layout.PARTITIONS
