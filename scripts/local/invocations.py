"""What stands for the Lambda service: functions by name, and the progress their answers show."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Mapping
from typing import Any

from scripts.local.model import Progress
from scripts.local.workers import Answer, WorkerPool


class Functions:
    """Runs functions by ARN on a worker pool.

    Args:
        modules: function name -> handler module.
        pool: where the handlers run.
        timeout_seconds: after which a handler is killed.
        memory_mb: what the handlers' context tells them.
        on_progress: told of every change, from any thread, one call at a time.
    """

    def __init__(
        self,
        modules: Mapping[str, str],
        pool: WorkerPool,
        *,
        timeout_seconds: float,
        memory_mb: int,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._modules = modules
        self._pool = pool
        self._limits = {"timeout_seconds": timeout_seconds, "memory_mb": memory_mb}
        self._on_progress = on_progress
        self._lock = threading.Lock()
        self._counts: dict[str, dict[str, int]] = {}
        self.progress = Progress()

    def invoke(self, arn: str, event: Any) -> Answer:
        """Run one invocation to its end."""
        name = arn.rpartition(":function:")[2].partition(":")[0]
        module = self._modules.get(name)
        if module is None:
            message = f"Function not found: {arn}"
            failure = {"errorType": "Lambda.ResourceNotFoundException", "errorMessage": message}
            return Answer(failure=failure)
        self._note(function=name)
        invocation = {"function": name, "module": module, "arn": arn, "event": event}
        answer = self._pool.invoke({**invocation, **self._limits})
        self._note_answer(name, answer)
        return answer

    def note_child(self, succeeded: bool) -> None:
        """A child execution of the Map has ended for good."""
        with self._lock:
            now = self.progress
            if succeeded:
                now = dataclasses.replace(now, partitions_done=now.partitions_done + 1)
            else:
                now = dataclasses.replace(now, partitions_failed=now.partitions_failed + 1)
            self._publish(now)

    def _note(self, **changes: Any) -> None:
        with self._lock:
            self._publish(dataclasses.replace(self.progress, **changes))

    def _note_answer(self, name: str, answer: Answer) -> None:
        payload = answer.payload if isinstance(answer.payload, Mapping) else {}
        with self._lock:
            now = dataclasses.replace(self.progress, invocations=self.progress.invocations + 1)
            if name == "discover" and "item_count" in payload:
                now = dataclasses.replace(now, partitions_total=payload["item_count"])
            if name == "compact_partition":
                now = dataclasses.replace(now, counts=self._add_counts(payload))
            self._publish(now)

    def _add_counts(self, payload: Mapping[str, Any]) -> dict[str, int]:
        """The sums with this answer's counts in the place of the partition's earlier ones."""
        path = (payload.get("partition") or {}).get("path", "")
        counts = {
            name: value
            for name, value in (payload.get("counts") or {}).items()
            if isinstance(value, int)
        }
        earlier = self._counts.get(path, {})
        self._counts[path] = {**earlier, **counts}
        sums = dict(self.progress.counts)
        for name, value in counts.items():
            sums[name] = sums.get(name, 0) + value - earlier.get(name, 0)
        return sums

    def _publish(self, progress: Progress) -> None:
        self.progress = progress
        self._on_progress(progress)
