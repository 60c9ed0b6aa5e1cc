"""Workers without processes: one call at a time, here, within the time of the whole run."""

from __future__ import annotations

from collections.abc import Callable

from compactor.orchestration.messages import Answer, Desk, Order
from compactor.ports import Deadline


class ThisProcess:
    """Implements :class:`compactor.orchestration.workers.Workers` in the thread that asks.

    Args:
        desk: where orders are carried out.
        deadline: of the whole run.
        on_error: called with what ended a call, where it is handled.
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
        """Carry out one order; an error is its answer."""
        try:
            return self._desk.carry_out(order, self._deadline)
        except Exception as error:
            # The other partitions are independent of it; the report counts it.
            self._on_error(order, error)
            return Answer.of(error)

    def stop(self) -> None:
        """Do nothing: no work runs outside of the calling thread."""
