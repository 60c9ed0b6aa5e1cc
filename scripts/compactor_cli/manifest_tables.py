"""The manifest table of a destination, brought up to date where no run does it."""

from __future__ import annotations

from collections.abc import Sequence

from compactor.clock import NoDeadline
from compactor.log.entries import Commit
from compactor.log.stored import StoredLog, read_entry
from compactor.outputs.manifest_table import KnownLog, ManifestTable
from compactor.outputs.publish import is_published
from compactor.ports import ObjectStore


def bring_up_to_date(log: StoredLog, store: ObjectStore) -> int:
    """Let the table tell of a log, as far as its outputs can be read.

    Returns:
        How many entries it does not tell of yet: the next run publishes the first of them.

    Raises:
        IntegrityError: an entry is damaged or missing, an output is another object, or the table
            was made of another log.
        TransientStoreError: the store did not answer.
    """
    table = ManifestTable(log.state, log.path, store)
    known = _known(log, table, store)
    return table.catch_up(known, NoDeadline()) + max(log.entries, default=0) - known.last


def _known(log: StoredLog, table: ManifestTable, store: ObjectStore) -> KnownLog:
    """Of what a checkpoint sums up all is published; the outputs behind it are looked at."""
    since = max(log.checkpoints, default=0)
    behind = [_entry(log, one, store) for one in range(since + 1, max(log.entries, default=0) + 1)]
    replaced = {one.replaces for one in behind if one.replaces is not None}
    ids = {one.sequence: one.commit_id for one in behind}
    through = table.through()
    if through is not None and through.sequence not in ids:
        there = through.sequence in log.entries
        ids[through.sequence] = _entry(log, through.sequence, store).commit_id if there else ""
    last = since + _readable(behind, replaced, store)
    return KnownLog(last, since, replaced, ids)


def _readable(commits: Sequence[Commit], replaced: set[int], store: ObjectStore) -> int:
    """How many, until the first whose output cannot be read."""
    for count, commit in enumerate(commits):
        output = commit.output
        if output is None or commit.sequence in replaced:
            continue
        if not is_published(output, store):
            return count
    return len(commits)


def _entry(log: StoredLog, sequence: int, store: ObjectStore) -> Commit:
    return read_entry(store, log.state.bucket, log.key_of(sequence), sequence)
