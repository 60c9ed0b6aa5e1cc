"""Looks at a table, records the look in its history, and decides whether the table is due."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from compactor.ports import ObjectStore, RunTime, RunTimes
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri
from compactor_tables.aws.run_times import open_run_times
from compactor_tables.due_tables import Due, is_due
from compactor_tables.latency import ESTIMATE, LatencySource, estimated_seconds
from compactor_tables.maintenance_receipts import DONE, MaintenanceReceipt
from compactor_tables.measures import TableMeasure
from compactor_tables.observation_history import fold_history, keep_look, read_history
from compactor_tables.observations import History, Look, Maintained, look_of
from compactor_tables.policies import Rule

# Age of the oldest run times that count at a look.
_FIRST_LOOK_SECONDS = 30 * 86_400.0

OpenTimes = Callable[[LatencySource, TableAddress], RunTimes]


@dataclass(frozen=True, slots=True)
class Watched:
    """A table, and the location of its history.

    Attributes:
        state: of the run.
        table: its address.
        store: where the state lies.
    """

    state: S3Uri
    table: TableAddress
    store: ObjectStore

    def history(self) -> History:
        """Return the looks so far."""
        return read_history(self.state, self.table, self.store)


def open_times(source: LatencySource, table: TableAddress) -> RunTimes:
    """Return the run times that an AWS service has recorded."""
    return open_run_times(source.kind, source.place, source.name, table)


def watch(
    watched: Watched,
    measure: TableMeasure,
    rule: Rule,
    now: float,
    *,
    run_id: str,
    nothing_to_do: bool = False,
    times: OpenTimes = open_times,
) -> Due:
    """Look at a table, record the look, and return whether the table is due.

    Args:
        watched: the table.
        measure: of the table, now.
        rule: of the table.
        now: UNIX seconds.
        run_id: of the run that looks.
        nothing_to_do: whether the plan has no steps.
        times: opens a source of latency.

    Raises:
        TransientStoreError: a service did not answer.
        InvalidInput: the job that the rule names does not exist, or access to it is denied.
        IntegrityError: the history is damaged, or of a later version of this program.
    """
    history = watched.history()
    source = (
        None
        if rule.latency == ESTIMATE
        else times(LatencySource.parse(rule.latency), watched.table)
    )
    look = with_latency(look_of(measure, now, run_id), measure, rule.latency, history, source)
    due = is_due(rule, measure, history.plus(look), now, nothing_to_do=nothing_to_do)
    noted = msgspec.structs.replace(look, due=due.reason if due else "")
    keep_look(noted, watched.state, watched.table, watched.store)
    fold_history(watched.state, watched.table, now, watched.store)
    return due


def note_maintenance(watched: Watched, receipt: MaintenanceReceipt, now: float) -> None:
    """Record in the history what a run did to a table, once its receipt is stored.

    Args:
        watched: the table.
        receipt: of the run.
        now: UNIX seconds, after the run.
    """
    look = Look(at=now, run_id=receipt.run_id, maintained=sums_of(receipt))
    keep_look(look, watched.state, watched.table, watched.store)


def sums_of(receipt: MaintenanceReceipt) -> Maintained:
    """Return the sums of a receipt; only partitions that are ``done`` count."""
    done = receipt.of(DONE)
    return Maintained(
        engine=receipt.engine,
        status=receipt.status,
        partitions=len(done),
        files=sum(one.files for one in done),
        bytes=sum(one.bytes for one in done),
        into=sum(one.into for one in done),
        into_bytes=sum(one.into_bytes for one in done),
        expired=receipt.expired,
        deleted_files=receipt.deleted_files,
        deleted_bytes=receipt.deleted_bytes,
        seconds=receipt.seconds,
        scan_seconds=receipt.scan_seconds,
    )


def with_latency(
    look: Look, measure: TableMeasure, source: str, history: History, times: RunTimes | None
) -> Look:
    """Add to a look the latency since the previous one.

    Args:
        look: at the table, now.
        measure: of the table, for the estimate.
        source: of the latency, as a rule names it.
        history: looks before this one.
        times: run times of this source; None for the estimate.

    Raises:
        TransientStoreError: the service did not answer.
        InvalidInput: there is no such job, or access to it is denied.
    """
    if source == ESTIMATE or times is None:
        seconds = estimated_seconds(measure)
        return msgspec.structs.replace(look, latency=seconds, samples=1, source=ESTIMATE)
    last = history.last
    since = look.at - _FIRST_LOOK_SECONDS
    found = mean(times.since(since if last is None else max(since, last.at), look.at))
    if found is None:
        return msgspec.structs.replace(look, source=source)
    seconds, count = found
    return msgspec.structs.replace(look, latency=seconds, samples=count, source=source)


def mean(times: Sequence[RunTime]) -> tuple[float, int] | None:
    """Return the average of run times, and their number; None if there are no run times."""
    if not times:
        return None
    return sum(one.seconds for one in times) / len(times), len(times)
