"""One Lambda execution environment: a process that runs handlers, one invocation at a time.

Started as ``python -m compactor_local.worker``. Invocations arrive on standard input, answers are
written to the original standard output; what handlers print goes to standard error, which is the
log. When standard input closes, the engine is gone and this process exits, even in the middle of a
handler.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from compactor_cli.machine.processes import answer_stream, peak_bytes, receive, send

Handler = Callable[[Any, Any], Any]


class LambdaContext:
    """The part of Lambda's context object that handlers and powertools read."""

    function_version = "$LATEST"

    def __init__(self, invocation: Mapping[str, Any]) -> None:
        self.function_name: str = invocation["function"]
        self.invoked_function_arn: str = invocation["arn"]
        self.aws_request_id: str = invocation["request_id"]
        self.memory_limit_in_mb: int = invocation["memory_mb"]
        self.log_group_name = f"/aws/lambda/{self.function_name}"
        self.log_stream_name = f"local/{os.getpid()}"
        self._deadline = time.monotonic() + invocation["timeout_seconds"]

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until this process is killed; never negative."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))


def _failure(error: BaseException) -> dict[str, Any]:
    """Return an exception in the form that Lambda's Python runtime reports it."""
    return {
        "errorMessage": str(error),
        "errorType": type(error).__name__,
        "stackTrace": traceback.format_tb(error.__traceback__),
    }


def _load(module: str) -> Handler:
    handler: Handler = importlib.import_module(module).handler
    return handler


def invoke(invocation: Mapping[str, Any]) -> dict[str, Any]:
    """Run one invocation; the answer holds either ``payload`` or ``failure``."""
    try:
        handler = _load(invocation["module"])
    except Exception as error:
        return {"failure": {**_failure(error), "errorType": "Runtime.ImportModuleError"}}
    try:
        return {"payload": handler(invocation["event"], LambdaContext(invocation))}
    except Exception as error:
        return {"failure": _failure(error)}
    except SystemExit as error:
        return {"failure": {**_failure(error), "errorType": "Runtime.ExitError"}}


def _read_invocations(invocations: queue.SimpleQueue[Any]) -> None:
    while (invocation := receive(sys.stdin.buffer)) is not None:
        invocations.put(invocation)
    os._exit(0)


def main() -> None:
    """Answer invocations until the engine is gone."""
    answers = answer_stream()
    invocations: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read_invocations, args=(invocations,), daemon=True).start()
    for module in sys.argv[1:]:
        # An error is reported by the invocation that imports the module again.
        with contextlib.suppress(Exception):
            _load(module)
    send(answers, {"ready": True})
    while True:
        invocation = invocations.get()
        answer = {**invoke(invocation), "peak_bytes": peak_bytes()}
        sys.stdout.flush()
        try:
            send(answers, answer)
        except TypeError as error:
            failure = {**_failure(error), "errorType": "Runtime.MarshalError"}
            send(answers, {"failure": failure, "peak_bytes": peak_bytes()})


if __name__ == "__main__":
    main()
