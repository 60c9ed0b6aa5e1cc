"""Our own worker: the real handler, in a process of its own, as Lambda starts one.

With ``--ask`` it does what discovery does before the workers of a run: it asks the store what that
honours, which is remembered for a day. AWS is not asked.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import asdict
from typing import Any

from compactor.probe.probe import ensure_asked
from compactor.settings.settings import Settings
from compactor_dev.benchmark.either import Context, event_of, run
from compactor_dev.benchmark.task import Started, Task
from compactor_handlers.compact_partition import handler
from compactor_handlers.runtime import store_for


def event_for(task: Task) -> dict[str, Any]:
    """What the state machine would hand the function for a run over the task's objects."""
    return event_of(asdict(task))


def ask(task: Task) -> None:
    """Ask the store of a task, as discovery would, and remember what it said."""
    settings = Settings.from_input(event_for(task)["settings"])
    ensure_asked(settings.state, store_for(settings, Context()), time.time())


def main() -> None:
    """Call the handler until the partition is done."""
    started = Started.now()
    if "--ask" in sys.argv:
        ask(Task.from_json(sys.argv[1]))
        return
    if "--one-processor" in sys.argv:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    task = Task.from_json(sys.argv[1])
    counts = run(handler, event_for(task))
    task.tell(started, counts=counts)


if __name__ == "__main__":
    main()
