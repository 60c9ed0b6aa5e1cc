"""Reads a destination's commit logs from S3 without knowing its partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import inf

import msgspec

from compactor.documents import require_object
from compactor.errors import damaged
from compactor.log.encoding import decode_checkpoint, decode_commit
from compactor.log.entries import Commit, Output
from compactor.log.state import LogState
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.settings.layout import PARTITIONS, StateLayout
from compactor.settings.uris import S3Uri

# The part of a key below "partitions/", as StateLayout builds it. Only
# the last segments are matched, so a partition may have any name.
_NAME = re.compile(
    r"((?:.*/)?)(?:commits/(\d{20})\.(?:(checkpoint)\.)?json\.gz|cleaned/(\d{20})\.json)",
    re.DOTALL,
)


class StoredLog(msgspec.Struct):
    """One partition's log as listed.

    Attributes:
        path: the partition's path.
        state: location of the whole state.
        entries: when each entry was written, by sequence; UNIX seconds of the store's clock.
        cleaned: sequences of the entries that clean-up has finished.
        checkpoints: when each checkpoint was written, by the sequence through which it sums up the
            log; UNIX seconds of the store's clock.
    """

    path: str
    state: S3Uri
    entries: dict[int, float] = msgspec.field(default_factory=dict)
    cleaned: set[int] = msgspec.field(default_factory=set)
    checkpoints: dict[int, float] = msgspec.field(default_factory=dict)

    @property
    def where(self) -> str:
        """The log's location, for display."""
        bucket, prefix = StateLayout(self.state).commits(self.path)
        return f"s3://{bucket}/{prefix}"

    @property
    def keys(self) -> dict[int, str]:
        """Key of every entry, by sequence."""
        return {sequence: self.key_of(sequence) for sequence in self.entries}

    @property
    def missing(self) -> list[int]:
        """Sequence numbers without an entry, up to the last known one."""
        last = max((*self.entries, *self.checkpoints), default=0)
        return sorted(set(range(1, last + 1)) - set(self.entries))

    @property
    def uncleaned(self) -> list[int]:
        """Sequences of the entries that clean-up has not finished, in order."""
        return sorted(set(self.entries) - self.cleaned)

    @property
    def readable_since(self) -> dict[int, float]:
        """When retention of each entry's sources began; UNIX seconds of the store's clock.

        That is the time of the first checkpoint that covers the entry: a checkpoint is written
        only once every output through it can be read. Infinite for entries without one.
        """
        since, result = inf, {}
        for sequence in sorted({*self.entries, *self.checkpoints}, reverse=True):
            since = min(since, self.checkpoints.get(sequence, inf))
            result[sequence] = since
        return result

    def key_of(self, sequence: int) -> str:
        """Return the key of one entry."""
        return StateLayout(self.state).commit(self.path, sequence)[1]

    def record_key_of(self, sequence: int) -> str:
        """Return the key of the record that clean-up writes once it has finished an entry."""
        return StateLayout(self.state).cleaned(self.path, sequence)[1]

    def newest_first(self, store: ObjectStore) -> Iterator[Commit]:
        """Yield the valid entries, which no later one replaces, newest first.

        Raises:
            IntegrityError: an entry cannot be read.
        """
        return newest_first(store, self.state.bucket, self.keys)


def all_logs(state: S3Uri, store: ObjectStore) -> list[StoredLog]:
    """Return every log, ordered by path."""
    logs = _collect(state, store.list_objects(state.bucket, state.prefix + PARTITIONS))
    return [logs[path] for path in sorted(logs)]


def few_logs(state: S3Uri, store: ObjectStore) -> list[StoredLog] | None:
    """Return every log if they all fit on one page of a listing, else None."""
    pages = store.list_objects(state.bucket, state.prefix + PARTITIONS)
    first = next(pages, ())
    if next(pages, None) is not None:
        return None
    return [*_collect(state, [first]).values()]


def each_log(state: S3Uri, store: ObjectStore) -> Iterator[StoredLog]:
    """Yield each log as soon as all its keys are listed; few are held in memory.

    Keys are listed in order, and a log's path is a prefix of all its keys, so the log is complete
    at the first key without that prefix. If partitions are nested, the logs of the outer levels
    stay open meanwhile.
    """
    start = len(state.prefix + PARTITIONS)
    logs: dict[str, StoredLog] = {}
    for page in store.list_objects(state.bucket, state.prefix + PARTITIONS):
        for listed in page:
            for path in [path for path in logs if not listed.key.startswith(path, start)]:
                yield logs.pop(path)
            _take(listed, state, logs)
    yield from logs.values()


def replaced_checkpoints(
    state: S3Uri, store: ObjectStore, before: float
) -> Iterator[list[SourceObject]]:
    """Yield, by page, the checkpoints that a newer one has replaced since ``before`` or longer.

    Never includes the newest checkpoint of a log, whatever its age: a checkpoint is yielded only
    once one of the same log with a higher number has been seen.

    Args:
        state: location of the whole state.
        store: the store that holds it.
        before: UNIX seconds; both checkpoints were written by then.
    """
    start = len(state.prefix + PARTITIONS)
    path, number = "", 0
    last: SourceObject | None = None
    for page in store.list_objects(state.bucket, state.prefix + PARTITIONS):
        replaced: list[SourceObject] = []
        for listed in page:
            match = _NAME.fullmatch(listed.key, start)
            if match is None or not match[3]:
                continue
            # Keys of one log are adjacent unless a partition is named like a part of it; then some
            # replaced checkpoints are kept.
            newer = path == match[1] and number < int(match[2])
            if (
                newer
                and last is not None
                and max(listed.last_modified, last.last_modified) <= before
            ):
                replaced.append(last)
            path, number, last = match[1], int(match[2]), listed
        yield replaced


def one_log(state: S3Uri, path: str, store: ObjectStore) -> StoredLog:
    """Return one partition's log; without entries if there is no log."""
    log = StoredLog(path, state)
    for name in ("commits/", "cleaned/"):
        prefix = f"{state.prefix}{PARTITIONS}{path}{name}"
        part = _collect(state, store.list_objects(state.bucket, prefix)).get(path)
        if part is not None:
            log.entries |= part.entries
            log.cleaned |= part.cleaned
            log.checkpoints |= part.checkpoints
    return log


def every_entry(
    store: ObjectStore, bucket: str, keys: Mapping[int, str]
) -> Iterator[tuple[Commit, bool]]:
    """Yield each entry of a log, newest first, with whether it is valid.

    An entry is valid if no later one replaces it. That depends on later entries alone, so each
    result is final when yielded. Each entry is read once, and only one is held in memory.

    Args:
        store: the store that holds the log.
        bucket: bucket of its entries.
        keys: key of every entry, by sequence.

    Raises:
        IntegrityError: an entry cannot be decoded; nothing older is yielded.
    """
    void: set[int] = set()
    for sequence in sorted(keys, reverse=True):
        commit = read_entry(store, bucket, keys[sequence], sequence)
        # A voided commit stays void even if its replacement is replaced.
        if commit.replaces is not None:
            void.add(commit.replaces)
        yield commit, sequence not in void


def newest_first(store: ObjectStore, bucket: str, keys: Mapping[int, str]) -> Iterator[Commit]:
    """Yield the valid entries of :func:`every_entry`.

    Raises:
        IntegrityError: an entry cannot be decoded; nothing older is yielded.
    """
    return (commit for commit, valid in every_entry(store, bucket, keys) if valid)


def read_entry(store: ObjectStore, bucket: str, key: str, sequence: int) -> Commit:
    """Read one entry of a log.

    Raises:
        IntegrityError: it cannot be decoded, was written under another number or by a later
            version, or was deleted since it was listed.
    """
    where = f"s3://{bucket}/{key}"
    commit = decode_commit(require_object(store, (bucket, key)), where)
    if commit.sequence != sequence:
        raise damaged(where, f"it says that it is entry {commit.sequence}")
    return commit


def read_checkpoint(store: ObjectStore, bucket: str, key: str, path: str) -> LogState:
    """Read a checkpoint and return the state of its partition's log.

    Raises:
        IntegrityError: it cannot be decoded, was written for another partition or number, or was
            deleted since it was listed.
    """
    where = f"s3://{bucket}/{key}"
    state = decode_checkpoint(require_object(store, (bucket, key)), path, where)
    if not key.endswith(f"/{state.last:020d}.checkpoint.json.gz"):
        raise damaged(where, f"it says that it sums up {state.last} entries")
    return state


def _collect(state: S3Uri, pages: Iterable[Iterable[SourceObject]]) -> dict[str, StoredLog]:
    logs: dict[str, StoredLog] = {}
    for page in pages:
        for listed in page:
            _take(listed, state, logs)
    return logs


def _take(listed: SourceObject, state: S3Uri, logs: dict[str, StoredLog]) -> None:
    match = _NAME.fullmatch(listed.key, len(state.prefix + PARTITIONS))
    if match is None:
        return
    log = logs.setdefault(match[1], StoredLog(match[1], state))
    if match[3]:
        log.checkpoints[int(match[2])] = listed.last_modified
    elif match[2]:
        log.entries[int(match[2])] = listed.last_modified
    else:
        log.cleaned.add(int(match[4]))


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
    paths = [*_fitting("", key, state, store)]
    for path in sorted(paths, key=len, reverse=True):
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
    return state.prefix + PARTITIONS
