"""Commit: one create-if-absent PUT into the partition's commit log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import inf

from compactor import layout
from compactor.commit_log import Commit, LogState
from compactor.errors import AlreadyExists, CommitConflict, IntegrityError, TransientStoreError
from compactor.log_entries import encode_checkpoint, encode_commit
from compactor.manifest import identities
from compactor.model import Partition
from compactor.ports import ObjectStore
from compactor.settings import Settings
from compactor.stored_logs import newest_first, read_checkpoint, read_entry

_NAME = re.compile(r"/(\d{20})(\.checkpoint)?\.json\.gz$")
# Each lost race means that another worker got its entry in: so many in a row is a defect.
_MOST_RACES = 1_000


class CommitLog:
    """One partition's commit log on a store."""

    def __init__(self, store: ObjectStore, settings: Settings, partition: Partition) -> None:
        self._store = store
        self._settings = settings
        self._partition = partition
        self._bucket, self._prefix = layout.commits_prefix(settings, partition)

    def load(self) -> LogState:
        """The newest checkpoint and every entry after it: one LIST and few GETs.

        Raises:
            IntegrityError: one of them cannot be decoded, or an entry is missing.
        """
        commits, checkpoints, written_at = self._names("")
        state = LogState()
        if checkpoints:
            through, key = max(checkpoints.items())
            state = read_checkpoint(self._store, self._bucket, key)
            commits = {n: key for n, key in commits.items() if n > through}
        state.written_at = written_at
        self._take(state, commits)
        return state

    def refresh(self, state: LogState) -> None:
        """Take the entries that were written since ``state`` was loaded.

        Raises:
            IntegrityError: one of them cannot be decoded, or one is missing.
        """
        after = layout.commit_key(self._settings, self._partition, state.last)[1]
        commits, _, written_at = self._names(after)
        if commits:
            state.written_at = written_at
        self._take(state, {n: key for n, key in commits.items() if n > state.last})

    def append(self, state: LogState, draft: Commit) -> Commit:
        """Write ``draft`` as the next entry.

        Raises:
            CommitConflict: an entry written meanwhile names one of its sources, or replaces
                the commit it wants to replace. The log state is up to date then.
            TransientStoreError: others were first a thousand times.
        """
        for _ in range(_MOST_RACES):
            # Also before the first try: the log may have been read anew, for another group,
            # after this one was planned.
            self._refuse_conflict(state, draft)
            commit = replace(draft, sequence=state.last + 1)
            bucket, key = layout.commit_key(self._settings, self._partition, commit.sequence)
            try:
                self._store.create(bucket, key, encode_commit(commit))
            except AlreadyExists:
                self.refresh(state)
                # A retried PUT may meet the entry that its own first try wrote.
                if state.commit_ids.get(commit.sequence) == commit.commit_id:
                    return commit
            else:
                state.add(commit)
                return commit
        raise TransientStoreError(
            f"commit log {self._prefix}: others were first {_MOST_RACES:,} times"
        )

    def checkpoint(self, state: LogState) -> None:
        """Sum up the log once every commit in it is published; otherwise do nothing."""
        if state.last == state.checkpoint or state.unpublished:
            return
        bucket, key = layout.checkpoint_key(self._settings, self._partition, state.last)
        try:
            self._store.create(bucket, key, encode_checkpoint(state))
        except AlreadyExists:
            # Another run summed up the same entries: same content.
            return

    def every_commit(self) -> Iterator[Commit]:
        """All valid entries, checkpoints aside, newest first.

        Raises:
            IntegrityError: an entry cannot be decoded; nothing older is given.
        """
        commits, _, _ = self._names("")
        return newest_first(self._store, self._bucket, commits)

    def _names(self, start_after: str) -> tuple[dict[int, str], dict[int, str], float]:
        """Entries and checkpoints by sequence, and when the newest entry was written."""
        commits: dict[int, str] = {}
        checkpoints: dict[int, str] = {}
        written: dict[int, float] = {}
        for page in self._store.list_objects(self._bucket, self._prefix, start_after=start_after):
            for entry in page:
                match = _NAME.match(entry.key, len(self._prefix) - 1)
                if match:
                    found = checkpoints if match[2] else commits
                    found[int(match[1])] = entry.key
                if match and not match[2]:
                    written[int(match[1])] = entry.last_modified
        return commits, checkpoints, max(written.values(), default=inf)

    def _take(self, state: LogState, commits: dict[int, str]) -> None:
        for sequence in sorted(commits):
            if sequence != state.last + 1:
                raise IntegrityError(
                    f"commit log {self._prefix} has no entry {state.last + 1}, "
                    f"but has {sequence}: it was changed by hand"
                )
            key = commits[sequence]
            commit = read_entry(self._store, self._bucket, key, sequence)
            state.add(commit)
            state.foreign.add(commit.rows)

    def _refuse_conflict(self, state: LogState, draft: Commit) -> None:
        wanted = identities(draft.rows) | {q.source.identity for q in draft.quarantined}
        if draft.group_id:
            # Otherwise they were put again after the commit that names them.
            wanted |= {one.source.identity for one in draft.again}
        if draft.replaces is not None:
            if draft.replaces not in state.unpublished:
                raise CommitConflict(f"commit {draft.replaces} was replaced meanwhile")
            wanted -= {one.identity for one in state.unpublished[draft.replaces].sources}
        taken = wanted & state.committed
        if taken:
            raise CommitConflict(f"{len(taken)} of {len(wanted)} sources were committed meanwhile")
        # The same content may have come under two ETags, one for either run.
        if draft.replaces is None and state.foreign.has_key_of(draft.rows):
            raise CommitConflict("other content of the same keys was committed meanwhile")
