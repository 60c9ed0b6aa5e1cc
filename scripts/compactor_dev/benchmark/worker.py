"""Our own worker: the real handler, in a process of its own, as Lambda starts one."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from compactor_dev.benchmark.task import Started, Task
from compactor_handlers.compact_partition import handler

_LIMIT_SECONDS = 900


class Context:
    """What Lambda hands a function beside its event."""

    function_name = "compact_partition"
    memory_limit_in_mb = 1769
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:compact_partition"
    aws_request_id = "bench"

    def __init__(self) -> None:
        self._end = time.monotonic() + _LIMIT_SECONDS

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the function would be stopped."""
        return int((self._end - time.monotonic()) * 1000)


def event_for(task: Task) -> dict[str, Any]:
    """What the state machine would hand the function for a run over the task's objects."""
    source = f"s3://{task.source_bucket}/{task.source_prefix}"
    destination = f"s3://{task.bucket}/{task.prefix}"
    return {
        "run_id": "bench",
        "settings": {
            "s3_source_uri": source,
            "s3_destination_uri": destination,
            **task.settings,
        },
        "partition": {
            "path": "",
            "bucket": task.source_bucket,
            "prefix": task.source_prefix,
            "objects": 0,
            "bytes": 0,
        },
    }


def main() -> None:
    """Call the handler until the partition is done."""
    started = Started.now()
    if "--one-processor" in sys.argv:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    task = Task.from_json(sys.argv[1])
    event = event_for(task)
    answer = handler(event, Context())
    while answer["status"] == "more":
        answer = handler(event | {"counts": answer["counts"]}, Context())
    task.tell(started, counts=answer["counts"])


if __name__ == "__main__":
    main()
