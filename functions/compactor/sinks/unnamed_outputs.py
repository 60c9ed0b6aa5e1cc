"""Finds outputs that are committed and readable, and that the table log does not name yet.

A partition's commit log is read in order, up to the first output that cannot be read yet: the next
run publishes that output, and the next publisher names it. After the outputs have been looked at,
the log is checked for entries written meanwhile: a commit whose upload was lost may have been
replaced by one with the same output, which makes the output of both readable.

An output that was set aside because it did not fit is found again once the table or the settings
change, unless a later entry of its log makes it void.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice

from msgspec.structs import replace

from compactor.errors import IntegrityError
from compactor.log.entries import Commit, Output
from compactor.log.log_reader import StoredLog, all_logs, one_log, read_entry
from compactor.outputs.publish import is_published
from compactor.ports import ObjectStore
from compactor.settings.settings import Settings
from compactor.sinks.table_entries import NamedOutput, Reached, SetAside, TableLogState

# Entries are read, and outputs checked, with this many threads.
_READERS = 16


@dataclass(slots=True)
class Leftover:
    """The outputs of one partition that are to be added to the table.

    Attributes:
        before: how far the table log had read the partition's log when this was found.
        outputs: in log order; outputs set aside earlier that are tried again come first.
        reached: how far the log is read with these; None if there is nothing new.
        fault: why the rest of the partition is left, in one line; empty if nothing is left.
    """

    path: str
    before: Reached | None
    outputs: list[NamedOutput] = field(default_factory=list)
    reached: Reached | None = None
    fault: str = ""

    @property
    def after(self) -> int:
        """Sequence of the last entry that the table log had read."""
        return self.before.sequence if self.before else 0

    @property
    def aside(self) -> tuple[SetAside, ...]:
        """The outputs that were set aside before."""
        return self.before.aside if self.before else ()


def leftovers(
    state: TableLogState, settings: Settings, store: ObjectStore, tried: str = ""
) -> Iterator[Leftover]:
    """Yield every partition with entries that the table log has not read, ordered by path.

    Args:
        state: of the table log.
        settings: where the state is.
        store: where the state is stored.
        tried: outputs set aside under another digest are tried again; none of them if empty.

    Raises:
        InvalidInput: the state cannot be listed.
        TransientStoreError: the store did not answer.
    """
    logs = [
        log
        for log in all_logs(settings.state, store)
        if max(log.entries, default=0) > state.reached(log.path)
        or log.missing
        or _tried_again(state.aside(log.path), tried)
    ]
    with ThreadPoolExecutor(_READERS) as pool:
        waiting = iter(logs)
        while batch := list(islice(waiting, _READERS)):
            yield from pool.map(lambda log: _of_partition(log, state, store, tried), batch)


def _tried_again(aside: Iterable[SetAside], tried: str) -> list[SetAside]:
    return [one for one in aside if tried and one.tried != tried]


def _of_partition(log: StoredLog, state: TableLogState, store: ObjectStore, tried: str) -> Leftover:
    reached = state.through.get(log.path)
    found = Leftover(log.path, reached)
    try:
        _require_same_log(log, reached, store)
        _go_through(log, state, found, store, tried)
    except IntegrityError as error:
        found.fault = _fault_text(log, error)
    if not found.outputs and not found.fault:
        return found
    try:
        replaced = _replaced_since(log, store)
    except IntegrityError as error:
        return Leftover(log.path, reached, fault=_fault_text(log, error))
    passed_over = {one.sequence for one in found.aside}
    if any(one > found.after or one in passed_over for one in replaced):
        return _of_partition(one_log(log.state, log.path, store), state, store, tried)
    return found


def _fault_text(log: StoredLog, error: IntegrityError) -> str:
    return f"{log.path or '(root)'}: {error}"


def _replaced_since(log: StoredLog, store: ObjectStore) -> list[int]:
    """Return the sequences made void by entries written since the log was listed.

    Costs one HEAD if there are no such entries.
    """
    found: list[int] = []
    number = max(log.entries, default=0) + 1
    while store.head(log.state.bucket, log.key_of(number)) is not None:
        replaced = _read(log, number, store).replaces
        found += [replaced] if replaced is not None else []
        number += 1
    return found


def _go_through(
    log: StoredLog, state: TableLogState, found: Leftover, store: ObjectStore, tried: str
) -> None:
    if log.missing:
        raise IntegrityError(f"{log.where} has no entry {log.missing[0]}")
    tail = [_read(log, number, store) for number in sorted(log.entries) if number > found.after]
    replaced_by = {one.replaces: one.sequence for one in tail if one.replaces is not None}
    _find_again(log, found, replaced_by, store, tried)
    outputs: list[NamedOutput] = []
    # A void entry must be passed together with its replacement: otherwise the next publisher would
    # assume that its output was added to the table.
    until = 0
    for commit in tail:
        until = max(until, replaced_by.get(commit.sequence, 0))
        given = _is_given(commit, log, found, state, store)
        if commit.output is not None and not given and commit.sequence not in replaced_by:
            if not is_published(commit.output, store):
                return
            outputs.append(_named(commit, commit.output, log.path))
        if _settled(commit, until):
            found.outputs += outputs
            outputs = []
            void = {one for one, by in replaced_by.items() if by <= commit.sequence}
            found.reached = Reached(commit.sequence, commit.commit_id, _still_aside(found, void))


def _find_again(
    log: StoredLog,
    found: Leftover,
    replaced_by: Mapping[int, int],
    store: ObjectStore,
    tried: str,
) -> None:
    """Add set-aside outputs that are to be tried again, are not void, and can be read."""
    for one in _tried_again(found.aside, tried):
        commit = _read(log, one.sequence, store)
        if commit.commit_id != one.commit_id or commit.output is None:
            raise IntegrityError(
                f"entry {one.sequence} of {log.where} is not the one whose output was set aside:"
                " bring the state back from a backup or its earlier versions"
            )
        if one.sequence not in replaced_by and is_published(commit.output, store):
            found.outputs.append(_named(commit, commit.output, log.path))
    if found.outputs and found.before is not None:
        found.reached = replace(found.before, aside=_still_aside(found, ()))


def _still_aside(found: Leftover, void: Collection[int]) -> tuple[SetAside, ...]:
    """Return what remains set aside: not tried again, and not void."""
    again = {one.sequence for one in found.outputs}
    return tuple(
        one for one in found.aside if one.sequence not in again and one.sequence not in void
    )


def _settled(commit: Commit, until: int) -> bool:
    return commit.sequence >= until


def _read(log: StoredLog, number: int, store: ObjectStore) -> Commit:
    return read_entry(store, log.state.bucket, log.key_of(number), number)


def _named(commit: Commit, output: Output, path: str) -> NamedOutput:
    return NamedOutput(
        path=path,
        sequence=commit.sequence,
        commit_id=commit.commit_id,
        bucket=output.bucket,
        key=output.key,
        size=output.size,
        crc32=output.crc32,
        rows=output.records,
    )


def _require_same_log(log: StoredLog, reached: Reached | None, store: ObjectStore) -> None:
    """Check that the log was not rebuilt, which would give its outputs other numbers."""
    if reached is None:
        return
    sequence = reached.sequence
    if sequence in log.entries and _read(log, sequence, store).commit_id == reached.commit_id:
        return
    raise IntegrityError(
        f"the table log reaches to commit {reached.commit_id}, entry {sequence} of {log.where},"
        " which is gone or another one: bring the state back from a backup or its earlier versions"
    )


def _is_given(
    commit: Commit, log: StoredLog, found: Leftover, state: TableLogState, store: ObjectStore
) -> bool:
    """Return True if this very output was added to the table by a commit that it replaces.

    Raises:
        IntegrityError: the table was given other records, which this commit takes back, or
            another output under the same key.
    """
    output, replaced = commit.output, commit.replaces
    aside = {one.sequence for one in found.aside}
    was_passed = replaced is not None and replaced <= found.after and replaced not in aside
    passed = replaced if was_passed else None
    given = _read(log, passed, store).output if passed is not None else None
    if given is not None and not (output is not None and _is_same(given, output)):
        raise IntegrityError(
            f"entry {commit.sequence} of {log.where} takes back the output of entry {replaced},"
            " which the table was given: delete that one's rows from the table, and compact this"
            " partition into another s3_destination_uri"
        )
    named = state.given.get((output.bucket, output.key)) if output is not None else None
    if output is not None and named is not None and not _is_same(named, output):
        raise IntegrityError(
            f"entry {commit.sequence} of {log.where} has {output.size} bytes at s3://{output.bucket}/"
            f"{output.key}, of which the table was given {named.size} for entry {named.sequence}:"
            " compact this partition into another s3_destination_uri"
        )
    return given is not None or named is not None


def _is_same(one: Output | NamedOutput, other: Output) -> bool:
    place = (one.bucket, one.key, one.size) == (other.bucket, other.key, other.size)
    return place and one.crc32 is not None and one.crc32 == other.crc32
