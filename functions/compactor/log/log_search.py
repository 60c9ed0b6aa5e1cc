"""Finds the log and the commit that a key belongs to, without knowing the partitions."""

from __future__ import annotations

from collections.abc import Iterator

from compactor import layout
from compactor.log.entries import Commit, Output
from compactor.log.log_reader import StoredLog, few_logs, one_log
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri


def logs_for_key(key: str, state: S3Uri, store: ObjectStore) -> Iterator[StoredLog]:
    """Yield the logs of the partitions a source key may belong to, the longest path first.

    A partition's path is made of successive segments of its sources' keys, so only a few prefixes
    are listed, however many partitions there are; if there are few, one LIST suffices.
    """
    few = few_logs(state, store)
    if few is not None:
        fitting = [log for log in few if log.entries and _fits(log.path, key)]
        yield from sorted(fitting, key=lambda log: len(log.path), reverse=True)
        return
    found = [*_fitting("", key, state, store)]
    for path in sorted(found, key=len, reverse=True):
        log = one_log(state, path, store)
        if log.entries:
            yield log


def commit_of_output(
    key: str, destination: S3Uri, state: S3Uri, store: ObjectStore
) -> tuple[StoredLog, Commit, Output] | None:
    """Return the log and valid commit that name an output, and the output, or None.

    Args:
        key: key of the output, which lies directly below its partition.
        destination: the runs' destination.
        state: the runs' state.
        store: the store that holds both.

    Raises:
        IntegrityError: an entry of the log is damaged.
    """
    above, slash, _ = key.removeprefix(destination.prefix).rpartition("/")
    log = one_log(state, above + slash, store)
    for commit in log.newest_first(store):
        if commit.output is not None and commit.output.key == key:
            return log, commit, commit.output
    return None


def _fitting(path: str, key: str, state: S3Uri, store: ObjectStore) -> Iterator[str]:
    at = _root(state) + path
    for page in store.list_level(state.bucket, at):
        for prefix in page.prefixes:
            if prefix == f"{at}commits/":
                yield path
            below = prefix.removeprefix(_root(state))
            if _fits(below, key):
                yield from _fitting(below, key, state, store)


def _fits(path: str, key: str) -> bool:
    return f"/{path}" in f"/{key}"


def _root(state: S3Uri) -> str:
    return state.prefix + layout.PARTITIONS
