"""The messages between driver and tasks: group tasks and their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.accumulators import AccumulatorParam

from compactor.destination import Destination
from compactor.model import ObjectGroup, Signature


@dataclass(frozen=True, slots=True)
class GroupTask:
    """One group to be stored.

    Attributes:
        number: unique among the tasks of a job.
    """

    number: int
    group: ObjectGroup
    destination: Destination


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one group.

    Errors are passed as name and text: some of ours cannot be unpickled, and the class of a
    library's error might not exist on the driver.

    Attributes:
        number: of the task.
        draft: the commit that would publish the group, as the log encodes it; empty if there is
            nothing to commit.
        misfits: signatures of the sources that belong in another output, by identity.
        error: class name of the error that ended the task; empty on success.
        cause: the error's message.
        seconds: duration of the task.
        requests: the task's requests to the store, by kind.
    """

    number: int
    draft: bytes = b""
    misfits: Mapping[bytes, Signature] = field(default_factory=dict)
    error: str = ""
    cause: str = ""
    seconds: float = 0.0
    requests: Counter[str] = field(default_factory=Counter)


class AnswersParam(AccumulatorParam[list[Answer]]):
    """Concatenates lists of answers in the order in which tasks end.

    In an action, Spark applies the updates of a task exactly once, when its first attempt succeeds.
    Updates of a second attempt at the same task (a retry, or speculation) are dropped.
    """

    def zero(self, value: list[Answer]) -> list[Answer]:
        """Return the initial value in a task."""
        return []

    def addInPlace(  # noqa: N802 - Spark's name for it
        self, value1: list[Answer], value2: list[Answer]
    ) -> list[Answer]:
        """Append the second list to the first, and return the first."""
        value1.extend(value2)
        return value1
