"""Runs on the executors: steps 1 to 3 of the write order (read, store, verify) for each group.

Spark reuses a Python process for many tasks, so each process keeps one store with its connections.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from compactor.log.encoding import encode_commit
from compactor.outputs.group import draft_of
from compactor.outputs.pending import PendingOutput
from compactor.partition.steps import store as store_group
from compactor.ports import ObjectStore, StoreTraits
from compactor.process import memory as worker_process
from compactor.s3.store import S3Store, make_client
from compactor.settings.encryption import ENCRYPTION_VARIABLE
from compactor.settings.settings import Settings
from compactor_spark.answers import Answer, GroupTask

if TYPE_CHECKING:
    from pyspark import Accumulator

# An executor has several Python processes, which share the request rate of one S3 prefix.
MAX_THREADS = 128
OF_AWS = StoreTraits()
# Variables about the driver's own store; an executor's own environment takes precedence.
_PASSED_ON = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", ENCRYPTION_VARIABLE)


@dataclass(frozen=True, slots=True)
class OpenStore:
    """Returns the store of the process that calls it; pickled and sent to executors.

    Attributes:
        threads: maximum number of sources read concurrently.
        budget_bytes: maximum bytes of sources that are being fetched or are buffered.
        environment: variables about the driver's own store, unless the process has its own
            values; never credentials.
        traits: store features that are safe to rely on.
    """

    threads: int
    budget_bytes: int
    environment: Mapping[str, str]
    traits: StoreTraits = OF_AWS

    @classmethod
    def of(cls, settings: Settings, region: str | None, traits: StoreTraits = OF_AWS) -> OpenStore:
        """Return an instance for the settings of a run.

        Args:
            settings: of the run.
            region: the region that the driver's client determined.
            traits: store features that are safe to rely on.
        """
        found = {name: os.environ[name] for name in _PASSED_ON if os.environ.get(name)}
        if region:
            found["AWS_DEFAULT_REGION"] = region
        threads = min(settings.limits.reads, MAX_THREADS)
        return cls(threads, settings.limits.read_ahead_bytes, found, traits)

    def __call__(self) -> S3Store:
        """Return the single store of this process."""
        for name, value in self.environment.items():
            os.environ.setdefault(name, value)
        return _store(self.threads, self.budget_bytes).with_traits(self.traits)


@dataclass(frozen=True, slots=True)
class GroupRunner:
    """Runs the tasks of slices on an executor; pickled and sent there.

    Attributes:
        answers: receives one answer for each task, on success or failure.
    """

    settings: Settings
    run_id: str
    answers: Accumulator[list[Answer]]
    open_store: OpenStore

    def __call__(self, slices: Iterable[Sequence[GroupTask]]) -> None:
        """Store every group of these slices; each has an answer of its own."""
        for tasks in slices:
            for task in tasks:
                self.answers.add([self._answer(task)])

    def _answer(self, task: GroupTask) -> Answer:
        try:
            store = self.open_store()
        except Exception as error:
            return Answer(task.number, error=type(error).__name__, cause=str(error))
        settings, where = self.settings, task.destination
        return answer_for(
            task,
            self.run_id,
            store,
            lambda: store_group(task.group, settings, store, where),
        )


def answer_for(
    task: GroupTask, run_id: str, store: ObjectStore, stored: Callable[[], PendingOutput]
) -> Answer:
    """Store one group; errors are returned in the answer, not raised.

    An error raised from a task would end the job, and with it every other group.

    Args:
        task: the group to store.
        run_id: of the run.
        store: its requests during the call are counted as the task's.
        stored: does steps 1 to 3 of the write order.
    """
    started = time.monotonic()
    before = Counter(store.requests.snapshot())

    def answer(**outcome: Any) -> Answer:
        made = Counter(store.requests.snapshot()) - before
        return Answer(task.number, seconds=time.monotonic() - started, requests=made, **outcome)

    try:
        pending = stored()
        draft = draft_of(pending, run_id, time.time())
        encoded = b"" if draft is None else encode_commit(draft)
    except Exception as error:
        return answer(error=type(error).__name__, cause=str(error))
    return answer(draft=encoded, misfits=dict(pending.misfits))


@cache
def _store(threads: int, budget_bytes: int) -> S3Store:
    worker_process.tune()
    return S3Store(make_client(connections=threads), threads=threads, budget_bytes=budget_bytes)
