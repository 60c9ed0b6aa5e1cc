"""A Lambda execution environment: one function's code, with its own path and nothing of ours.

Run as ``python -I -S runtime.py HANDLER PATH...``, where the paths are the unpacked bundle and what
Lambda's runtime brings. Takes ``[event, context]`` a line on standard input; answers a line with
``payload`` or ``failure`` through what was standard output. But for the
one name that says where AWS is, nothing but the standard library is imported before the function.
"""

import importlib
import importlib.util
import json
import os
import sys
import time
from typing import Any


class Context:
    """Lambda's context object."""

    def __init__(self, given):
        self.__dict__.update(given)
        self._deadline = time.monotonic() + given["remaining_seconds"]

    def get_remaining_time_in_millis(self):
        """Milliseconds until the function is stopped."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))


def main():
    """Answer events until standard input closes."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    name, paths = sys.argv[1], sys.argv[2:]
    sys.path[:0] = paths
    # The cloud of the tests stands for AWS, which is not asked what it honours. Functions of
    # maintenance have no probe.
    if importlib.util.find_spec("compactor.probe"):
        probe: Any = importlib.import_module("compactor.probe.probe")
        probe._AWS_DOMAINS += ("127.0.0.1",)
    module, _, attribute = name.rpartition(".")
    for line in sys.stdin:
        event, context = json.loads(line)
        try:
            handler = getattr(importlib.import_module(module), attribute)
            answer = {"payload": handler(event, Context(context))}
        except Exception as error:
            answer = {"failure": [type(error).__name__, str(error)]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
