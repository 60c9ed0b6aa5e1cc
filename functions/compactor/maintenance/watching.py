"""Look at a table, note what was seen, and say whether it is due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from compactor.maintenance.due import Due, is_due
from compactor.maintenance.history import fold_history, keep_look, read_history
from compactor.maintenance.latency import ESTIMATE, LatencySource, with_latency
from compactor.maintenance.looks import History, look_after, look_of
from compactor.maintenance.measures import TableMeasure
from compactor.maintenance.receipts import MaintenanceReceipt
from compactor.ports import RunTimes, TaggedStore
from compactor.settings.policies import Rule
from compactor.settings.tables import TableAddress
from compactor.settings.uris import S3Uri
from compactor.stores.run_times import open_run_times

OpenTimes = Callable[[LatencySource, TableAddress], RunTimes]


@dataclass(frozen=True, slots=True)
class Watched:
    """A table, and where its history lies.

    Attributes:
        state: of the run.
        table: its address.
        store: where the state is.
    """

    state: S3Uri
    table: TableAddress
    store: TaggedStore

    def history(self) -> History:
        """What was seen so far."""
        return read_history(self.state, self.table, self.store)


def open_times(source: LatencySource, table: TableAddress) -> RunTimes:
    """What a service of AWS knows."""
    return open_run_times(source.kind, source.place, source.name, table)


def watch(
    watched: Watched,
    measure: TableMeasure,
    rule: Rule,
    now: float,
    *,
    run_id: str,
    rewrites: int | None = None,
    times: OpenTimes = open_times,
) -> Due:
    """Look at a table.

    Args:
        watched: the table.
        measure: of it, now.
        rule: of it.
        now: UNIX seconds.
        run_id: of the run that looks.
        rewrites: files that the plan would rewrite.
        times: opens a source of latency.

    Raises:
        TransientStoreError: a service did not answer.
        InvalidInput: there is no job as the rule names one, or it may not be asked about.
        IntegrityError: the history is damaged, or of a later version of this program.
    """
    history = watched.history()
    source = (
        None
        if rule.latency == ESTIMATE
        else times(LatencySource.parse(rule.latency), watched.table)
    )
    look = with_latency(look_of(measure, now, run_id), measure, rule.latency, history, source)
    due = is_due(rule, measure, history.plus(look), now, rewrites=rewrites)
    noted = msgspec.structs.replace(look, due=due.reason if due else "")
    keep_look(noted, watched.state, watched.table, watched.store)
    fold_history(watched.state, watched.table, now, watched.store)
    return due


def note_maintenance(watched: Watched, receipt: MaintenanceReceipt, now: float) -> None:
    """Note what a run did to a table, once its receipt is there.

    Args:
        watched: the table.
        receipt: of the run.
        now: UNIX seconds, after the run.
    """
    keep_look(look_after(receipt, now), watched.state, watched.table, watched.store)
