"""Runs the real handler of any version in a separate process, as Lambda does.

Run by path, with the ``functions`` of the version first in ``PYTHONPATH``. Only the handler is
imported from there, and nothing from this repository's scripts, so that differences between the
scripts of versions cannot affect the measurement.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path

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


def peak_bytes() -> int:
    """Return the largest resident memory; ``ru_maxrss`` would start at the value before exec."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def main() -> None:
    """Handle the event in the first argument; the result names the handler's file."""
    event = json.loads(sys.argv[1])
    module = importlib.import_module("compactor_handlers.compact_partition")
    ready = time.monotonic()
    answer = module.handler(event, Context())
    while answer["status"] == "more":
        answer = module.handler(event | {"counts": answer["counts"]}, Context())
    handler = os.path.realpath(str(module.__file__))
    print(json.dumps({"ready": ready, "peak_bytes": peak_bytes(), "handler": handler}))


if __name__ == "__main__":
    main()
