"""Accept a table that others rolled back, restored or made again: what it lacks, and the way on.

look at the log and the table -> what is missing -> an entry that says so -> the table's commit

The entry holds for the very version of the table that was looked at: the commit that moves the
number to it is conditional on that version, and adds in the same commit what is to be added. Where
the table moved on, all is looked at again, and goes on by itself only while the same is missing.
Publishers and clean-ups refuse the table while the newest acceptance is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compactor.errors import IntegrityError, InvalidInput, TableConflict, TransientStoreError
from compactor.log.identity import read_identity
from compactor.ports import ObjectStore
from compactor.sinks.checks import fault_of, require_apart, require_table
from compactor.sinks.table_catalog import TableFile, TableState
from compactor.sinks.table_entries import Acceptance, NamedOutput, TableEntry, TableLogState
from compactor.sinks.table_log import Draft, TableLog
from compactor.sinks.table_publisher import Publishing

_MOST_TRIES = 10

_Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Look:
    """A table and what it lacks of our outputs, at one moment.

    Attributes:
        table, log: as they were.
        fault: why publishers refuse the table, in a phrase; empty when it is what its log says.
        outputs: that entries name.
        present: those that are data files of the table now.
        passed: those that it had, and has rewritten or deleted since.
        waiting: those that it was never given yet.
        absent: those that it was given and does not have, and that can be added.
        gone: likewise, but nothing, or another object, stands at their keys.
        doubtful: those of which its history no longer shows whether it has their rows.
        others, other_rows: data files of the table that are not ours, and their rows.
    """

    table: TableState
    log: TableLogState
    fault: str
    outputs: Mapping[_Place, NamedOutput]
    present: int
    passed: int
    waiting: Sequence[NamedOutput]
    absent: Sequence[NamedOutput]
    gone: Sequence[NamedOutput]
    doubtful: Sequence[NamedOutput]
    others: int
    other_rows: int

    @property
    def is_interrupted(self) -> bool:
        """True when an acceptance is in the log, and not in the table."""
        return self.log.accepted > self.table.last

    @property
    def is_refused(self) -> bool:
        """True when publishers and clean-ups refuse the table."""
        return bool(self.fault) or self.is_interrupted

    @property
    def lacking(self) -> dict[_Place, NamedOutput]:
        """Every output that the table does not have, or perhaps not."""
        return _by_place((*self.waiting, *self.absent, *self.gone, *self.doubtful))


def look_at(work: Publishing) -> Look:
    """Compare a table with its log.

    Args:
        work: the destination, and the table's catalog.

    Raises:
        IntegrityError: the table is gone, or the log is not whole.
        InvalidInput: no output of the destination was ever named for a table, its rows have a key,
            or it is another table.
    """
    identity = read_identity(work.settings, work.store)
    log = TableLog(work.store, work.settings, identity.log_id if identity else "")
    state = log.load()
    if identity is None or not state.last:
        accepted = "a destination whose outputs were given to a table"
        raise InvalidInput("s3_destination_uri", work.settings.s3_destination_uri, accepted)
    require_table(state, work.catalog.address, state.upsert)
    if state.upsert is not None:
        accepted = "a table without upsert_key: rows that are merged do not show their output"
        raise InvalidInput("table", work.catalog.address, accepted)
    table = work.catalog.load(identity.log_id)
    if table is None:
        raise IntegrityError(
            f"{work.catalog.address} is gone: bring it back, or make it again, and then accept it"
        )
    require_apart(table, work.settings)
    log.refresh(state)
    if table.last > state.last:
        raise IntegrityError(f"{work.catalog.address} {fault_of(table, state)}")
    return _compared(table, state, log.every_entry(state), work)


def _compared(
    table: TableState, state: TableLogState, entries: Sequence[TableEntry], work: Publishing
) -> Look:
    named = named_by(entries, state.last)
    found = work.catalog.holdings(table, [_file(one).uri for one in named.values()])
    contents = work.catalog.contents(table)
    fault = fault_of(table, state)
    known = found.number if fault else table.last
    # A mark is as good as the table's own number: whatever was seen in it is not waiting.
    given = named_by(entries, max(table.last, state.published))
    held, unknown = given_by(entries, known or 0)
    had = found.present | found.passed
    lacking = {
        place: one
        for place, one in named.items()
        if place not in held and _file(one).uri not in had and contents.fault_of(_file(one))
    }
    waiting = [one for place, one in lacking.items() if place not in given]
    missing = [one for place, one in lacking.items() if place in given]
    doubtful = [one for one in missing if known is None or _place(one) in unknown]
    absent = [one for one in missing if known is not None and _place(one) not in unknown]
    stands = {_place(one): _stands(one, work.store) for one in (*waiting, *absent)}
    return Look(
        table=table,
        log=state,
        fault=fault,
        outputs=named,
        present=len(found.present),
        passed=len(named) - len(lacking) - len(found.present),
        waiting=[one for one in waiting if stands[_place(one)]],
        absent=[one for one in absent if stands[_place(one)]],
        gone=[one for one in (*waiting, *absent) if not stands[_place(one)]],
        doubtful=doubtful,
        others=found.others,
        other_rows=found.other_rows,
    )


def named_by(entries: Iterable[TableEntry], number: int) -> dict[_Place, NamedOutput]:
    """The outputs that entries up to a number name, by bucket and key."""
    return _by_place(one for e in entries if e.number <= number for one in e.outputs)


def given_by(
    entries: Iterable[TableEntry], number: int
) -> tuple[dict[_Place, NamedOutput], dict[_Place, NamedOutput]]:
    """What a table that was given all entries up to a number has or had.

    Returns:
        The outputs that it has or had, and those that an acceptance could not decide about.
    """
    given: dict[_Place, NamedOutput] = {}
    named: dict[_Place, NamedOutput] = {}
    doubtful: dict[_Place, NamedOutput] = {}
    for entry in entries:
        if entry.number > number:
            break
        named |= _by_place(entry.outputs)
        given |= _by_place(entry.outputs)
        if entry.acceptance is not None:
            missing = entry.acceptance.missing
            given = {place: one for place, one in named.items() if place not in missing}
            doubtful = _by_place(entry.acceptance.doubtful)
    return given, doubtful


def accept(work: Publishing, look: Look, *, adds: bool, releases: bool) -> Look:
    """Let publishers and clean-ups continue with a table as it is, or with what is missing added.

    Safe to run again after any crash, also concurrently.

    Args:
        work: the destination, and the table's catalog.
        look: what the operator was shown.
        adds: add what is absent; what waits is added in any case, what is doubtful never.
        releases: clean-up may delete the sources of what is missing afterwards.

    Returns:
        The table as it is then.

    Raises:
        TableConflict: something else is missing than was shown: look again.
        InvalidInput: an output does not fit the table; nothing was written.
        TransientStoreError: the catalog did not answer, or others were first too often.
    """
    todo = [*look.waiting, *(look.absent if adds else ())]
    doubt: Exception | None = None
    for _ in range(_MOST_TRIES + len(todo) // work.commit_outputs):
        batch = todo[: work.commit_outputs]
        number, doubt = _try(work, look, batch, releases=releases)
        before, look = look, look_at(work)
        expected = set(before.lacking)
        is_done = look.log.accepted == number <= look.table.last
        if is_done:
            expected -= _by_place(batch).keys()
            todo = todo[len(batch) :]
        # What a publisher named meanwhile waits as it would without us.
        more = [one for one in look.waiting if _place(one) not in before.outputs]
        if look.lacking.keys() - _by_place(more).keys() != expected:
            raise TableConflict(
                f"{work.catalog.address} changed while it was accepted: look at it again"
            )
        if is_done and not todo:
            _mark(work, look)
            return look
        todo += more
        if doubt is not None:
            work.pause(1.0)
    raise TransientStoreError(
        f"{work.catalog.address}: tried {_MOST_TRIES} times to accept it, last: {doubt}"
    )


def _try(
    work: Publishing, look: Look, batch: Sequence[NamedOutput], *, releases: bool
) -> tuple[int, Exception | None]:
    """One entry, and one commit on the table that was looked at.

    Returns:
        The number of the entry, 0 where another one has it; and why it may not be in the table.
    """
    files = [_file(one) for one in batch]
    evolve = work.settings.schema_evolution == "add_columns"
    unfit = work.catalog.unfit(look.table, files, evolve=evolve)
    if unfit:
        raise InvalidInput("table", work.catalog.address, next(iter(unfit.values())))
    log = TableLog(work.store, work.settings, _log_id(work))
    state, number = look.log, look.log.last + 1
    draft = Draft(
        table=work.catalog.address,
        uuid=look.table.uuid,
        run_id=work.run_id,
        now=work.clock.now(),
        outputs=batch,
        through={},
        acceptance=_acceptance(look, batch, releases=releases),
    )
    if not log.append(state, draft):
        return 0, TableConflict(f"entry {number} of the table log is another one")
    log.leave_witnesses(state, max(state.published, state.checkpoint))
    try:
        work.catalog.append(look.table, files, number, evolve=evolve)
    except (TableConflict, TransientStoreError) as error:
        # It may be in, or not: the table decides.
        return number, error
    return number, None


def _acceptance(look: Look, batch: Sequence[NamedOutput], *, releases: bool) -> Acceptance:
    added = _by_place(batch)
    doubtful = list(look.doubtful)
    lacking = {place: one for place, one in look.lacking.items() if place not in added}
    unknown = _by_place(doubtful)
    return Acceptance(
        table_version=look.table.version,
        absent=[one for place, one in lacking.items() if place not in unknown],
        doubtful=doubtful,
        releases_sources=releases,
        outputs=len(look.outputs) - len(lacking),
    )


def _mark(work: Publishing, look: Look) -> None:
    log = TableLog(work.store, work.settings, _log_id(work))
    log.mark_published(look.log, look.table.last, look.table.version)


def _log_id(work: Publishing) -> str:
    identity = read_identity(work.settings, work.store)
    assert identity is not None  # noqa: S101 - it was there when the table was looked at
    return identity.log_id


def _stands(one: NamedOutput, store: ObjectStore) -> bool:
    head = store.head(one.bucket, one.key)
    if head is None or head.size != one.size:
        return False
    return head.crc32 is None or one.crc32 is None or head.crc32 == one.crc32


def _by_place(outputs: Iterable[NamedOutput]) -> dict[_Place, NamedOutput]:
    return {_place(one): one for one in outputs}


def _place(one: NamedOutput) -> _Place:
    return one.bucket, one.key


def _file(one: NamedOutput) -> TableFile:
    return TableFile(one.bucket, one.key, one.size, one.rows)
