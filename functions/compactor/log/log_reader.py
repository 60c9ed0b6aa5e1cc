"""The commit logs of a destination as they lie on S3, found without knowing its partitions."""

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

# The rest of a key below "partitions/", as layout.entry_name and layout.record_name make it. The
# last segments decide: what stands before them is the path, whatever a partition is called.
_NAME = re.compile(
    r"((?:.*/)?)(?:commits/(\d{20})\.(?:(checkpoint)\.json\.gz|(witness|published)\.json|json\.gz)"
    r"|cleaned/(\d{20})\.json)",
    re.DOTALL,
)
_LOGS_LOOKED_AT = 3
_OF_A_STATE = f"/{layout.IDENTITY_NAME}"
# What decoding raises when the bytes are not those that were written.
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
        state: where all state lies.
        entries: when each entry was written, by sequence; UNIX seconds of the store's clock.
        cleaned: sequences of the entries that clean-up is done with.
        checkpoints: sequences up to which a checkpoint sums the log up.
        witnesses: sequences of the entries that a witness names.
        published: when a later run published entries, by sequence; as in ``entries``.
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
        """Where it lies, for a person."""
        return f"s3://{self.state.bucket}/{self.state.prefix}{layout.PARTITIONS}{self.path}commits/"

    @property
    def keys(self) -> dict[int, str]:
        """Key of every entry by sequence."""
        return {sequence: self.key_of(sequence) for sequence in self.entries}

    @property
    def missing(self) -> list[int]:
        """Sequence numbers that have no entry, up to the last that is known."""
        last = max((*self.entries, *self.witnesses), default=0)
        return sorted(set(range(1, last + 1)) - set(self.entries))

    @property
    def uncleaned(self) -> list[int]:
        """Sequences of the entries that clean-up is not done with, in order."""
        return sorted(set(self.entries) - self.cleaned)

    def kept_since(self, sequence: int) -> float:
        """When the retention of an entry's sources began, by the store's clock; UNIX seconds."""
        return max(self.entries[sequence], self.published.get(sequence, 0.0))

    def key_of(self, sequence: int) -> str:
        """Key of one entry."""
        return self.state.prefix + layout.entry_name(self.path, sequence)

    def record_key_of(self, sequence: int) -> str:
        """Key of what clean-up leaves once it is done with an entry."""
        return self.state.prefix + layout.record_name(self.path, sequence)

    def checkpoint_key_of(self, sequence: int) -> str:
        """Key of the checkpoint that sums up all entries through one."""
        return self.state.prefix + layout.checkpoint_name(self.path, sequence)

    def newest_first(self, store: ObjectStore) -> Iterator[Commit]:
        """The valid entries: those that no later one replaces.

        Raises:
            IntegrityError: an entry cannot be read.
        """
        return newest_first(store, self.state.bucket, self.keys)


def all_logs(state: S3Uri, store: ObjectStore) -> list[StoredLog]:
    """Every log, in the order of paths.

    Raises:
        InvalidInput: another state lies among them, whose logs would be taken for these.
    """
    logs = _collect(state, store.list_objects(state.bucket, state.prefix + layout.PARTITIONS))
    return [logs[path] for path in sorted(logs)]


def few_logs(state: S3Uri, store: ObjectStore) -> list[StoredLog] | None:
    """Every log, where a page of a listing holds them all; None where it does not.

    Raises:
        InvalidInput: as :func:`all_logs`.
    """
    pages = store.list_objects(state.bucket, state.prefix + layout.PARTITIONS)
    first = next(pages, ())
    if next(pages, None) is not None:
        return None
    return [*_collect(state, [first]).values()]


def each_log(state: S3Uri, store: ObjectStore) -> Iterator[StoredLog]:
    """Every log, as soon as all of it is listed; few are held at a time.

    Keys come in order, and the path of a log is the beginning of all its keys: after them it is
    complete. Open meanwhile are the logs of the levels above, where partitions lie in each other.

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
    """The newest entries of the first few logs that can be read; none where there is no log.

    A log that is damaged stops its own partition, and is passed over here.
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
    """The checkpoints that no reader looks for since ``before``: a newer one was there then.

    The newest of a log is never among them, whatever its age: it is given only once another of
    the same log, with a higher number, has been seen.

    Args:
        state: where all state lies.
        store: where it is.
        before: UNIX seconds; both checkpoints were written by then.

    Raises:
        InvalidInput: another state lies among the logs, whose checkpoints would be taken for these.
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
            # Keys of one log lie together, but for partitions that are called like parts of it: of
            # such a log some stay.
            newer = path == match[1] and number < int(match[2])
            if newer and last is not None and max(one.last_modified, last.last_modified) <= before:
                found.append(last)
            path, number, last = match[1], int(match[2]), one
        yield found


def one_log(state: S3Uri, path: str, store: ObjectStore) -> StoredLog:
    """One partition's log; without entries where there is none."""
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
    """The entries of a log, newest first, each read once, and whether it is valid.

    An entry is valid when no later one replaces it. That depends on later entries alone, so each
    can be relied on as soon as it is given, and only one is held at a time.

    Args:
        store: where the log is.
        bucket: where its entries are.
        keys: key of every entry by sequence.

    Raises:
        IntegrityError: an entry cannot be decoded; nothing older is given.
    """
    void: set[int] = set()
    for sequence in sorted(keys, reverse=True):
        commit = read_entry(store, bucket, keys[sequence], sequence)
        # What a replacement has made void stays void when it is replaced itself.
        if commit.replaces is not None:
            void.add(commit.replaces)
        yield commit, sequence not in void


def newest_first(store: ObjectStore, bucket: str, keys: Mapping[int, str]) -> Iterator[Commit]:
    """The valid ones of :func:`every_entry`.

    Raises:
        IntegrityError: an entry cannot be decoded; nothing older is given.
    """
    return (commit for commit, valid in every_entry(store, bucket, keys) if valid)


def read_entry(store: ObjectStore, bucket: str, key: str, sequence: int) -> Commit:
    """One entry of a log.

    Raises:
        IntegrityError: it cannot be decoded, was written under another number or by a later
            version, or is gone since it was listed.
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
    """The state of a partition's log as of a checkpoint.

    Raises:
        IntegrityError: it cannot be decoded, was written elsewhere, or is gone since it was
            listed.
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
    """Refuse a key that is the marker of another state."""
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
