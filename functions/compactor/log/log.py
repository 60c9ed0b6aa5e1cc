"""The commit log of one partition: every commit is one create-if-absent PUT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from compactor import layout
from compactor.destination import Destination
from compactor.errors import AlreadyExists, CommitConflict, IntegrityError, TransientStoreError
from compactor.log.completeness import not_whole, require_unbroken, unnamed_outputs
from compactor.log.encoding import encode_checkpoint, encode_commit
from compactor.log.entries import Commit, output_digest, require_each_once
from compactor.log.identity import WAY_OUT, claim_identity, require_identity
from compactor.log.log_objects import LogObjects, Outline
from compactor.log.log_reader import every_entry, read_checkpoint, read_entry
from compactor.log.manifest import identities
from compactor.log.process_cache import SeenState
from compactor.log.schemes import number_of_scheme, remember_scheme
from compactor.log.state import LogState
from compactor.log.witness import Witness, leave_witness, read_witness, require_witness
from compactor.model import Partition, SourceObject
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings


class CommitLog:
    """One partition's commit log on a store.

    Args:
        store: the store that holds the log.
        settings: the run's settings.
        partition: the partition.
        seen: what this process already knows about the state; updated. None for nothing.
    """

    def __init__(
        self,
        store: ObjectStore,
        settings: Settings,
        partition: Partition,
        seen: SeenState | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._partition = partition
        self._seen = seen or SeenState()
        self._bucket, self._prefix = layout.commits_prefix(settings, partition)

    def load(self, *, lost: bool = False) -> LogState:
        """Return the log's state: the newest checkpoint and every entry after it.

        Costs one LIST and a few GETs.

        Args:
            lost: the last entries may be missing and their numbers may be reused, whatever
                witnesses say. For rebuilding the log while no other writer is active.

        Raises:
            IntegrityError: an entry cannot be decoded; an entry is missing, including one that the
                checkpoint covers; or there is something to publish and the state's identity differs
                from the one its entries name.
        """
        listed = self._list("")
        state = LogState(path=self._partition.path)
        gone: set[int] = set()
        if lost:
            gone = {n for n in listed.witnesses if n > max(listed.commits, default=0)}
            listed.witnesses -= gone
        self._require_unbroken(listed)
        if listed.checkpoints:
            _, key = max(listed.checkpoints.items())
            state = read_checkpoint(self._store, self._bucket, key, self._partition.path)
        state.written_at = listed.written_at
        state.lost = gone
        self._take(state, listed)
        if state.log_id and state.unpublished:
            # With nothing to publish, the check can wait until something is written: see claim.
            require_identity(self._settings, self._store, state.log_id)
            state.claimed = True
        return state

    def claim(self, state: LogState) -> str:
        """Return the log's identity, which entries and outputs name, creating it if needed.

        Raises:
            IntegrityError: the log's entries name a different identity.
            InvalidInput: the state belongs to another destination.
        """
        if not state.claimed:
            if state.log_id:
                require_identity(self._settings, self._store, state.log_id)
            else:
                state.log_id = claim_identity(self._settings, self._store).log_id
            state.claimed = True
        return state.log_id

    def require_whole(self, state: LogState) -> None:
        """Check that the log names every existing output; otherwise entries were lost.

        The sources of a lost entry would be compacted again. Costs one GET if there is a checkpoint
        and one LIST of the outputs; more only if an output is not named.

        Raises:
            IntegrityError: no entry names an existing output, or the checkpoint names a different
                last entry than the log has.
        """
        if state.checkpoint:
            bucket, key = layout.witness_key(self._settings, self._partition, state.checkpoint)
            witness = read_witness(self._store, bucket, key)
            if witness is not None:
                self._require_checkpoint(state, witness.commit_id)
        unnamed = self.unnamed(state)
        if not unnamed:
            return
        # Outputs that another run published in the meantime were committed first.
        self.refresh(state)
        unnamed = [one for one in unnamed if not _names_output(state, one)]
        if unnamed:
            raise not_whole(f"s3://{self._bucket}/{self._prefix}", state.last, unnamed)

    def unnamed(self, state: LogState) -> list[SourceObject]:
        """Return the existing outputs that no entry known to ``state`` names."""
        bucket, prefix = layout.output_prefix(self._settings, self._partition)
        place = Destination(bucket, prefix)
        return unnamed_outputs(self._store, place, partial(_names_output, state))

    def refresh(self, state: LogState) -> None:
        """Read the entries written since ``state`` was loaded.

        Raises:
            IntegrityError: an entry cannot be decoded, or is missing.
        """
        after = layout.commit_key(self._settings, self._partition, state.last)[1]
        listed = self._list(after)
        if listed.commits:
            state.written_at = listed.written_at
        self._take(state, listed)

    def prepare(self, state: LogState) -> str:
        """Check identity and scheme, storing them if needed, before an entry is written.

        Returns:
            The log's identity.

        Raises:
            IntegrityError: the log's identity or scheme was lost or changed.
            InvalidInput: the destination was built from differently divided partitions.
        """
        log_id = self.claim(state)
        if not state.scheme_kept:
            if self._seen.scheme_of != log_id:
                # Stored before a run's first commit, so of two runs with contradicting schemes only
                # one can commit.
                remember_scheme(self._settings, self._store, number=state.scheme_number)
                self._seen.scheme_of = log_id
            state.scheme_kept = True
        return log_id

    def look_at_scheme(self, state: LogState) -> None:
        """Make the scheme check of :meth:`prepare` without writing; call :meth:`claim` first.

        Raises:
            IntegrityError: the log's scheme was lost or changed.
            InvalidInput: the destination was built from differently divided partitions.
        """
        if state.scheme_kept or self._seen.scheme_of == state.log_id:
            return
        state.scheme_number = number_of_scheme(self._settings, self._store)
        if state.scheme_number is None:
            self._seen.scheme_of = state.log_id

    def append(self, state: LogState, draft: Commit) -> Commit:
        """Write ``draft`` as the next entry and return the commit.

        Raises:
            CommitConflict: an entry written in the meantime names one of its sources, or replaces
                the same commit. ``state`` is then up to date.
            IntegrityError: nothing is written because the draft names a key twice, the log's
                identity or scheme was lost or changed, or an entry found in the meantime is not
                the first one that had its number.
            InvalidInput: the destination was built from differently divided partitions.
            TransientStoreError: other writers won the race a thousand times in a row.
        """
        require_each_once(draft)
        log_id = self.prepare(state)
        most_races = self._settings.limits.races
        for _ in range(most_races):
            # Checked before the first attempt too: the log may have been re-read for another group
            # after this one was planned.
            self._refuse_conflict(state, draft)
            commit = replace(draft, sequence=state.last + 1, log_id=log_id)
            bucket, key = layout.commit_key(self._settings, self._partition, commit.sequence)
            try:
                self._store.create(bucket, key, encode_commit(commit))
            except AlreadyExists:
                self.refresh(state)
                # A retried PUT may find the entry that its own first attempt wrote.
                if state.commit_ids.get(commit.sequence) != commit.commit_id:
                    # Without a witness, an entry's number could be reused if another process
                    # deletes the entry now.
                    self.settle_numbers(state)
                    continue
            else:
                state.add(commit)
            self._leave_witness(state, commit.sequence)
            return commit
        raise TransientStoreError(
            f"commit log {self._prefix}: others were first {most_races:,} times"
        )

    def outline(self) -> Outline | None:
        """Return the log's outline from one LIST; None if it has gaps or uncovered entries."""
        listed = self._list("")
        try:
            self._require_unbroken(listed)
        except IntegrityError:
            return None
        return listed.outline

    def checkpoint(self, state: LogState) -> None:
        """Write a checkpoint, unless one is current or a commit is unpublished or unwitnessed.

        Raises:
            IntegrityError: there is a checkpoint at this number with another commit as its last
                entry.
        """
        if state.last == state.checkpoint or state.unpublished or state.unwitnessed:
            return
        bucket, key = layout.checkpoint_key(self._settings, self._partition, state.last)
        try:
            self._store.create(bucket, key, encode_checkpoint(state))
        except AlreadyExists:
            # Another run wrote the same checkpoint, or an entry was deleted since.
            found = read_checkpoint(self._store, bucket, key, self._partition.path)
            self._require_checkpoint(found, state.commit_ids[state.last])

    def _require_checkpoint(self, state: LogState, commit_id: str) -> None:
        """Check that the last entry a checkpoint covers is this commit."""
        summed_up = state.commit_ids[state.checkpoint]
        if summed_up != commit_id:
            bucket, key = layout.checkpoint_key(self._settings, self._partition, state.checkpoint)
            raise IntegrityError(
                f"s3://{bucket}/{key} sums up commit {summed_up} as entry {state.checkpoint}, which"
                f" is {commit_id}: an entry was deleted, and its number given to another one."
                f" Delete this checkpoint, which the log does without; {WAY_OUT}"
            )

    def every_commit(self, through: int = 0) -> Iterator[Commit]:
        """Yield all valid entries, newest first, without using checkpoints.

        Args:
            through: sequence of an entry known to have existed.

        Raises:
            IntegrityError: an entry is missing, including one that a checkpoint covers; or one
                cannot be decoded, in which case nothing older is yielded.
        """
        listed = self._list("")
        self._require_unbroken(listed, through)
        return self._every(listed)

    def _every(self, listed: LogObjects) -> Iterator[Commit]:
        for commit, valid in every_entry(self._store, self._bucket, listed.commits):
            if not valid:
                continue
            if commit.sequence in listed.witnesses:
                self._require_witness(commit)
            yield commit

    def settle_numbers(self, state: LogState) -> None:
        """Write or compare the witness of every entry that other runs wrote.

        Must run before anything is published or planned based on these entries.

        Raises:
            IntegrityError: an entry is not the first one that had its number.
        """
        for sequence in sorted(state.unwitnessed):
            self._leave_witness(state, sequence)

    def note_publication(self, commit: Commit) -> None:
        """Record the publication time of a commit that a later run is about to publish."""
        bucket, key = layout.publication_key(self._settings, self._partition, commit.sequence)
        witness = Witness(commit_id=commit.commit_id, log_id=commit.log_id)
        leave_witness(self._store, bucket, key, witness, again=True)

    def is_disputed(self, state: LogState, sequence: int) -> bool:
        """Return True if an entry is not the first one that had its number, by its witness."""
        bucket, key = layout.witness_key(self._settings, self._partition, sequence)
        witness = read_witness(self._store, bucket, key)
        return witness is not None and witness.commit_id != state.commit_ids[sequence]

    def _leave_witness(self, state: LogState, sequence: int) -> None:
        bucket, key = layout.witness_key(self._settings, self._partition, sequence)
        witness = Witness(commit_id=state.commit_ids[sequence], log_id=state.log_id)
        if state.unwitnessed.pop(sequence, False) and sequence not in state.lost:
            return require_witness(self._store, bucket, key, witness.commit_id)
        return leave_witness(self._store, bucket, key, witness, again=sequence in state.lost)

    def _require_witness(self, commit: Commit) -> None:
        bucket, key = layout.witness_key(self._settings, self._partition, commit.sequence)
        require_witness(self._store, bucket, key, commit.commit_id)

    def _list(self, start_after: str) -> LogObjects:
        pages = self._store.list_objects(self._bucket, self._prefix, start_after=start_after)
        return LogObjects.of(pages, self._prefix)

    def _require_unbroken(self, listed: LogObjects, through: int = 0) -> None:
        known = {*listed.checkpoints, *listed.witnesses, through}
        require_unbroken(f"s3://{self._bucket}/{self._prefix}", listed.commits, known)

    def _take(self, state: LogState, listed: LogObjects) -> None:
        """Apply the listed entries that ``state`` does not have yet."""
        commits = {n: key for n, key in listed.commits.items() if n > state.last}
        for sequence in sorted({*commits, *(n for n in listed.witnesses if n > state.last)}):
            if sequence != state.last + 1 or sequence not in commits:
                raise IntegrityError(
                    f"commit log {self._prefix} has no entry {state.last + 1}, "
                    f"but was {sequence} entries long: it was changed by hand; {WAY_OUT}"
                )
            commit = read_entry(self._store, self._bucket, commits[sequence], sequence)
            self._require_ours(commit)
            state.add(commit)
            state.unwitnessed[sequence] = sequence in listed.witnesses
            state.foreign.add(commit.rows)

    def _require_ours(self, commit: Commit) -> None:
        bucket, prefix = layout.output_prefix(self._settings, self._partition)
        output = commit.output
        if output is not None and not (output.bucket == bucket and output.key.startswith(prefix)):
            raise IntegrityError(
                f"commit log {self._prefix}: entry {commit.sequence} names"
                f" s3://{output.bucket}/{output.key}, which is no output of this partition: it was"
                " changed by hand"
            )

    def _refuse_conflict(self, state: LogState, draft: Commit) -> None:
        wanted = identities(draft.rows) | {q.source.identity for q in draft.quarantined}
        if draft.group_id:
            # A draft without a group only records sources that were written again after their
            # commit.
            wanted |= {one.source.identity for one in draft.again}
        if draft.replaces is not None:
            if draft.replaces not in state.unpublished:
                raise CommitConflict(f"commit {draft.replaces} was replaced meanwhile")
            wanted -= {one.identity for one in state.unpublished[draft.replaces].sources}
        taken = wanted & state.committed
        if taken:
            raise CommitConflict(f"{len(taken)} of {len(wanted)} sources were committed meanwhile")
        # Two runs may have seen the same key with two ETags, hence two identities.
        if draft.replaces is None and state.foreign.has_key_of(draft.rows):
            raise CommitConflict("other content of the same keys was committed meanwhile")


def _names_output(state: LogState, one: SourceObject) -> bool:
    return output_digest(one.bucket, one.key) in state.outputs
