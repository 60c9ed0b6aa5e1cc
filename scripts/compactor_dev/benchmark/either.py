"""The real handler of any version, in a process of its own, as Lambda starts one.

Run by its path, with the ``functions`` of the version in ``PYTHONPATH``. Nothing but the handler
comes from there, and nothing from this repository's scripts: what one version's scripts lack,
or name otherwise, does not stand between it and its measurement.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

HANDLERS = ("compactor_handlers.compact_partition",)
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


def event_of(task: dict[str, Any]) -> dict[str, Any]:
    """What the state machine would hand the function for a run over the task's objects."""
    source = f"s3://{task['source_bucket']}/{task['source_prefix']}"
    destination = f"s3://{task['bucket']}/{task['prefix']}"
    return {
        "run_id": "bench",
        "settings": {
            "s3_source_uri": source,
            "s3_destination_uri": destination,
            **task["settings"],
        },
        "partition": {
            "path": "",
            "bucket": task["source_bucket"],
            "prefix": task["source_prefix"],
            "objects": 0,
            "bytes": 0,
        },
    }


def run(handler: Any, event: dict[str, Any]) -> Any:
    """Call the handler until the partition is done; returns its counts."""
    answer = handler(event, Context())
    while answer["status"] == "more":
        answer = handler(event | {"counts": answer["counts"]}, Context())
    return answer["counts"]


def _is_there(name: str) -> bool:
    # Not whether it can be imported: what is installed here is found as well.
    root = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0])
    return root.joinpath(*name.split(".")).with_suffix(".py").exists()


def main() -> None:
    """Do the task that the only argument is, and say whose handler did it."""
    module = importlib.import_module(next(filter(_is_there, HANDLERS)))
    task = json.loads(sys.argv[1])
    counts = run(module.handler, event_of(task))
    told = {"counts": counts, "handler": os.path.realpath(module.__file__ or "")}
    Path(task["answer"]).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main()
