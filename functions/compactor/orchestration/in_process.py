"""Workers without processes of their own: one call at a time, within the time of the whole run."""

from __future__ import annotations

from collections.abc import Callable

from compactor.orchestration.messages import Answer, Desk, Order
from compactor.ports import Deadline


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
