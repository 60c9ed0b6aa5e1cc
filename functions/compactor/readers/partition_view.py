"""What can be read in a partition, from its log and two listings. Read-only.

The log is read first, then the sources are listed, then the outputs. Sources committed meanwhile
are therefore still loose, and their output is one that the log as read does not name: each record
is counted in one place only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from compactor.log.digests import Digests
from compactor.log.entries import Commit, output_digest
from compactor.log.log import CommitLog
from compactor.log.state import LogState
from compactor.model import Partition, SourceObject
from compactor.ports import ObjectStore
from compactor.readers.states import Held, has_rows, is_archived
from compactor.settings.settings import Settings


@dataclass(frozen=True, slots=True)
class _Log:
    """What the log says about the listed objects.

    Attributes:
        held: identities of the sources whose content is in a readable output. What was put over
            one of them is not shown either.
        outputs: the outputs that can be read.
    """

    held: Digests
    outputs: tuple[SourceObject, ...]


@dataclass(frozen=True, slots=True)
class _There:
    """The log and listings of a partition.

    Attributes:
        state: the log, read before anything was listed.
        sources: all listed sources.
        outputs: listed outputs that may have rows.
        found: what the log says about both.
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
    """Return what can be read in a partition.

    Args:
        settings: of its runs.
        partition: the partition.
        store: where it is.
        now: UNIX seconds.

    Raises:
        IntegrityError: the log is incomplete.
        InvalidInput: reading something is not permitted.
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
    bucket, prefix = settings.outputs_of(partition)
    outputs = [one for one in _listed(store, bucket, prefix) if has_rows(one, prefix)]
    return _There(state, sources, outputs, _found(log, state, outputs))


def _listed(store: ObjectStore, bucket: str, prefix: str) -> Iterable[SourceObject]:
    return (one for page in store.list_objects(bucket, prefix) for one in page)


def _seen(
    sources: Iterable[SourceObject], held: Digests, partition: Partition, now: float
) -> _Sources:
    seen = _Sources()
    for one in sources:
        if held.has_key_of(one.identity) or not has_rows(one, partition.prefix):
            continue
        if is_archived(one, now):
            seen.unread += 1
        else:
            seen.loose.append(one)
    return seen


def _found(log: CommitLog, state: LogState, there: Collection[SourceObject]) -> _Log:
    digests = {output_digest(one.bucket, one.key): one for one in there}
    if state.outputs <= digests.keys():
        # Every output ever named exists; void ones are never published.
        outputs = tuple(digests[one] for one in state.outputs)
        return _Log(state.committed, _sorted(outputs))
    return _by_entries(log, state, digests)


def _by_entries(log: CommitLog, state: LogState, there: dict[bytes, SourceObject]) -> _Log:
    """Determine what is held by reading every entry, because some outputs do not exist."""
    held = Digests()
    outputs: list[SourceObject] = []
    for commit in log.every_commit(state.last):
        if commit.sequence > state.last:
            # Committed after the log was read: its sources count as loose.
            continue
        one = _output_of(commit, there)
        if commit.output is not None and one is None:
            continue
        held.update(row.source.identity for row in commit.rows)
        if one is not None:
            outputs.append(one)
    return _Log(held, _sorted(outputs))


def _output_of(commit: Commit, there: dict[bytes, SourceObject]) -> SourceObject | None:
    if commit.output is None:
        return None
    return there.get(output_digest(commit.output.bucket, commit.output.key))


def _sorted(outputs: Iterable[SourceObject]) -> tuple[SourceObject, ...]:
    return tuple(sorted(outputs, key=lambda one: one.key))
