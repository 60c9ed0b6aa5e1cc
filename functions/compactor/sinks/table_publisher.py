"""Publishes outputs to the table: names new outputs in the table log, then adds them.

read the log -> read the table -> compare them -> add outputs that are named but not in yet
-> set aside what does not fit -> entry of the table log for the new outputs -> the table's commit

Each commit to the table also records the number of the last entry that is in. If a publisher is
killed after writing an entry, or never receives the answer to a commit, the next one needs only
that number to continue. Of two concurrent publishers, the second finds its entry number taken or
its table commit rejected; it reads again, and does what is left.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from compactor.errors import TableConflict, TransientStoreError
from compactor.log.identity import read_identity
from compactor.ports import Clock, Deadline, ObjectStore
from compactor.settings.settings import Settings
from compactor.sinks.checks import (
    require_apart,
    require_known,
    require_table,
    require_writable,
)
from compactor.sinks.table_catalog import TableCatalog, TableFile, TableState
from compactor.sinks.table_entries import NamedOutput, Reached, SetAside, TableEntry, TableLogState
from compactor.sinks.table_log import Draft, TableLog
from compactor.sinks.table_receipts import TableReceipt, write_receipt
from compactor.sinks.unnamed_outputs import Leftover, leftovers
from compactor.sinks.upserts import UpsertCounts, key_of

# A lost race means that another writer has committed.
_MOST_TRIES = 60
# As long as the table's version stays the same, no race was lost to another writer.
_MOST_AT_ONE_VERSION = 8
_LONGEST_WAIT = 20.0
_FIRST_WAIT = 0.1
_REASON_CHARACTERS = 500
# Change this when outputs are judged differently: outputs that were set aside are tried again.
_JUDGED_BY = "1"


def _pause(longest: float) -> None:
    time.sleep(random.uniform(0, longest))  # noqa: S311 - jitter keeps no secret


@dataclass(frozen=True, slots=True)
class Publishing:
    """What is needed to publish outputs to a table.

    Attributes:
        settings: of the run; names the table.
        catalog: of that table.
        run_id: of the run.
        reserve_seconds: no commit is started with less time than this left.
        entry_outputs: maximum number of outputs named in one entry.
        commit_outputs: approximate number of outputs added with one table commit.
        pause: waits up to this many seconds before the next attempt.
        counts: filled by the catalog as it merges records; None if it merges none.
    """

    settings: Settings
    store: ObjectStore
    catalog: TableCatalog
    clock: Clock
    deadline: Deadline
    run_id: str
    reserve_seconds: float = 60.0
    entry_outputs: int = 500
    commit_outputs: int = 2_000
    pause: Callable[[float], None] = field(default=_pause)
    counts: UpsertCounts | None = None


class _TimeIsUp(Exception):
    """Too little time is left to start another commit."""


def record_publish(work: Publishing, earlier: TableReceipt | None = None) -> TableReceipt:
    """Publish as far as the deadline allows, and write a receipt.

    Args:
        work: what to publish, and how.
        earlier: receipt of earlier calls of the same run.

    Raises:
        Exception: any error that ended publishing, once it is recorded in the receipt.
    """
    receipt = earlier or TableReceipt()
    receipt.error = receipt.cause = ""
    receipt.faults.clear()
    try:
        publish_table(work, receipt)
    except Exception as error:
        receipt.status = "failed"
        receipt.error, receipt.cause = type(error).__name__, str(error)
        raise
    finally:
        if work.counts is not None:
            receipt.upserts = receipt.upserts or UpsertCounts()
            receipt.upserts.add(work.counts)
        write_receipt(receipt, work.settings, work.run_id, work.store)
    return receipt


def check_table(settings: Settings, store: ObjectStore, catalog: TableCatalog) -> None:
    """Check the table before a run starts, so that a faulty table is found before compaction.

    Raises:
        IntegrityError: it does not match its log.
        InvalidInput: the outputs go to another table, the table's location overlaps the outputs,
            or it has requirements that this program does not support.
    """
    identity = read_identity(settings, store)
    state = TableLog(store, settings, identity.log_id).load() if identity else TableLogState()
    require_table(state, catalog.address, key_of(settings))
    table = catalog.load(identity.log_id if identity is not None else "")
    if table is not None:
        require_apart(table, settings)
        require_writable(table, catalog.address)
    if table is None or table.last <= state.last:
        # Otherwise another publisher was active in between; this run's publisher checks again.
        require_known(table, state, catalog.address)


def publish_table(work: Publishing, receipt: TableReceipt) -> None:
    """Add every committed output that no entry names yet to the table.

    Safe to repeat, and to run concurrently.

    Args:
        work: what to publish, and how.
        receipt: updated with what was done.

    Raises:
        IntegrityError: the table or a log is not as it was; nothing was changed.
        InvalidInput: the table accepts no outputs, or does not exist and cannot be created from
            these; nothing was written to the table log.
        TransientStoreError: the catalog did not answer, or too many commits conflicted.
    """
    started = work.clock.now()
    receipt.status, receipt.table = "more", work.catalog.address
    try:
        identity = read_identity(work.settings, work.store)
        if identity is not None:
            _Publisher(work, receipt, identity.log_id).publish()
        receipt.status = "done"
    except _TimeIsUp:
        return
    finally:
        receipt.seconds += work.clock.now() - started


class _Publisher:
    def __init__(self, work: Publishing, receipt: TableReceipt, log_id: str) -> None:
        self._work = work
        self._receipt = receipt
        self._log_id = log_id
        self._log = TableLog(work.store, work.settings, log_id)
        self._state = TableLogState()
        self._key = key_of(work.settings)
        # By partition and sequence: outputs that do not fit, recorded in an entry or not.
        self._refused: dict[tuple[str, int], str] = {}

    def publish(self) -> None:
        self._state = self._log.load()
        require_table(self._state, self._work.catalog.address, self._key)
        table = self._look()
        if table is not None:
            table = self._bring_in(table)
        left = True
        while left:
            left = False
            self._receipt.faults.clear()
            self._refused.clear()
            for batch in self._batches(table):
                fitting = self._fitting(table, batch)
                if not any(one.outputs for one in fitting):
                    continue
                if table is None:
                    table = self._made(fitting)
                    fitting = self._fitting(table, batch)
                left |= not self._name(fitting, table)
                table = self._bring_in(table)
        self._receipt.add_aside(self._refused | self._state.aside_lines)
        if table is not None:
            self._receipt.last, self._receipt.at = table.last, table.version

    def _look(self) -> TableState | None:
        """Load the table and compare it with the log.

        Raises:
            IntegrityError: the table does not match the log.
            InvalidInput: the table no longer accepts outputs.
        """
        table = self._work.catalog.load(self._log_id)
        if table is not None:
            require_apart(table, self._work.settings)
            require_writable(table, self._work.catalog.address)
            if table.last > self._state.last:
                # Another writer added entries and published them since the log was read.
                self._log.refresh(self._state)
        require_known(table, self._state, self._work.catalog.address)
        return table

    def _made(self, batch: Sequence[Leftover]) -> TableState:
        """Create the table with the columns of the first outputs."""
        work = self._work
        try:
            work.catalog.create(_files_of(batch))
        except TableConflict:
            self._receipt.conflicts += 1
        made = self._look()
        if made is None:
            raise TransientStoreError(f"{work.catalog.address} was made, and is not there yet")
        return made

    def _batches(self, table: TableState | None) -> Iterator[list[Leftover]]:
        """Yield unnamed outputs in batches of about one table commit each."""
        work = self._work
        batch: list[Leftover] = []
        tried = self._tried(table)
        for one in leftovers(self._state, work.settings, work.store, tried):
            if one.fault:
                self._receipt.faults.append(one.fault)
            if one.outputs:
                batch.append(one)
            if sum(len(each.outputs) for each in batch) >= work.commit_outputs:
                yield batch
                batch = []
        if batch:
            yield batch

    def _tried(self, table: TableState | None) -> str:
        """Return a digest of what decides which outputs fit; empty if there is no table yet."""
        if table is None:
            return ""
        decides = (table.shape, self._work.settings.schema_evolution, _JUDGED_BY)
        return sha256("\n".join(decides).encode()).hexdigest()[:16]

    def _fitting(self, table: TableState | None, batch: Sequence[Leftover]) -> list[Leftover]:
        """Return the same partitions, with outputs that do not fit set aside."""
        evolve = self._work.settings.schema_evolution == "add_columns"
        unfit = self._work.catalog.unfit(table, _files_of(batch), evolve=evolve)
        if not unfit:
            return list(batch)
        tried = self._tried(table)
        fitting = [_with_aside(one, unfit, tried) for one in batch]
        for one in fitting:
            aside = one.reached.aside if one.reached is not None else ()
            self._refused |= {(one.path, each.sequence): each.line for each in aside}
        return fitting

    def _name(self, batch: Sequence[Leftover], table: TableState) -> bool:
        """Write entries for unnamed outputs; return False if another writer named some first."""
        self._require_time()
        waiting = list(batch)
        while waiting:
            # Needed before the first attempt too: the log may have been re-read. A partition that
            # another writer advanced in part is found again, from where that writer stopped.
            waiting = [one for one in waiting if not _overtaken(one, self._state)]
            # The table may also have been accepted in the meantime.
            require_known(table, self._state, self._work.catalog.address)
            if not any(one.outputs for one in waiting):
                # An entry without outputs would cause an empty table commit.
                break
            part, rest = _first(waiting, self._work.entry_outputs)
            if self._log.append(self._state, self._draft(part, table)):
                waiting = rest
        return all(_is_named(one, self._state) for one in batch)

    def _draft(self, part: Sequence[Leftover], table: TableState) -> Draft:
        outputs = [output for one in part for output in one.outputs]
        through = {one.path: one.reached for one in part if one.reached is not None}
        work = self._work
        return Draft(
            table=work.catalog.address,
            uuid=table.uuid,
            run_id=work.run_id,
            now=work.clock.now(),
            outputs=outputs,
            through=through,
            upsert=self._key,
        )

    def _bring_in(self, table: TableState) -> TableState:
        """Commit entries that are not in the table yet, until the table has them all.

        Raises:
            TableConflict: commits keep failing although no other writer has changed the table.
            TransientStoreError: too many commits conflicted, or the catalog does not answer.
        """
        wait = _FIRST_WAIT
        doubt: TableConflict | TransientStoreError | None = None
        unmoved = 0
        for _ in range(_MOST_TRIES):
            require_known(table, self._state, self._work.catalog.address)
            entries = self._next_entries(table)
            if not entries:
                self._log.mark_published(self._state, table.last, table.version)
                return table
            self._require_time()
            doubt = self._commit(table, entries)
            if doubt is None:
                wait = _FIRST_WAIT
            else:
                self._work.pause(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
            before, table = table, self._looked_again()
            unmoved = unmoved + 1 if doubt is not None and table.version == before.version else 0
            if doubt is not None and unmoved >= _MOST_AT_ONE_VERSION:
                raise doubt
            if not isinstance(doubt, TableConflict):
                self._count([one for one in entries if one.number <= table.last])
        raise TransientStoreError(
            f"{self._work.catalog.address}: tried {_MOST_TRIES} times, last: {doubt}"
        )

    def _looked_again(self) -> TableState:
        table = self._look()
        assert table is not None  # noqa: S101 - a table that is gone is reported by the comparison
        return table

    def _next_entries(self, table: TableState) -> list[TableEntry]:
        """Return the next entries, as many as fit into one table commit."""
        taken: list[TableEntry] = []
        outputs = 0
        for entry in self._state.between(table.last):
            if taken and outputs + len(entry.outputs) > self._work.commit_outputs:
                break
            taken.append(entry)
            outputs += len(entry.outputs)
        return taken

    def _commit(
        self, table: TableState, entries: Sequence[TableEntry]
    ) -> TableConflict | TransientStoreError | None:
        """Attempt one commit; return the error if it failed or may have failed."""
        work = self._work
        files = [_file_of(output) for entry in entries for output in entry.outputs]
        evolve = work.settings.schema_evolution == "add_columns"
        try:
            work.catalog.append(table, files, entries[-1].number, evolve=evolve)
        except TableConflict as error:
            self._receipt.conflicts += 1
            return error
        except TransientStoreError as error:
            # The outcome is unknown: the table is read again to find out.
            return error
        return None

    def _count(self, entries: Sequence[TableEntry]) -> None:
        receipt = self._receipt
        receipt.commits += bool(entries)
        receipt.entries += len(entries)
        receipt.outputs += sum(len(entry.outputs) for entry in entries)
        receipt.rows += sum(entry.rows for entry in entries)

    def _require_time(self) -> None:
        if self._work.deadline.remaining_seconds() < self._work.reserve_seconds:
            raise _TimeIsUp


def _first(waiting: Sequence[Leftover], most: int) -> tuple[list[Leftover], list[Leftover]]:
    """Split off as many partitions as fit into one entry; a partition is never divided."""
    outputs = 0
    for number, one in enumerate(waiting):
        if outputs and outputs + len(one.outputs) > most:
            return list(waiting[:number]), list(waiting[number:])
        outputs += len(one.outputs)
    return list(waiting), []


def _overtaken(one: Leftover, state: TableLogState) -> bool:
    return state.through.get(one.path) != one.before


def _is_named(one: Leftover, state: TableLogState) -> bool:
    """Return whether any writer's entries cover this partition, including what is set aside."""
    if not one.outputs or one.reached is None:
        return True
    aside = {each.sequence for each in one.reached.aside}
    left = {each.sequence for each in state.aside(one.path)}
    return state.reached(one.path) >= one.reached.sequence and left <= aside


def _with_aside(one: Leftover, unfit: Mapping[TableFile, str], tried: str) -> Leftover:
    """Return a partition with the outputs that do not fit moved from ``outputs`` to ``aside``."""
    aside = [
        SetAside(
            sequence=each.sequence,
            commit_id=each.commit_id,
            bucket=each.bucket,
            key=each.key,
            reason=unfit[_file_of(each)][:_REASON_CHARACTERS],
            tried=tried,
        )
        for each in one.outputs
        if _file_of(each) in unfit
    ]
    if not aside or one.reached is None:
        return one
    fitting = [each for each in one.outputs if _file_of(each) not in unfit]
    known = (*one.reached.aside, *aside)
    by_sequence = tuple(sorted(known, key=lambda each: each.sequence))
    reached = Reached(one.reached.sequence, one.reached.commit_id, by_sequence)
    return replace(one, outputs=fitting, reached=reached)


def _files_of(batch: Iterable[Leftover]) -> list[TableFile]:
    return [_file_of(output) for one in batch for output in one.outputs]


def _file_of(output: NamedOutput) -> TableFile:
    return TableFile(output.bucket, output.key, output.size, output.rows)
