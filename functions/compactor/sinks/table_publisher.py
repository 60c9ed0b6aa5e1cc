"""Publish to the table: name what is left over, and bring all that is named into the table.

read the log -> read the table -> compare them -> bring in what is named and not in yet
-> set aside what does not fit -> entry of the table log for what is left over -> its witness
-> the table's commit

The table says with each commit of ours, in that very commit, up to which entry it has everything.
So a publisher that is killed after an entry, or never gets the answer to a commit, leaves the next
one no more than a number to read. Of two concurrent publishers the second finds an entry's number
taken, or its commit of the table refused; it reads again, and does what is left.
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

# A lost race brings a commit of another writer.
_MOST_TRIES = 60
# Where the table stays at one version, nothing was lost to anybody.
_MOST_AT_ONE_VERSION = 8
_LONGEST_WAIT = 20.0
_FIRST_WAIT = 0.1
_REASON_CHARACTERS = 500
# Another number, and whatever is set aside is tried again: for when outputs are judged otherwise.
_JUDGED_BY = "1"


def _pause(longest: float) -> None:
    time.sleep(random.uniform(0, longest))  # noqa: S311 - jitter keeps no secret


@dataclass(frozen=True, slots=True)
class Publishing:
    """Everything that bringing outputs into a table needs.

    Attributes:
        settings: of the run; names the table.
        catalog: where that table is.
        run_id: of the run.
        reserve_seconds: with less than this left no further commit is begun.
        entry_outputs: so many outputs are named in one entry at most.
        commit_outputs: about so many come into the table with one commit.
        pause: waits up to so many seconds before the next try.
        counts: what the catalog adds to as it merges records; None where it merges none.
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
    """No commit may be begun any more."""


def record_publish(work: Publishing, earlier: TableReceipt | None = None) -> TableReceipt:
    """Publish as far as the deadline allows, and leave a receipt.

    Args:
        work: what to do, and with what.
        earlier: what earlier calls of the same run left.

    Raises:
        Exception: whatever ended it, after the receipt says so.
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
    """Look at the table before a run begins, so that what is wrong with it costs no compaction.

    Raises:
        IntegrityError: it is not what its log says.
        InvalidInput: another table has outputs of this destination, it lies where outputs do, or
            it asks of its writers what a commit of outputs cannot keep.
    """
    identity = read_identity(settings, store)
    state = TableLog(store, settings, identity.log_id).load() if identity else TableLogState()
    require_table(state, catalog.address, key_of(settings))
    table = catalog.load(identity.log_id if identity is not None else "")
    if table is not None:
        require_apart(table, settings)
        require_writable(table, catalog.address)
    if table is None or table.last <= state.last:
        # Otherwise a publisher came in between, and the one of this run looks again.
        require_known(table, state, catalog.address)


def publish_table(work: Publishing, receipt: TableReceipt) -> None:
    """Bring everything that is committed, and in no entry yet, into the table.

    Safe to run again, also concurrently.

    Args:
        work: what to do, and with what.
        receipt: where this adds what it did.

    Raises:
        IntegrityError: the table, or a log, is not what it was; nothing was touched.
        InvalidInput: the table takes no outputs, or is not there and cannot be made of these;
            nothing of it is in the table log.
        TransientStoreError: the catalog did not answer, or others were first too often.
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
        # By partition and commit: outputs that do not fit, whether an entry says so yet or not.
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
        """The table, after it was compared with the log.

        Raises:
            IntegrityError: it is not what the log says.
            InvalidInput: nothing may be added to it any more.
        """
        table = self._work.catalog.load(self._log_id)
        if table is not None:
            require_apart(table, self._work.settings)
            require_writable(table, self._work.catalog.address)
            if table.last > self._state.last:
                # Another writer named and published more since the log was read.
                self._log.refresh(self._state)
        require_known(table, self._state, self._work.catalog.address)
        return table

    def _made(self, batch: Sequence[Leftover]) -> TableState:
        """A table that is not there yet, with the columns of the first outputs."""
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
        """What is left over, as much at a time as one commit of the table takes."""
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
        """Digest of what decides which outputs fit; empty before there is a table."""
        if table is None:
            return ""
        decides = (table.shape, self._work.settings.schema_evolution, _JUDGED_BY)
        return sha256("\n".join(decides).encode()).hexdigest()[:16]

    def _fitting(self, table: TableState | None, batch: Sequence[Leftover]) -> list[Leftover]:
        """The same partitions; outputs that do not fit are set aside, with the reason."""
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
        """Write entries for what is left over; False where others named some of it meanwhile."""
        self._require_time()
        waiting = list(batch)
        while waiting:
            # Also before the first try: the log may have been re-read since this was found. What
            # others went through in part is found again, from where they stopped.
            waiting = [one for one in waiting if not _overtaken(one, self._state)]
            # Or another table was accepted meanwhile.
            require_known(table, self._state, self._work.catalog.address)
            if not any(one.outputs for one in waiting):
                # An entry without outputs would be a commit that gives the table nothing.
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
        """Commit what is named and not in yet, until the table says that it is in.

        Raises:
            TableConflict: it keeps refusing, and no other writer has changed it.
            TransientStoreError: others were first too often, or the catalog does not answer.
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
            self._log.leave_witnesses(self._state, table.last)
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
        """The next entries for one commit of the table: as many as it takes."""
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
        """One try; what is returned says why it did not succeed, or may not have."""
        work = self._work
        files = [_file_of(output) for entry in entries for output in entry.outputs]
        evolve = work.settings.schema_evolution == "add_columns"
        try:
            work.catalog.append(table, files, entries[-1].number, evolve=evolve)
        except TableConflict as error:
            self._receipt.conflicts += 1
            return error
        except TransientStoreError as error:
            # It may be in, or not: the table decides.
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
    """As many partitions as one entry takes, and the others; one partition is never divided."""
    outputs = 0
    for number, one in enumerate(waiting):
        if outputs and outputs + len(one.outputs) > most:
            return list(waiting[:number]), list(waiting[number:])
        outputs += len(one.outputs)
    return list(waiting), []


def _overtaken(one: Leftover, state: TableLogState) -> bool:
    return state.through.get(one.path) != one.before


def _is_named(one: Leftover, state: TableLogState) -> bool:
    """Whether the table log went as far as this, by any writer: also in what was set aside."""
    if not one.outputs or one.reached is None:
        return True
    aside = {each.sequence for each in one.reached.aside}
    left = {each.sequence for each in state.aside(one.path)}
    return state.reached(one.path) >= one.reached.sequence and left <= aside


def _with_aside(one: Leftover, unfit: Mapping[TableFile, str], tried: str) -> Leftover:
    """A partition without the outputs that do not fit, which its log is passed by with."""
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
