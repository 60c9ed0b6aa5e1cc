"""What travels to a task, and what comes back from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.accumulators import AccumulatorParam

from compactor.destination import Destination
from compactor.log.rejects import Waiting
from compactor.model import ObjectGroup, Signature


@dataclass(frozen=True, slots=True)
class GroupTask:
    """One group to be stored.

    Attributes:
        number: the same for no two tasks of a job.
        replays: the sources of the group, where these are rejects of earlier entries.
    """

    number: int
    group: ObjectGroup
    destination: Destination
    replays: tuple[Waiting, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one group.

    An error travels as its name and text: some of ours cannot be unpickled, and one that a
    library raised might not exist where it is read.

    Attributes:
        number: of the task.
        draft: the commit that would publish the group, as the log encodes it; empty where
            nothing is to be committed.
        misfits: signatures of the sources that belong into another output, by identity.
        error: class name of what ended the task; empty when it did its work.
        cause: what that error says.
        seconds: time the task took.
        requests: what it asked of the store.
    """

    number: int
    draft: bytes = b""
    misfits: Mapping[bytes, Signature] = field(default_factory=dict)
    error: str = ""
    cause: str = ""
    seconds: float = 0.0
    requests: Counter[str] = field(default_factory=Counter)


class AnswersParam(AccumulatorParam[list[Answer]]):
    """Lists of answers, added up in the order in which tasks end.

    Spark applies the updates of a task of an action exactly once, when its first attempt ends
    well: those of a second attempt of the same task (a retry, or speculation) are dropped.
    """

    def zero(self, value: list[Answer]) -> list[Answer]:
        """What a task starts from."""
        return []

    def addInPlace(  # noqa: N802 - Spark's name for it
        self, value1: list[Answer], value2: list[Answer]
    ) -> list[Answer]:
        """The first list, with the second at its end."""
        value1.extend(value2)
        return value1
