"""Our own worker: the real handler, in a process of its own, as Lambda starts one."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from typing import Any

from compactor_dev.benchmark.either import event_of, run
from compactor_dev.benchmark.task import Started, Task
from compactor_handlers.compact_partition import handler


def event_for(task: Task) -> dict[str, Any]:
    """What the state machine would hand the function for a run over the task's objects."""
    return event_of(asdict(task))


def main() -> None:
    """Call the handler until the partition is done."""
    started = Started.now()
    if "--one-processor" in sys.argv:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    task = Task.from_json(sys.argv[1])
    counts = run(handler, event_for(task))
    task.tell(started, counts=counts)


if __name__ == "__main__":
    main()
