"""Accepts a table that others rolled back, restored or re-created.

look at the log and the table -> what is missing -> an entry that says so -> the table's commit

The entry applies only to the table version that was looked at: the commit that records the entry's
number is conditional on that version, and adds the missing outputs in the same commit. If the table
has changed, it is looked at again, and acceptance continues only if the same outputs are missing.
Publishers and clean-ups refuse the table until it contains the newest acceptance.
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
    """What a table has and lacks of this destination's outputs, at one moment.

    Attributes:
        table, log: their state at that moment.
        fault: why publishers refuse the table, in a phrase; empty if it matches its log.
        outputs: every output that the log's entries name.
        present: number of outputs that are data files of the table now.
        passed: number of outputs that the table had, and has rewritten or deleted since.
        waiting: outputs that were never added to the table.
        absent: outputs that were added, are no longer in the table, and can be added again.
        gone: like ``waiting`` and ``absent``, but their object is missing or was replaced.
        doubtful: outputs whose rows may be in the table: its history no longer shows it.
        others, other_rows: data files of the table that are not outputs, and their rows.
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
        """True when an acceptance is in the log, but not in the table."""
        return self.log.accepted > self.table.last

    @property
    def is_refused(self) -> bool:
        """True when publishers and clean-ups refuse the table."""
        return bool(self.fault) or self.is_interrupted

    @property
    def lacking(self) -> dict[_Place, NamedOutput]:
        """Every output that the table lacks or may lack, by bucket and key."""
        return _by_place((*self.waiting, *self.absent, *self.gone, *self.doubtful))


def look_at(work: Publishing) -> Look:
    """Compare a table with its log.

    Args:
        work: the destination and the table's catalog.

    Raises:
        IntegrityError: the table is gone, or the log is incomplete.
        InvalidInput: no output of the destination was ever published to a table, the table's rows
            have a key, or the log is about another table.
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
    # An output seen in the table is not waiting, even if the table was rolled back since.
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
    """Return the outputs that entries up to a number name, by bucket and key."""
    return _by_place(one for e in entries if e.number <= number for one in e.outputs)


def given_by(
    entries: Iterable[TableEntry], number: int
) -> tuple[dict[_Place, NamedOutput], dict[_Place, NamedOutput]]:
    """Return the outputs of a table whose last entry is ``number``.

    Returns:
        The outputs that it has or had, and those that an acceptance left doubtful.
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
    """Accept a table, so that publishers and clean-ups continue with it.

    Safe to repeat after a crash, and to run concurrently.

    Args:
        work: the destination and the table's catalog.
        look: what the operator was shown.
        adds: add the absent outputs. Waiting outputs are always added, doubtful ones never.
        releases: clean-up may delete the sources of outputs that remain missing.

    Returns:
        The table after the acceptance.

    Raises:
        TableConflict: other outputs are missing than the operator was shown.
        InvalidInput: an output does not fit the table; nothing was written.
        TransientStoreError: the catalog did not answer, or too many commits conflicted.
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
        # Outputs named by a concurrent publisher are waiting; they are no change to what was shown.
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
    """Write one entry, and commit it to the table version that was looked at.

    Returns:
        The entry's number, or 0 if another writer took it; and the error, if the commit failed or
        may have failed.
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
    try:
        work.catalog.append(look.table, files, number, evolve=evolve)
    except (TableConflict, TransientStoreError) as error:
        # The outcome is unknown: the table is read again to find out.
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
