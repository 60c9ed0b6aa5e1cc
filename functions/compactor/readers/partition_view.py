"""One look at a partition: what can be read in it, by its log and two listings; reads only.

The log is read first, then the sources are listed, then the outputs. So what is committed meanwhile
is loose, or an output that the log as it was read does not name: either way it is in one place.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass, field

from compactor import layout
from compactor.log.entries import Commit, output_digest
from compactor.log.log import CommitLog
from compactor.log.state import LogState
from compactor.model import Partition, SourceObject
from compactor.ports import ObjectStore
from compactor.readers.states import Held, has_rows, is_archived
from compactor.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class _Log:
    """What the log says of what was listed.

    Attributes:
        held: identities of the sources whose content a readable output has.
        outputs: those that can be read.
    """

    held: Container[bytes]
    outputs: tuple[SourceObject, ...]


@dataclass(frozen=True, slots=True)
class _There:
    """What is there of a partition.

    Attributes:
        state: as its log was read, before anything was listed.
        sources: all that were listed.
        outputs: that were listed and may have rows.
        found: what the log says of both.
    """

    state: LogState
    sources: list[SourceObject]
    outputs: list[SourceObject]
    found: _Log


@dataclass(slots=True)
class _Sources:
    loose: list[SourceObject] = field(default_factory=list)
    unread: int = 0


def look(
    settings: Settings,
    partition: Partition,
    store: ObjectStore,
    now: float,
) -> Held:
    """What can be read in a partition.

    Args:
        settings: of its runs.
        partition: which.
        store: where it is.
        now: UNIX seconds.

    Raises:
        IntegrityError: the log is not whole.
        InvalidInput: something may not be read.
        TransientStoreError: the store did not answer.
    """
    there = _there(settings, partition, store)
    seen = _seen(there.sources, there.found.held, partition, now)
    committed = there.state.committed
    standing = sum(
        one.identity in committed
        for one in there.sources
        if not one.size or has_rows(one, partition.prefix)
    )
    return Held(
        loose=tuple(seen.loose),
        outputs=there.found.outputs,
        standing=standing == len(committed),
        others=len(there.outputs) > len(there.found.outputs),
        unread=seen.unread,
    )


def _there(settings: Settings, partition: Partition, store: ObjectStore) -> _There:
    log = CommitLog(store, settings, partition)
    state = log.load()
    sources = list(_listed(store, partition.bucket, partition.prefix))
    bucket, prefix = layout.output_prefix(settings, partition)
    outputs = [one for one in _listed(store, bucket, prefix) if has_rows(one, prefix)]
    return _There(state, sources, outputs, _found(log, state, outputs))


def _listed(store: ObjectStore, bucket: str, prefix: str) -> Iterable[SourceObject]:
    return (one for page in store.list_objects(bucket, prefix) for one in page)


def _seen(
    sources: Iterable[SourceObject], held: Container[bytes], partition: Partition, now: float
) -> _Sources:
    seen = _Sources()
    for one in sources:
        if one.identity in held or not has_rows(one, partition.prefix):
            continue
        if is_archived(one, now):
            seen.unread += 1
        else:
            seen.loose.append(one)
    return seen


def _found(log: CommitLog, state: LogState, there: Collection[SourceObject]) -> _Log:
    digests = {output_digest(one.bucket, one.key): one for one in there}
    if state.outputs <= digests.keys():
        # All that was ever named is there, and what is void is never published.
        outputs = tuple(digests[one] for one in state.outputs)
        return _Log(state.committed, _sorted(outputs))
    return _by_entries(log, state, digests)


def _by_entries(log: CommitLog, state: LogState, there: dict[bytes, SourceObject]) -> _Log:
    """Every entry is read: some outputs are not there."""
    held: set[bytes] = set()
    again: list[tuple[int, set[bytes]]] = []
    outputs: list[SourceObject] = []
    readable: set[int] = set()
    for commit in log.every_commit(state.last):
        if commit.sequence > state.last:
            # Written since the log was read: its sources are loose here.
            continue
        one = _output_of(commit, there)
        if commit.output is not None and one is None:
            continue
        readable.add(commit.sequence)
        held.update(row.source.identity for row in commit.rows)
        again += [(each.of, {each.source.identity}) for each in commit.again]
        if one is not None:
            outputs.append(one)
    for sequence, identities in again:
        if sequence in readable:
            held |= identities
    return _Log(held, _sorted(outputs))


def _output_of(commit: Commit, there: dict[bytes, SourceObject]) -> SourceObject | None:
    if commit.output is None:
        return None
    return there.get(output_digest(commit.output.bucket, commit.output.key))


def _sorted(outputs: Iterable[SourceObject]) -> tuple[SourceObject, ...]:
    return tuple(sorted(outputs, key=lambda one: one.key))
