"""Reads a destination's commit logs from S3 without knowing its partitions."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from compactor import layout
from compactor.errors import IntegrityError, InvalidInput, ObjectMissing
from compactor.log.encoding import decode_checkpoint, decode_commit
from compactor.log.entries import Commit
from compactor.log.state import LogState
from compactor.model import SourceObject
from compactor.ports import ObjectStore
from compactor.settings.uris import S3Uri

# The part of a key below "partitions/", as layout.entry_name and layout.record_name build it. Only
# the last segments are matched, so a partition may have any name.
_NAME = re.compile(
    r"((?:.*/)?)(?:commits/(\d{20})\.(?:(checkpoint)\.json\.gz|(witness|published)\.json|json\.gz)"
    r"|cleaned/(\d{20})\.json)",
    re.DOTALL,
)
_LOGS_LOOKED_AT = 3
_OF_A_STATE = f"/{layout.IDENTITY_NAME}"
# What decoding raises for bytes that differ from what was written.
DAMAGE = (
    ValueError,
    KeyError,
    TypeError,
    IndexError,
    AttributeError,
    OSError,
    EOFError,
    RecursionError,
    zlib.error,
    msgspec.MsgspecError,
)


class StoredLog(msgspec.Struct):
    """One partition's log as listed.

    Attributes:
        path: the partition's path.
        state: location of the whole state.
        entries: when each entry was written, by sequence; UNIX seconds of the store's clock.
        cleaned: sequences of the entries that clean-up has finished.
        checkpoints: sequences through which a checkpoint sums up the log.
        witnesses: sequences of the entries that have a witness.
        published: when a later run published entries, by sequence; UNIX seconds of the store's
            clock.
    """

    path: str
    state: S3Uri
    entries: dict[int, float] = msgspec.field(default_factory=dict)
    cleaned: set[int] = msgspec.field(default_factory=set)
    checkpoints: set[int] = msgspec.field(default_factory=set)
    witnesses: set[int] = msgspec.field(default_factory=set)
    published: dict[int, float] = msgspec.field(default_factory=dict)

    @property
    def where(self) -> str:
        """The log's location, for display."""
        return f"s3://{self.state.bucket}/{self.state.prefix}{layout.PARTITIONS}{self.path}commits/"

    @property
    def keys(self) -> dict[int, str]:
        """Key of every entry, by sequence."""
        return {sequence: self.key_of(sequence) for sequence in self.entries}

    @property
    def missing(self) -> list[int]:
        """Sequence numbers without an entry, up to the last known one."""
        last = max((*self.entries, *self.witnesses), default=0)
        return sorted(set(range(1, last + 1)) - set(self.entries))

    @property
    def uncleaned(self) -> list[int]:
        """Sequences of the entries that clean-up has not finished, in order."""
        return sorted(set(self.entries) - self.cleaned)

    def kept_since(self, sequence: int) -> float:
        """Return when retention of an entry's sources began; UNIX seconds of the store's clock."""
        return max(self.entries[sequence], self.published.get(sequence, 0.0))

    def key_of(self, sequence: int) -> str:
        """Return the key of one entry."""
        return self.state.prefix + layout.entry_name(self.path, sequence)

    def record_key_of(self, sequence: int) -> str:
        """Return the key of the record that clean-up writes once it has finished an entry."""
        return self.state.prefix + layout.record_name(self.path, sequence)

    def checkpoint_key_of(self, sequence: int) -> str:
        """Return the key of the checkpoint through this sequence."""
        return self.state.prefix + layout.checkpoint_name(self.path, sequence)

    def newest_first(self, store: ObjectStore) -> Iterator[Commit]:
        """Yield the valid entries, which no later one replaces, newest first.

        Raises:
            IntegrityError: an entry cannot be read.
        """
        return newest_first(store, self.state.bucket, self.keys)


def all_logs(state: S3Uri, store: ObjectStore) -> list[StoredLog]:
    """Return every log, ordered by path.

    Raises:
        InvalidInput: another state lies among them, whose logs would be mistaken for these.
    """
    logs = _collect(state, store.list_objects(state.bucket, state.prefix + layout.PARTITIONS))
    return [logs[path] for path in sorted(logs)]


def few_logs(state: S3Uri, store: ObjectStore) -> list[StoredLog] | None:
    """Return every log if they all fit on one page of a listing, else None.

    Raises:
        InvalidInput: as :func:`all_logs`.
    """
    pages = store.list_objects(state.bucket, state.prefix + layout.PARTITIONS)
    first = next(pages, ())
    if next(pages, None) is not None:
        return None
    return [*_collect(state, [first]).values()]


def each_log(state: S3Uri, store: ObjectStore) -> Iterator[StoredLog]:
    """Yield each log as soon as all its keys are listed; few are held in memory.

    Keys are listed in order, and a log's path is a prefix of all its keys, so the log is complete
    at the first key without that prefix. If partitions are nested, the logs of the outer levels
    stay open meanwhile.

    Raises:
        InvalidInput: as :func:`all_logs`.
    """
    start = len(state.prefix + layout.PARTITIONS)
    logs: dict[str, StoredLog] = {}
    for page in store.list_objects(state.bucket, state.prefix + layout.PARTITIONS):
        for one in page:
            for path in [path for path in logs if not one.key.startswith(path, start)]:
                yield logs.pop(path)
            _take(one, state, logs)
    yield from logs.values()


def some_entries(state: S3Uri, store: ObjectStore) -> Iterator[Commit]:
    """Yield the newest entry of each of the first few logs that can be read.

    A damaged log stops its own partition and is skipped here.
    """
    pages = store.list_objects(state.bucket, state.prefix + layout.PARTITIONS)
    logs = [log for log in _collect(state, islice(pages, 1)).values() if log.entries]
    for log in logs[:_LOGS_LOOKED_AT]:
        newest = max(log.entries)
        try:
            yield read_entry(store, state.bucket, log.key_of(newest), newest)
        except IntegrityError:
            continue


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

    Raises:
        InvalidInput: another state lies among the logs, whose checkpoints would be mistaken for
            these.
    """
    start = len(state.prefix + layout.PARTITIONS)
    path, number = "", 0
    last: SourceObject | None = None
    for page in store.list_objects(state.bucket, state.prefix + layout.PARTITIONS):
        found: list[SourceObject] = []
        for one in page:
            match = _NAME.fullmatch(one.key, start)
            if match is None:
                _refuse_other_state(state, one.key)
                continue
            if not match[3]:
                continue
            # Keys of one log are adjacent unless a partition is named like a part of it; then some
            # replaced checkpoints are kept.
            newer = path == match[1] and number < int(match[2])
            if newer and last is not None and max(one.last_modified, last.last_modified) <= before:
                found.append(last)
            path, number, last = match[1], int(match[2]), one
        yield found


def one_log(state: S3Uri, path: str, store: ObjectStore) -> StoredLog:
    """Return one partition's log; without entries if there is no log."""
    log = StoredLog(path, state)
    for name in ("commits/", "cleaned/"):
        prefix = f"{state.prefix}{layout.PARTITIONS}{path}{name}"
        found = _collect(state, store.list_objects(state.bucket, prefix)).get(path)
        if found is not None:
            log.entries |= found.entries
            log.cleaned |= found.cleaned
            log.checkpoints |= found.checkpoints
            log.witnesses |= found.witnesses
            log.published |= found.published
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
    body = _get(store, bucket, key)
    try:
        commit = decode_commit(body, f"s3://{bucket}/{key}")
    except DAMAGE as error:
        raise _damaged(bucket, key, error) from error
    if commit.sequence != sequence:
        raise _damaged(bucket, key, f"it says that it is entry {commit.sequence}")
    return commit


def read_checkpoint(store: ObjectStore, bucket: str, key: str, path: str) -> LogState:
    """Read a checkpoint and return the state of its partition's log.

    Raises:
        IntegrityError: it cannot be decoded, was written for another partition or number, or was
            deleted since it was listed.
    """
    body = _get(store, bucket, key)
    try:
        state = decode_checkpoint(body, f"s3://{bucket}/{key}")
    except DAMAGE as error:
        raise _damaged(bucket, key, error) from error
    if not key.endswith(f"/{state.last:020d}.checkpoint.json.gz") or state.path != path:
        of = f"of partition {state.path or '(root)'}"
        raise _damaged(bucket, key, f"it says that it sums up {state.last} entries {of}")
    return state


def _get(store: ObjectStore, bucket: str, key: str) -> bytes:
    try:
        return store.get(bucket, key)
    except ObjectMissing:
        raise _damaged(bucket, key, "it was deleted just now") from None


def _damaged(bucket: str, key: str, why: object) -> IntegrityError:
    return IntegrityError(f"s3://{bucket}/{key} is damaged: {why}")


def _refuse_other_state(state: S3Uri, key: str) -> None:
    """Raise InvalidInput for a key that is the marker of another state."""
    if key.endswith(_OF_A_STATE):
        accepted = f"a prefix without another state in it, as s3://{state.bucket}/{key} is of one"
        raise InvalidInput("s3_state_uri", state.uri, accepted)


def _collect(state: S3Uri, pages: Iterable[Iterable[SourceObject]]) -> dict[str, StoredLog]:
    logs: dict[str, StoredLog] = {}
    for page in pages:
        for one in page:
            _take(one, state, logs)
    return logs


def _take(one: SourceObject, state: S3Uri, logs: dict[str, StoredLog]) -> None:
    match = _NAME.fullmatch(one.key, len(state.prefix + layout.PARTITIONS))
    if match is None:
        return _refuse_other_state(state, one.key)
    log = logs.setdefault(match[1], StoredLog(match[1], state))
    if match[3]:
        log.checkpoints.add(int(match[2]))
    elif match[4] == "witness":
        log.witnesses.add(int(match[2]))
    elif match[4]:
        log.published[int(match[2])] = one.last_modified
    elif match[2]:
        log.entries[int(match[2])] = one.last_modified
    else:
        log.cleaned.add(int(match[5]))
    return None
