"""The commit logs of a destination, found on S3 without knowing its partitions."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from compactor.commit import newest_first
from compactor.commit_log import Commit
from compactor.errors import InvalidInput
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.settings import default_state_uri
from compactor.uris import S3Uri

# The rest of a key below the state's "partitions/", as compactor.layout.commit_key makes it.
_ENTRY = re.compile(r"(.*)commits/(\d{20})\.json\.gz", re.DOTALL)


@dataclass(slots=True)
class StoredLog:
    """One partition's log as listed.

    Attributes:
        path: the partition's path.
        bucket: where the entries are.
        keys: key of every entry by sequence.
    """

    path: str
    bucket: str
    keys: dict[int, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[int]:
        """Sequence numbers between the first and the last that have no entry."""
        return sorted(set(range(1, max(self.keys) + 1)) - set(self.keys)) if self.keys else []

    def newest_first(self, store: ObjectStore) -> Iterator[Commit]:
        """The valid entries: those that no later one replaces.

        Raises:
            IntegrityError: an entry cannot be read.
        """
        return newest_first(store, self.bucket, self.keys)


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
    logs = _collect(state, store.list_objects(state.bucket, _root(state)))
    if not logs:
        accepted = "where a run has left its state; a run with an s3_state_uri of its own needs"
        raise InvalidInput("s3_state_uri", state.uri, f"{accepted} the same --state-uri here")
    return [logs[path] for path in sorted(logs)]


def logs_for_key(key: str, state: S3Uri, store: ObjectStore) -> Iterator[StoredLog]:
    """The logs of the partitions a source key may belong to, the longest path first.

    A partition's path is made of successive segments of its sources' keys, so that only a few
    prefixes have to be looked at, however many partitions there are.
    """
    found = [*_fitting("", key, state, store)]
    for path in sorted(found, key=len, reverse=True):
        pages = store.list_objects(state.bucket, f"{_root(state)}{path}commits/")
        log = _collect(state, pages).get(path)
        if log is not None:
            yield log


def _fitting(path: str, key: str, state: S3Uri, store: ObjectStore) -> Iterator[str]:
    at = _root(state) + path
    for page in store.list_level(state.bucket, at):
        for prefix in page.prefixes:
            if prefix == f"{at}commits/":
                yield path
            below = prefix.removeprefix(_root(state))
            if f"/{below}" in f"/{key}":
                yield from _fitting(below, key, state, store)


def _collect(state: S3Uri, pages: Iterable[Iterable[SourceObject]]) -> dict[str, StoredLog]:
    logs: dict[str, StoredLog] = {}
    for page in pages:
        for entry in page:
            match = _ENTRY.fullmatch(entry.key, len(_root(state)))
            if match:
                log = logs.setdefault(match[1], StoredLog(match[1], state.bucket))
                log.keys[int(match[2])] = entry.key
    return logs


def _root(state: S3Uri) -> str:
    return f"{state.prefix}partitions/"
