"""Worker processes for the partitions of a run, killed and replaced when they fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

import msgspec

from compactor.orchestration.messages import FAILED, Answer, Order
from compactor.orchestration.partition_retry import LOST, STOPPED
from compactor.ports import Deadline
from compactor.settings.settings import Settings
from compactor_cli.machine import partition_worker
from compactor_cli.machine.child import Child
from compactor_cli.machine.partition_log import log_line
from compactor_cli.machine.workers import RUN_STOPPED, WorkerPool

# The timeout of the deployed function.
CALL_SECONDS = 900.0
# For the current request, aborting an upload, and writing a receipt.
_STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class WorkerTask:
    """The run of the processes, and their options.

    Attributes:
        endpoint_url: of the S3; None for AWS.
        environment: the whole environment.
        log: receives what they print.
        call_seconds: a process that takes longer for a call is killed and replaced.
        deadline: of the whole run; None for no deadline.
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
        """The timeout of a call that starts now."""
        left = self.deadline.remaining_seconds() if self.deadline else self.call_seconds
        return min(self.call_seconds, max(left, 1.0))


class PartitionWorkers:
    """Implements :class:`compactor.orchestration.workers.Workers` with worker processes.

    A process is started when an order finds no free one, so a run over one partition has a single
    process.

    Args:
        slots: maximum number of concurrent orders.
        task: the run of the processes.
    """

    own_time = True

    def __init__(self, slots: int, task: WorkerTask) -> None:
        self.slots = slots
        self._task = task
        self._pool = WorkerPool(slots, self._start, eager=False)

    @property
    def peak_bytes(self) -> int:
        """Largest resident memory that any process reached."""
        return self._pool.peak_bytes

    @property
    def replaced(self) -> int:
        """Number of processes that crashed or were killed and then replaced."""
        return self._pool.replaced

    def carry_out(self, order: Order) -> Answer:
        """Carry out one order on the next free process."""
        message: dict[str, Any] = {
            "order": msgspec.to_builtins(order),
            "timeout_seconds": self._task.seconds,
        }
        result = self._pool.invoke(message)
        if result.failure is not None and result.failure["errorType"] == RUN_STOPPED:
            return Answer(FAILED, STOPPED, result.failure["errorMessage"])
        if result.failure is not None:
            cause = f"its worker process {result.ending}"
            log_line(self._task.log, "ERROR", self._task.run_id, order, f"{LOST}: {cause}")
            return Answer(FAILED, LOST, cause)
        return msgspec.convert(result.payload, Answer)

    def stop(self) -> None:
        """Ask all processes to stop between two requests; kill those that take too long."""
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
            # A terminal's interrupt reaches only the parent process, which stops them.
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
