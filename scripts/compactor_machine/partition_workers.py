"""Processes that work on the partitions of a whole run: killed and replaced when they fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

import msgspec

from compactor.orchestration.messages import FAILED, Answer, Order
from compactor.orchestration.partition_retry import LOST, STOPPED
from compactor.ports import Deadline
from compactor.settings.settings import Settings
from compactor_machine import partition_worker
from compactor_machine.child import Child
from compactor_machine.partition_log import log_line
from compactor_machine.workers import RUN_STOPPED, WorkerPool

# As long as the deployed function may take for one call.
CALL_SECONDS = 900.0
# For the request under way, an abort of an upload, and a receipt.
_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """What the processes are for, and how they run.

    Attributes:
        endpoint_url: of the S3; None for AWS.
        environment: the whole environment.
        log: receives what they print.
        call_seconds: a process that works on one call for longer is killed and replaced.
        deadline: of the whole run; None for none.
    """

    settings: Settings
    run_id: str
    endpoint_url: str | None
    environment: Mapping[str, str]
    log: IO[bytes] | int
    call_seconds: float = CALL_SECONDS
    deadline: Deadline | None = None

    @property
    def seconds(self) -> float:
        """For a call that begins now."""
        left = self.deadline.remaining_seconds() if self.deadline else self.call_seconds
        return min(self.call_seconds, max(left, 1.0))


class PartitionWorkers:
    """Implements :class:`compactor.orchestration.workers.Workers` with processes of ours.

    Each is started by the first order that finds no other free, so a run over one partition has
    one.

    Args:
        slots: how many orders may be under way concurrently.
        task: what the processes are for.
    """

    own_time = True

    def __init__(self, slots: int, task: WorkerTask) -> None:
        self.slots = slots
        self._task = task
        self._pool = WorkerPool(slots, self._start, eager=False)

    @property
    def peak_bytes(self) -> int:
        """Largest resident memory any of the processes reached."""
        return self._pool.peak_bytes

    @property
    def replaced(self) -> int:
        """How many processes died or were killed, and had successors."""
        return self._pool.replaced

    def carry_out(self, order: Order) -> Answer:
        """Carry out one order on the next free process."""
        message: dict[str, Any] = {
            "order": msgspec.to_builtins(order),
            "timeout_seconds": self._task.seconds,
        }
        answer = self._pool.invoke(message)
        if answer.failure is not None and answer.failure["errorType"] == RUN_STOPPED:
            return Answer(FAILED, STOPPED, answer.failure["errorMessage"])
        if answer.failure is not None:
            cause = f"its worker process {answer.ending}"
            log_line(self._task.log, "ERROR", self._task.run_id, order, f"{LOST}: {cause}")
            return Answer(FAILED, LOST, cause)
        return msgspec.convert(answer.payload, Answer)

    def stop(self) -> None:
        """End all between two requests; what does not end in time is killed."""
        self._pool.stop(_STOP_SECONDS)

    def close(self) -> None:
        """Kill every process."""
        self._pool.close()

    def _start(self) -> Child:
        task = self._task
        child = Child(
            partition_worker.__name__,
            environment=task.environment,
            log=task.log,
            # A terminal's interrupt reaches the process that gives the orders, which stops them.
            detached=True,
        )
        child.send(
            {
                "settings": task.settings.to_dict(),
                "run_id": task.run_id,
                "endpoint_url": task.endpoint_url,
            }
        )
        return child
