"""Runs without processes of their own: one call at a time, within the time of the whole run."""

from __future__ import annotations

from collections.abc import Callable

from compactor.catalogs.opening import open_catalog
from compactor.clock import NoDeadline, SystemClock, instant
from compactor.orchestration.messages import Answer, Desk, Order
from compactor.orchestration.run import Given, run_whole
from compactor.orchestration.workers import Observer
from compactor.ports import Deadline, ObjectStore
from compactor.report.report import RunReport
from compactor.settings.settings import Settings
from compactor.sinks.table_proof import OpenCatalog


class ThisProcess:
    """Implements :class:`compactor.orchestration.workers.Workers` in the calling thread.

    Args:
        desk: carries out the orders.
        deadline: the deadline of the whole run.
        on_error: called from the exception handler with the error that ended a call.
    """

    slots = 1
    own_time = False

    def __init__(
        self,
        desk: Desk,
        deadline: Deadline,
        on_error: Callable[[Order, Exception], None] = lambda order, error: None,
    ) -> None:
        self._desk = desk
        self._deadline = deadline
        self._on_error = on_error

    def carry_out(self, order: Order) -> Answer:
        """Carry out one order; return errors as its answer."""
        try:
            return self._desk.carry_out(order, self._deadline)
        except Exception as error:
            # A failed partition does not affect the others; the report counts it.
            self._on_error(order, error)
            return Answer.of(error)

    def stop(self) -> None:
        """Do nothing, because no work runs outside the calling thread."""


def run_in_process(
    settings: Settings,
    run_id: str,
    store: ObjectStore,
    observer: Observer | None = None,
    catalogs: OpenCatalog = open_catalog,
) -> RunReport:
    """Run to the end in this process, without Spark, one partition after the other.

    Args:
        settings: of the run, with engine ``worker``.
        run_id: a new, unique id.
        store: of sources, outputs and state.
        observer: receives the progress.
        catalogs: opens the catalog of the table that the settings name.

    Raises:
        InvalidInput: the input is invalid; nothing was done.
        TransientStoreError: the store did not answer.
    """
    clock, deadline = SystemClock(), NoDeadline()
    given = Given(
        settings=settings,
        run_id=run_id,
        started_at=instant(clock.now()),
        store=store,
        clock=clock,
        deadline=deadline,
        workers=lambda probed: ThisProcess(Desk(settings, probed, clock, run_id), deadline),
        observer=observer or Observer(),
        open_catalog=catalogs,
    )
    while (report := run_whole(given).report) is None:
        pass
    return report
