"""Several small partitions in one call: each as if it were alone.

A child execution costs four transitions of Step Functions, and a call its start, whatever there is
to do. So discovery puts small partitions into batches, and a call works on them sequentially.
What one partition's failure may not do is to keep the others from being compacted: it waits until
they are, and is raised only by a call in which nothing else came forward, so that the retries of
the workflow are spent on those that failed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from compactor.errors import IntegrityError, InvalidInput, SourceChanged, TransientStoreError
from compactor.ports import Deadline

State = Mapping[str, Any]

# Of the working time that a call had at its begin, so much is left where it begins one more
# partition: none is begun only to be left immediately.
_LEAST_SHARE = 0.5
# As the workflow retries them, by name: what it repeats most often speaks for all.
_RETRIED = (TransientStoreError.__name__, SourceChanged.__name__)
_NOT_RETRIED = (IntegrityError.__name__, InvalidInput.__name__)


class Failed(msgspec.Struct, frozen=True):
    """A partition that failed in a call, among others that did not."""

    path: str
    error: Exception


class Batch(msgspec.Struct, frozen=True):
    """The partitions of one child execution.

    Attributes:
        common: what all of them are given.
        left: what a call for each of them alone would be given; what is begun comes first, what
            failed last.
        done: path and counts of each that is done.
        failed: what failed in the call that this is the end of.
    """

    common: State
    left: Sequence[State]
    done: Sequence[State] = ()
    failed: Sequence[Failed] = ()

    @classmethod
    def from_state(cls, given: State) -> Batch:
        """As the state machine carries it: ``{"BatchInput", "Items": […], "counts"?, "done"?}``.

        Raises:
            InvalidInput: there is nothing in it.
        """
        if not given.get("Items"):
            raise InvalidInput("Items", given.get("Items"), "one partition or more")
        common, counts = given["BatchInput"], given.get("counts", {})
        left = [
            {**common, "partition": item, "counts": counts.get(item["path"])}
            for item in given["Items"]
        ]
        return cls(common, left, list(given.get("done", ())))

    def to_state(self) -> dict[str, Any]:
        """What the next call is given; ``status`` is ``more`` while there is one left.

        ``counts`` are those of partitions that are begun, by their path.
        """
        return {
            "BatchInput": self.common,
            "Items": [one["partition"] for one in self.left],
            "counts": {
                one["partition"]["path"]: one["counts"] for one in self.left if one.get("counts")
            },
            "done": list(self.done),
            "status": "more" if self.left else "done",
        }

    def worked_off(
        self, compact: Callable[[State], State], deadline: Deadline, attempt: int = 0
    ) -> Batch:
        """What is left after one call.

        Args:
            compact: one call for one partition alone: takes its state, and answers with it and its
                ``status`` and ``counts``.
            deadline: of the call.
            attempt: how often the workflow has repeated it. What kills a call leaves no word of
                which partition did: so every second one begins with the last partition, and only
                the culprit is not come to.

        Raises:
            Exception: as ``compact`` raised it, where no partition came forward.
        """
        waiting = list(self.left) if attempt % 2 == 0 else list(reversed(self.left))
        least = _LEAST_SHARE * deadline.remaining_seconds()
        begun: list[State] = []
        failed: list[tuple[State, Failed]] = []
        done = list(self.done)
        while waiting and not begun:
            if len(waiting) < len(self.left) and deadline.remaining_seconds() < least:
                break
            one = waiting.pop(0)
            try:
                answer = compact(one)
            except Exception as error:
                failed.append((one, Failed(one["partition"]["path"], error)))
                continue
            if answer["status"] == "done":
                done.append({"path": one["partition"]["path"], "counts": answer["counts"]})
            else:
                begun.append(answer)
        failures = [failure for _, failure in failed]
        if not begun and len(done) == len(self.done) and failures:
            raise _loudest([one.error for one in failures])
        left = [*begun, *waiting, *(one for one, _ in failed)]
        return Batch(self.common, left, done, failures)


def _loudest(errors: Sequence[Exception]) -> Exception:
    """The one that the workflow repeats most often, so that none has fewer retries than alone."""
    return min(errors, key=_rank)


def _rank(error: Exception) -> int:
    name = type(error).__name__
    if name in _RETRIED:
        return _RETRIED.index(name)
    return len(_RETRIED) + (name in _NOT_RETRIED)
