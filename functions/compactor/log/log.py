"""The commit log of one partition: every commit is one create-if-absent PUT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from operator import attrgetter

from compactor.destination import is_output_name
from compactor.errors import CommitConflict, IntegrityError, damaged
from compactor.log.encoding import encode_checkpoint, encode_commit
from compactor.log.entries import Commit, require_each_once
from compactor.log.identity import WAY_OUT, StateIdentity
from compactor.log.log_reader import newest_first, read_checkpoint, read_entry
from compactor.log.manifest import identities
from compactor.log.numbered import CHECKPOINT, NumberedLog
from compactor.log.state import LogState
from compactor.model import Partition, SourceObject
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings


class CommitLog:
    """One partition's commit log on a store.

    Args:
        store: the store that holds the log.
        settings: the run's settings.
        partition: the partition.
        identity: that of the state; None to read it when it is first needed.
    """

    def __init__(
        self,
        store: ObjectStore,
        settings: Settings,
        partition: Partition,
        identity: StateIdentity | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._partition = partition
        self._identity = identity or StateIdentity(settings, store)
        self._bucket, prefix = settings.layout.commits(partition.path)
        self._log = NumberedLog(
            store,
            self._bucket,
            prefix,
            "json.gz",
            read=self._read,
            encode=encode_commit,
            id_of=attrgetter("commit_id"),
            most_races=settings.limits.races,
        )

    def load(self) -> LogState:
        """Return the log's state: the newest checkpoint and every entry after it.

        Costs one LIST and a few GETs.

        Raises:
            IntegrityError: an entry cannot be decoded; an entry is missing, including one that the
                checkpoint covers; or there is something to publish and the state's identity differs
                from the one its entries name.
        """
        listed = self._log.listed()
        state = LogState()
        if listed.checkpoint:
            key = self._log.key(listed.checkpoint, CHECKPOINT)
            state = read_checkpoint(self._store, self._bucket, key, self._partition.path)
        self._log.fold_in(state, listed)
        if state.log_id and state.unpublished:
            # With nothing to publish, the check can wait until something is written.
            self.claim(state)
        return state

    def claim(self, state: LogState) -> str:
        """Return the log's identity, which entries and outputs name, creating it if needed.

        Raises:
            IntegrityError: the log's entries name a different identity.
            InvalidInput: the state belongs to another destination, or was made of other partitions.
        """
        state.log_id = self._identity.claim(state.log_id)
        return state.log_id

    def require_whole(self, state: LogState) -> None:
        """Check that an empty log has no outputs; otherwise it was lost, or is elsewhere.

        The sources of a lost entry would be compacted again. Costs one LIST if the log is empty.
        Whether the outputs of its entries are still there is not checked here: a lifecycle rule may
        have expired them, and clean-up, before it deletes anything, proves every one.

        Raises:
            IntegrityError: the log is empty, and there is an output.
        """
        output = None if state.last else self._first_output()
        if output is None:
            return
        # Outputs that another run published in the meantime were committed first.
        self.refresh(state)
        if not state.last:
            raise empty_log(self._log.where, output)

    def _first_output(self) -> SourceObject | None:
        """Return an object named like an output of the partition, or None."""
        place = self._settings.outputs_of(self._partition)
        for page in self._store.list_level(*place):
            for listed in page.objects:
                if is_output_name(listed.key):
                    return listed
        return None

    def refresh(self, state: LogState) -> None:
        """Read the entries written since ``state`` was loaded.

        Raises:
            IntegrityError: an entry cannot be decoded, or is missing.
        """
        self._log.refresh(state)

    def append(self, state: LogState, draft: Commit) -> Commit:
        """Write ``draft`` as the next entry and return the commit.

        Raises:
            CommitConflict: an entry written in the meantime names one of its sources, or replaces
                the same commit. ``state`` is then up to date.
            IntegrityError: nothing is written because the draft names a key twice, or the log's
                identity was lost or changed.
            InvalidInput: the destination was built from differently divided partitions.
            TransientStoreError: other writers won the race a thousand times in a row.
        """
        require_each_once(draft)
        log_id = self.claim(state)
        draft = replace(draft, log_id=log_id)
        return self._log.append(
            state,
            lambda number: replace(draft, sequence=number),
            # Checked before the first attempt too: the log may have been re-read for another group
            # after this one was planned.
            lambda: self._refuse_conflict(state, draft),
        )

    def checkpoint(self, state: LogState) -> None:
        """Write a checkpoint, unless one is current or a commit is unpublished.

        Clean-up counts the retention of sources from the checkpoint that covers their commit.
        """
        if state.last == state.checkpoint or state.unpublished:
            return
        # If it exists, another run wrote the same checkpoint.
        self._log.attach(state.last, CHECKPOINT, encode_checkpoint(state, self._partition.path))

    def every_commit(self, through: int = 0) -> Iterator[Commit]:
        """Yield all valid entries, newest first, without using checkpoints.

        Args:
            through: sequence of an entry known to have existed.

        Raises:
            IntegrityError: an entry is missing, including one that a checkpoint covers; or one
                cannot be decoded, in which case nothing older is yielded.
        """
        listed = self._log.listed(existing=through)
        keys = {number: self._log.key(number) for number in listed.entries}
        return newest_first(self._store, self._bucket, keys)

    def _read(self, bucket: str, key: str, number: int) -> Commit:
        """Read an entry, whose output must belong to this partition."""
        commit = read_entry(self._store, bucket, key, number)
        place, prefix = self._settings.outputs_of(self._partition)
        output = commit.output
        if output is not None and not (output.bucket == place and output.key.startswith(prefix)):
            named = f"it names {output.uri}, no output of this partition"
            raise damaged(f"s3://{bucket}/{key}", named)
        return commit

    def _refuse_conflict(self, state: LogState, draft: Commit) -> None:
        drafted = identities(draft.rows) | {q.source.identity for q in draft.quarantined}
        if draft.replaces is not None:
            if draft.replaces not in state.unpublished:
                raise CommitConflict(f"commit {draft.replaces} was replaced meanwhile")
            drafted -= {source.identity for source in state.unpublished[draft.replaces].sources}
        # Two runs may have seen a key with two ETags.
        committed = sum(map(state.committed.has_key_of, drafted))
        if committed:
            raise CommitConflict(f"{committed} of {len(drafted)} sources were committed meanwhile")


def empty_log(where: str, output: SourceObject) -> IntegrityError:
    """Return the error for a log that is empty although there are outputs."""
    return IntegrityError(
        f"log {where} is empty, and s3://{output.bucket}/{output.key} exists: what is in it would"
        f" be compacted again. The log is gone, or another s3_state_uri has it; {WAY_OUT}"
    )
