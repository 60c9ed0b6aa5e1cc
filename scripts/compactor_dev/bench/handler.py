"""Runs the real handler of any version in a separate process, as Lambda does.

Run by path, with the ``functions`` of the version first in ``PYTHONPATH``. Only the handler is
imported from there, and nothing from this repository's scripts, so that differences between the
scripts of versions cannot affect the measurement.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

HANDLER, RUNTIME = "compactor_handlers.compact_partition", "compactor_handlers.runtime"
ASK = "ask"
_LIMIT_SECONDS = 900


class Context:
    """The context that Lambda passes to a function."""

    function_name = "compact_partition"
    memory_limit_in_mb = 1769
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:compact_partition"
    aws_request_id = "bench"

    def __init__(self) -> None:
        self._end = time.monotonic() + _LIMIT_SECONDS

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until the function would be stopped."""
        return int((self._end - time.monotonic()) * 1000)


def event_of(task: dict[str, Any]) -> dict[str, Any]:
    """Return the event that the state machine would pass for the task's objects."""
    source = f"s3://{task['source_bucket']}/{task['source_prefix']}"
    destination = f"s3://{task['bucket']}/{task['prefix']}"
    settings = {"s3_source_uri": source, "s3_destination_uri": destination, **task["settings"]}
    partition = {
        "path": "",
        "bucket": task["source_bucket"],
        "prefix": task["source_prefix"],
        "objects": 0,
        "bytes": 0,
    }
    return {"run_id": "bench", "settings": settings, "partition": partition}


def since_the_start() -> dict[str, float]:
    """Return the time of this process so far: starting the interpreter, and imports."""
    ticks = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    # Field 22 of the whole line, in clock ticks since the machine booted.
    began = int(ticks[19]) / os.sysconf("SC_CLK_TCK")
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "start_seconds": time.clock_gettime(time.CLOCK_BOOTTIME) - began,
        "start_user_seconds": used.ru_utime,
        "start_kernel_seconds": used.ru_stime,
    }


def peak_bytes() -> int:
    """Return the largest resident memory; ``ru_maxrss`` would start at the value before exec."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def ask(event: dict[str, Any]) -> None:
    """Probe the store, as discovery does once a day before the workers of a run."""
    probe, settings, runtime = (
        importlib.import_module(name)
        for name in ("compactor.probe.probe", "compactor.settings.settings", RUNTIME)
    )
    run_settings = settings.Settings.from_input(event["settings"])
    probe.traits_for(run_settings.state, runtime.store_for(run_settings, Context()), time.time())


def main() -> None:
    """Carry out the task in the first argument; the result names the handler's file."""
    task = json.loads(sys.argv[1])
    event = event_of(task)
    if sys.argv[2:] == [ASK]:
        ask(event)
        return
    module = importlib.import_module(HANDLER)
    begun = since_the_start()
    answer = module.handler(event, Context())
    while answer["status"] == "more":
        answer = module.handler(event | {"counts": answer["counts"]}, Context())
    result = {
        "requests": answer["counts"]["requests"],
        "handler": os.path.realpath(module.__file__ or ""),
        "peak_bytes": peak_bytes(),
    }
    Path(task["answer"]).write_text(json.dumps({**begun, **result}), encoding="utf-8")


if __name__ == "__main__":
    main()
