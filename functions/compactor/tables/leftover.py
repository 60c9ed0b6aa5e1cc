"""What is left over for the table: outputs that are committed and readable, and named nowhere.

A partition's commit log is gone through in its order, and only as far as its outputs can be read:
what a worker has committed and not published yet, the next run publishes, and the next publisher
names.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from compactor import layout
from compactor.errors import IntegrityError
from compactor.log.entries import Commit
from compactor.log.stored import StoredLog, all_logs, read_entry
from compactor.log.witness import read_witness
from compactor.outputs.publish import is_published
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.tables.entries import NamedOutput, Reached, TableLogState

# Entries are read and outputs are looked at side by side.
_READERS = 16


@dataclass(slots=True)
class Leftover:
    """What one partition has for the table.

    Attributes:
        outputs: in the order of its log.
        reached: the last entry that was gone through; None where nothing was.
        fault: why the rest of the partition is left, in one line; empty when nothing is.
    """

    path: str
    outputs: list[NamedOutput] = field(default_factory=list)
    reached: Reached | None = None
    fault: str = ""


def leftovers(state: TableLogState, settings: Settings, store: ObjectStore) -> Iterator[Leftover]:
    """Every partition with entries that the table log does not reach, in the order of paths.

    Args:
        state: what the table log says.
        settings: where the state lies.
        store: where it is.

    Raises:
        InvalidInput: the state cannot be listed.
        TransientStoreError: the store did not answer.
    """
    logs = [
        log
        for log in all_logs(settings.state, store)
        if max(log.entries, default=0) > state.reached(log.path) or log.missing
    ]
    with ThreadPoolExecutor(_READERS) as pool:
        waiting = iter(logs)
        while batch := list(islice(waiting, _READERS)):
            yield from pool.map(lambda log: _of_partition(log, state, store), batch)


def _of_partition(log: StoredLog, state: TableLogState, store: ObjectStore) -> Leftover:
    found = Leftover(log.path)
    try:
        _require_same_log(log, state.through.get(log.path), store)
        _go_through(log, state.reached(log.path), found, store)
    except IntegrityError as error:
        found.fault = f"{log.path or '(root)'}: {error}"
    return found


def _go_through(log: StoredLog, after: int, found: Leftover, store: ObjectStore) -> None:
    if log.missing:
        raise IntegrityError(f"{log.where} has no entry {log.missing[0]}")
    tail = [_read(log, number, store) for number in sorted(log.entries) if number > after]
    void = {commit.replaces for commit in tail}
    for commit in tail:
        _refuse_taken_back(commit, log, after, store)
        if commit.output is not None and commit.sequence not in void:
            if not is_published(commit.output, store):
                return
            found.outputs.append(_named(commit, log.path))
        found.reached = Reached(commit.sequence, commit.commit_id)


def _read(log: StoredLog, number: int, store: ObjectStore) -> Commit:
    return read_entry(store, log.state.bucket, log.key_of(number), number)


def _named(commit: Commit, path: str) -> NamedOutput:
    output = commit.output
    assert output is not None  # noqa: S101 - asked before
    return NamedOutput(
        path=path,
        sequence=commit.sequence,
        commit_id=commit.commit_id,
        bucket=output.bucket,
        key=output.key,
        size=output.size,
        crc32=output.crc32,
        rows=output.columnar.rows_out if output.columnar is not None else None,
    )


def _require_same_log(log: StoredLog, reached: Reached | None, store: ObjectStore) -> None:
    """A log that was built anew has its outputs under other numbers."""
    if reached is None:
        return
    sequence = reached.sequence
    if sequence in log.entries:
        key = log.state.prefix + layout.witness_name(log.path, sequence)
        witness = read_witness(store, log.state.bucket, key)
        found = witness.commit_id if witness else _read(log, sequence, store).commit_id
        if found == reached.commit_id:
            return
    raise IntegrityError(
        f"the table log reaches to commit {reached.commit_id}, entry {sequence} of {log.where},"
        " which is gone or another one: bring the state back from a backup or its earlier versions"
    )


def _refuse_taken_back(commit: Commit, log: StoredLog, after: int, store: ObjectStore) -> None:
    """Records of an output that the table was given must not come a second time."""
    replaced = commit.replaces
    if replaced is None or replaced > after or _read(log, replaced, store).output is None:
        return
    raise IntegrityError(
        f"entry {commit.sequence} of {log.where} takes back the output of entry {replaced}, which"
        " the table was given: delete that one's rows from the table, and compact this partition"
        " into another s3_destination_uri"
    )
