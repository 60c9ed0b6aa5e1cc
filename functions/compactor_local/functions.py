"""The local Lambda service: functions by name, run by a pool of processes.

A process of the pool is started as ``python -m compactor_local.functions MODULE...`` and is one
Lambda execution environment: it runs handlers, one invocation at a time. Invocations arrive on
standard input, answers are written to the original standard output; what handlers print goes to
standard error, which is the log. When standard input closes, the engine is gone and the process
exits, even in the middle of a handler.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import queue
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from compactor_cli.machine.processes import (
    WorkerLost,
    WorkerPool,
    answer_stream,
    peak_bytes,
    receive,
    send,
)
from compactor_local.engine import WorkflowProgress

#: Label of the definition's Map over partitions in clean-up.
CLEAN_UPS_LABEL = "CleanUps"
#: Of an invocation: its ``payload``, or its ``failure`` in Lambda's form.
Answer = Mapping[str, Any]
Handler = Callable[[Any, Any], Any]


class Functions:
    """Runs functions by ARN on a worker pool.

    Args:
        modules: function name -> handler module.
        pool: where the handlers run.
        timeout_seconds: after this time a handler is killed.
        on_progress: called with every change, from any thread, one call at a time.
    """

    def __init__(
        self,
        modules: Mapping[str, str],
        pool: WorkerPool,
        *,
        timeout_seconds: float,
        on_progress: Callable[[WorkflowProgress], None],
    ) -> None:
        self._modules = modules
        self._pool = pool
        self._timeout_seconds = timeout_seconds
        self._on_progress = on_progress
        self._lock = threading.Lock()
        # By path of the partition; None is the Spark job.
        self._objects: dict[str | None, int] = {}
        self._deleted: dict[str, int] = {}
        self._compacted: set[str] = set()
        self._oversized: set[str] = set()
        self.progress = WorkflowProgress()

    def invoke(self, arn: str, event: Any) -> Answer:
        """Run one invocation to its end."""
        name = arn.rpartition(":function:")[2].partition(":")[0]
        module = self._modules.get(name)
        if module is None:
            message = f"Function not found: {arn}"
            failure = {"errorType": "Lambda.ResourceNotFoundException", "errorMessage": message}
            return {"failure": failure}
        with self._lock:
            self._publish(function=name)
        answer = self._call({"function": name, "module": module, "arn": arn, "event": event})
        self._note_answer(name, answer.get("payload"))
        return answer

    def _call(self, invocation: Mapping[str, Any]) -> Answer:
        """Run one invocation on the next idle process."""
        request_id, seconds = str(uuid.uuid4()), self._timeout_seconds
        call = {**invocation, "request_id": request_id, "timeout_seconds": seconds}
        try:
            return self._pool.call(call, seconds)
        except WorkerLost as error:
            if error.code is None:
                name, text = "Sandbox.Timedout", f"Task timed out after {seconds:.2f} seconds"
            else:
                how = f"signal: {-error.code}" if error.code < 0 else f"exit status {error.code}"
                name, text = "Runtime.ExitError", f"Runtime exited with error: {how}"
        message = f"RequestId: {request_id} Error: {text}"
        return {"failure": {"errorType": name, "errorMessage": message}}

    def note_child(self, label: str, items: Sequence[Any], succeeded: bool) -> None:
        """Count a child execution of the Map with this label that has ended."""
        of_what = "clean_ups" if label == CLEAN_UPS_LABEL else "partitions"
        done, failed = f"{of_what}_done", f"{of_what}_failed"
        with self._lock:
            # Some partitions of a failed batch may be done; clean-up has no batches.
            compacted = set() if label == CLEAN_UPS_LABEL else self._compacted
            good = len(items) if succeeded else sum(item.get("path") in compacted for item in items)
            self._publish(
                **{
                    done: getattr(self.progress, done) + good,
                    failed: getattr(self.progress, failed) + len(items) - good,
                }
            )

    def note_spark(self, line: str) -> None:
        """Note a progress line of the Spark job."""
        with self._lock:
            self._publish(spark=line)

    def note_spark_ended(self, partitions: Mapping[str, Any]) -> None:
        """Add the counts of the Spark job, which has ended."""
        with self._lock:
            # Workers have counted the same partitions, and what they took of them.
            failed = partitions.get("failed", 0)
            by_workers = sum(self._objects.get(path, 0) for path in self._oversized)
            self._objects[None] = max(0, partitions.get("objects_in", 0) - by_workers)
            self._publish(
                partitions_done=self.progress.partitions_done - failed,
                partitions_failed=self.progress.partitions_failed + failed,
                spark="",
            )

    def _note_answer(self, name: str, payload: Any) -> None:
        with self._lock:
            totals = self._totals(name, payload) if isinstance(payload, Mapping) else {}
            self._publish(invocations=self.progress.invocations + 1, **totals)

    def _totals(self, name: str, payload: Mapping[str, Any]) -> dict[str, int]:
        """Note what an answer says of partitions; returns the totals in it."""
        if name == "compact_partition":
            done = payload.get("done", ())
            self._compacted.update(one["path"] for one in done)
            self._oversized.update(one["path"] for one in done if one.get("oversized"))
            for partition in done:
                self._objects[partition["path"]] = partition["counts"].get("objects_in", 0)
            for path, counts in payload.get("counts", {}).items():
                self._objects[path] = counts.get("objects_in", 0)
        elif name == "clean_up" and "partition" in payload:
            # Each answer has the sum of all calls for its partition.
            self._deleted[payload["partition"]["path"]] = payload["counts"].get("deleted", 0)
        elif name == "discover" and "item_count" in payload:
            return {"partitions_total": payload["item_count"]}
        elif name == "list_tables" and "count" in payload:
            return {"partitions_total": payload["count"]}
        elif name == "plan_clean_up" and "clean_up" in payload:
            return {"clean_ups_total": payload["clean_up"]["partitions"]}
        return {}

    def _publish(self, **changes: Any) -> None:
        """Apply changes to the progress and pass it on; the caller has the lock."""
        self.progress = dataclasses.replace(
            self.progress,
            **changes,
            objects_done=sum(self._objects.values()),
            deleted=sum(self._deleted.values()),
        )
        self._on_progress(self.progress)


class LambdaContext:
    """The part of Lambda's context object that handlers and powertools read."""

    function_version = "$LATEST"
    memory_limit_in_mb = 1_769

    def __init__(self, invocation: Mapping[str, Any]) -> None:
        self.function_name: str = invocation["function"]
        self.invoked_function_arn: str = invocation["arn"]
        self.aws_request_id: str = invocation["request_id"]
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


def run_handler(invocation: Mapping[str, Any]) -> dict[str, Any]:
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
        answer = {**run_handler(invocation), "peak_bytes": peak_bytes()}
        sys.stdout.flush()
        try:
            send(answers, answer)
        except TypeError as error:
            failure = {**_failure(error), "errorType": "Runtime.MarshalError"}
            send(answers, {"failure": failure, "peak_bytes": peak_bytes()})


if __name__ == "__main__":
    main()
