"""The real handler of any version, in a process of its own, as Lambda starts one.

Run by its path, with the ``functions`` of the version first in ``PYTHONPATH``. Nothing but the
handler comes from there, and nothing from this repository's scripts: what one version's scripts
lack, or name otherwise, does not stand between it and its measurement.
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

HANDLER, HANDLER_RUNTIME = "compactor_handlers.compact_partition", "compactor_handlers.runtime"
ASK = "ask"
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
    given = {"s3_source_uri": source, "s3_destination_uri": destination, **task["settings"]}
    partition = {
        "path": "",
        "bucket": task["source_bucket"],
        "prefix": task["source_prefix"],
        "objects": 0,
        "bytes": 0,
    }
    return {"run_id": "bench", "settings": given, "partition": partition}


def since_the_start() -> dict[str, float]:
    """What it took this process to come here: the interpreter and its imports."""
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
    """Largest resident memory; ``ru_maxrss`` would begin with that of the process before exec."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def ask(event: dict[str, Any]) -> None:
    """Ask the store what it honours, as discovery does once a day before the workers of a run."""
    probe, settings, runtime = (
        importlib.import_module(name)
        for name in ("compactor.probe.probe", "compactor.settings.settings", HANDLER_RUNTIME)
    )
    given = settings.Settings.from_input(event["settings"])
    probe.ensure_asked(given.state, runtime.store_for(given, Context()), time.time())


def main() -> None:
    """Do the task that the first argument is, and say whose handler did it."""
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
    found = {
        "requests": answer["counts"]["requests"],
        "handler": os.path.realpath(module.__file__ or ""),
        "peak_bytes": peak_bytes(),
    }
    Path(task["answer"]).write_text(json.dumps({**begun, **found}), encoding="utf-8")


if __name__ == "__main__":
    main()
