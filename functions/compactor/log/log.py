"""Commit: one create-if-absent PUT into the partition's commit log."""

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
        store: where it is.
        settings: of the run.
        partition: whose it is.
        seen: what this process knows of the state already; added to. None for nothing.
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
        """The newest checkpoint and every entry after it: one LIST and few GETs.

        Args:
            lost: the last entries may be gone, and their numbers are free again, whatever
                witnesses say: for a rebuild of the log while no other writer is at work.

        Raises:
            IntegrityError: one of them cannot be decoded, an entry is missing, also of those that
                the checkpoint covers, or there is something to publish and the state is not the
                one that they name.
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
            # Otherwise there is time until something is to be stored: see claim.
            require_identity(self._settings, self._store, state.log_id)
            state.claimed = True
        return state

    def claim(self, state: LogState) -> str:
        """Identity of the log that entries and outputs name; made where the state has none yet.

        Raises:
            IntegrityError: the state is not the one that the log's entries name.
            InvalidInput: the state is that of another destination.
        """
        if not state.claimed:
            if state.log_id:
                require_identity(self._settings, self._store, state.log_id)
            else:
                state.log_id = claim_identity(self._settings, self._store).log_id
            state.claimed = True
        return state.log_id

    def require_whole(self, state: LogState) -> None:
        """Make sure that the log names every output that is there: otherwise entries are gone.

        A record of theirs would be compacted again. One GET where there is a checkpoint, one LIST
        of the outputs, and nothing more where all of them are named.

        Raises:
            IntegrityError: an output is there that no entry names, or the checkpoint sums up
                another last entry than there is.
        """
        if state.checkpoint:
            bucket, key = layout.witness_key(self._settings, self._partition, state.checkpoint)
            witness = read_witness(self._store, bucket, key)
            if witness is not None:
                self._require_checkpoint(state, witness.commit_id)
        unnamed = self.unnamed(state)
        if not unnamed:
            return
        # Another run that published them meanwhile has committed them before.
        self.refresh(state)
        unnamed = [one for one in unnamed if not _names_output(state, one)]
        if unnamed:
            raise not_whole(f"s3://{self._bucket}/{self._prefix}", state.last, unnamed)

    def unnamed(self, state: LogState) -> list[SourceObject]:
        """The outputs that are there, and that no entry names as far as ``state`` knows."""
        bucket, prefix = layout.output_prefix(self._settings, self._partition)
        place = Destination(bucket, prefix)
        return unnamed_outputs(self._store, place, partial(_names_output, state))

    def refresh(self, state: LogState) -> None:
        """Take the entries that were written since ``state`` was loaded.

        Raises:
            IntegrityError: one of them cannot be decoded, or one is missing.
        """
        after = layout.commit_key(self._settings, self._partition, state.last)[1]
        listed = self._list(after)
        if listed.commits:
            state.written_at = listed.written_at
        self._take(state, listed)

    def prepare(self, state: LogState) -> str:
        """What is to be asked and kept before an entry is written; returns the log's identity.

        Raises:
            IntegrityError: the log is not what it was.
            InvalidInput: the destination was made of other partitions.
        """
        log_id = self.claim(state)
        if not state.scheme_kept:
            if self._seen.scheme_of != log_id:
                # Before the first commit of a run, so that of two that contradict one has none.
                remember_scheme(self._settings, self._store, number=state.scheme_number)
                self._seen.scheme_of = log_id
            state.scheme_kept = True
        return log_id

    def look_at_scheme(self, state: LogState) -> None:
        """Ask what :meth:`prepare` would have to ask, and write nothing; after :meth:`claim`.

        Raises:
            IntegrityError: the log is not what it was.
            InvalidInput: the destination was made of other partitions.
        """
        if state.scheme_kept or self._seen.scheme_of == state.log_id:
            return
        state.scheme_number = number_of_scheme(self._settings, self._store)
        if state.scheme_number is None:
            self._seen.scheme_of = state.log_id

    def append(self, state: LogState, draft: Commit) -> Commit:
        """Write ``draft`` as the next entry.

        Raises:
            CommitConflict: an entry written meanwhile names one of its sources, or replaces
                the commit it wants to replace. The log state is up to date then.
            IntegrityError: the draft names a key twice, or the log is not what it was, or an entry
                found meanwhile is not the one that had its number first; nothing is written.
            InvalidInput: the destination was made of other partitions.
            TransientStoreError: others were first a thousand times.
        """
        require_each_once(draft)
        log_id = self.prepare(state)
        most_races = self._settings.limits.races
        for _ in range(most_races):
            # Also before the first try: the log may have been re-read, for another group,
            # after this one was planned.
            self._refuse_conflict(state, draft)
            commit = replace(draft, sequence=state.last + 1, log_id=log_id)
            bucket, key = layout.commit_key(self._settings, self._partition, commit.sequence)
            try:
                self._store.create(bucket, key, encode_commit(commit))
            except AlreadyExists:
                self.refresh(state)
                # A retried PUT may meet the entry that its own first try wrote.
                if state.commit_ids.get(commit.sequence) != commit.commit_id:
                    # Else their numbers are given again where another process deletes one of them
                    # now.
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
        """What one LIST shows of the log; None where it is not summed up, or not whole."""
        listed = self._list("")
        try:
            self._require_unbroken(listed)
        except IntegrityError:
            return None
        return listed.outline

    def checkpoint(self, state: LogState) -> None:
        """Sum up the log once every commit in it is published; otherwise do nothing.

        Raises:
            IntegrityError: it is summed up with another commit as its last entry.
        """
        if state.last == state.checkpoint or state.unpublished or state.unwitnessed:
            return
        bucket, key = layout.checkpoint_key(self._settings, self._partition, state.last)
        try:
            self._store.create(bucket, key, encode_checkpoint(state))
        except AlreadyExists:
            # Another run summed up the same entries, or an entry was deleted since.
            found = read_checkpoint(self._store, bucket, key, self._partition.path)
            self._require_checkpoint(found, state.commit_ids[state.last])

    def _require_checkpoint(self, state: LogState, commit_id: str) -> None:
        """Make sure that a checkpoint's last entry is this commit."""
        summed_up = state.commit_ids[state.checkpoint]
        if summed_up != commit_id:
            bucket, key = layout.checkpoint_key(self._settings, self._partition, state.checkpoint)
            raise IntegrityError(
                f"s3://{bucket}/{key} sums up commit {summed_up} as entry {state.checkpoint}, which"
                f" is {commit_id}: an entry was deleted, and its number given to another one."
                f" Delete this checkpoint, which the log does without; {WAY_OUT}"
            )

    def every_commit(self, through: int = 0, *, valid_only: bool = True) -> Iterator[Commit]:
        """All valid entries, checkpoints aside, newest first.

        Args:
            through: sequence of an entry that was there before.
            valid_only: leave out those that a later one replaces.

        Raises:
            IntegrityError: an entry is missing, also of those that a checkpoint covers; or one
                cannot be decoded, and nothing older is given.
        """
        listed = self._list("")
        self._require_unbroken(listed, through)
        return self._every(listed, valid_only=valid_only)

    def _every(self, listed: LogObjects, *, valid_only: bool) -> Iterator[Commit]:
        for commit, valid in every_entry(self._store, self._bucket, listed.commits):
            if valid and commit.sequence in listed.witnesses:
                self._require_witness(commit)
            if valid or not valid_only:
                yield commit

    def settle_numbers(self, state: LogState) -> None:
        """Leave the witness of every entry that others wrote, or find that it is that entry's.

        To be done before anything is published or planned by what these entries say.

        Raises:
            IntegrityError: an entry is not the one that had its number first.
        """
        for sequence in sorted(state.unwitnessed):
            self._leave_witness(state, sequence)

    def note_publication(self, commit: Commit) -> None:
        """Leave, right before it is published, when a later run publishes a commit."""
        bucket, key = layout.publication_key(self._settings, self._partition, commit.sequence)
        witness = Witness(commit_id=commit.commit_id, log_id=commit.log_id)
        leave_witness(self._store, bucket, key, witness, again=True)

    def is_disputed(self, state: LogState, sequence: int) -> bool:
        """True when an entry that was read is not the one that had its number first."""
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
        """Take the entries that are new to ``state``."""
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


def _names_output(state: LogState, one: SourceObject) -> bool:
    return output_digest(one.bucket, one.key) in state.outputs
