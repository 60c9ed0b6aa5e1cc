"""Compacts several small partitions in one call, each as if it were alone.

Every child execution costs four Step Functions transitions, and every call its start-up time. So
discovery puts small partitions into batches, and a call works on them sequentially. A partition's
failure does not keep the others from being compacted: it is raised only by a call in which no
partition made progress, so that the workflow's retries are spent only on partitions that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from compactor.errors import IntegrityError, InvalidInput, SourceChanged, TransientStoreError
from compactor.ports import Deadline

State = Mapping[str, Any]

# A call starts another partition only with at least this share of its initial time left, so that
# no partition is started and abandoned immediately.
_LEAST_SHARE = 0.5
# Names of the errors that the workflow retries, the most retried first, and does not retry.
_RETRIED = (TransientStoreError.__name__, SourceChanged.__name__)
_NOT_RETRIED = (IntegrityError.__name__, InvalidInput.__name__)


class Failed(msgspec.Struct, frozen=True):
    """A partition that failed in a call in which others did not."""

    path: str
    error: Exception


class Batch(msgspec.Struct, frozen=True):
    """The partitions of one child execution.

    Attributes:
        common: the input they have in common.
        left: the input of a separate call for each remaining partition; those begun come first,
            those that failed last.
        done: path and counts of each finished partition, and whether Spark takes the rest.
        failed: partitions that failed in the call that returned this batch.
    """

    common: State
    left: Sequence[State]
    done: Sequence[State] = ()
    failed: Sequence[Failed] = ()

    @classmethod
    def from_state(cls, state: State) -> Batch:
        """Read ``{"BatchInput", "Items": […], "counts"?, "done"?}`` of the state machine.

        Raises:
            InvalidInput: there are no items.
        """
        if not state.get("Items"):
            raise InvalidInput("Items", state.get("Items"), "one partition or more")
        common, counts = state["BatchInput"], state.get("counts", {})
        states = [
            {**common, "partition": item, "counts": counts.get(item["path"])}
            for item in state["Items"]
        ]
        return cls(common, states, list(state.get("done", ())))

    def to_state(self) -> dict[str, Any]:
        """Return the input of the next call; ``status`` is ``more`` while a partition is left.

        ``counts`` are those of partitions already begun, by their path.
        """
        return {
            "BatchInput": self.common,
            "Items": [state["partition"] for state in self.left],
            "counts": {
                state["partition"]["path"]: state["counts"]
                for state in self.left
                if state.get("counts")
            },
            "done": list(self.done),
            "status": "more" if self.left else "done",
        }

    def worked_off(
        self, compact: Callable[[State], State], deadline: Deadline, attempt: int = 0
    ) -> Batch:
        """Work on the partitions and return the batch as it is after this call.

        Args:
            compact: carries out one call for one partition; takes its state, and returns it with
                ``status`` and ``counts``.
            deadline: the call's deadline.
            attempt: how often the workflow has retried the call. A killed call does not say which
                partition killed it, so every second attempt begins with the last partition, and
                all but the culprit are reached.

        Raises:
            Exception: an error raised by ``compact``, if no partition made progress.
        """
        waiting = list(self.left) if attempt % 2 == 0 else list(reversed(self.left))
        least = _LEAST_SHARE * deadline.remaining_seconds()
        begun: list[State] = []
        failed: list[tuple[State, Failed]] = []
        done = list(self.done)
        while waiting and not begun:
            if len(waiting) < len(self.left) and deadline.remaining_seconds() < least:
                break
            state = waiting.pop(0)
            try:
                answer = compact(state)
            except Exception as error:
                failed.append((state, Failed(state["partition"]["path"], error)))
                continue
            if answer["status"] == "done":
                oversized = {"oversized": True} if answer.get("oversized") else {}
                done.append(
                    {"path": state["partition"]["path"], "counts": answer["counts"], **oversized}
                )
            else:
                begun.append(answer)
        failures = [failure for _, failure in failed]
        if not begun and len(done) == len(self.done) and failures:
            raise _loudest([failure.error for failure in failures])
        remaining = [*begun, *waiting, *(state for state, _ in failed)]
        return Batch(self.common, remaining, done, failures)


def _loudest(errors: Sequence[Exception]) -> Exception:
    """Return the error that the workflow retries most, so that no partition gets fewer retries."""
    return min(errors, key=_rank)


def _rank(error: Exception) -> int:
    name = type(error).__name__
    if name in _RETRIED:
        return _RETRIED.index(name)
    return len(_RETRIED) + (name in _NOT_RETRIED)
