"""One round: runs many groups as one Spark job, and yields their answers while it runs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence

from pyspark import SparkContext

from compactor.failures import first_line
from compactor.ports import StoreTraits
from compactor.settings.settings import Settings
from compactor.sizes import MIB
from compactor_spark.answers import Answer, AnswersParam, GroupTask
from compactor_spark.tasks import OF_AWS, GroupRunner, OpenStore

POLL_SECONDS = 0.2
# Error name in the answer of a group when every attempt at it was lost with its executor.
TASK_LOST = "TaskLost"
# Tiny groups share a task up to these limits, as starting a task takes longer than such a group.
_SLICE_BYTES, _SLICE_SOURCES = 32 * MIB, 2_000
# Fewer groups share a task if there would be fewer tasks than this for each core.
_TASKS_OF_A_CORE = 4


class Rounds:
    """Runs groups on the executors.

    Args:
        context: a running Spark context.
        settings: of the run.
        run_id: of the run.
        region: the buckets' region, as the driver's client determined it.
        traits: store features that are safe to rely on.
    """

    def __init__(
        self,
        context: SparkContext,
        settings: Settings,
        run_id: str,
        region: str | None,
        *,
        traits: StoreTraits = OF_AWS,
    ) -> None:
        self._context = context
        nothing: list[Answer] = []
        self._answers = context.accumulator(nothing, AnswersParam())
        opened = OpenStore.of(settings, region, traits)
        self._runner = GroupRunner(settings, run_id, self._answers, opened)

    def run(self, tasks: Sequence[GroupTask]) -> Iterator[Sequence[Answer]]:
        """Yield answers as tasks end, one for each task.

        Often yields an empty batch, so that the caller can log. Spark retries a task whose executor
        dies. When Spark gives up on a task, it ends the whole job; each task without an answer is
        then run as a separate job.
        """
        waiting = {task.number: task for task in tasks}
        job = self._start(tasks)
        # Terminates: Spark gives up after spark.task.maxFailures failures, and EMR ends the step.
        while not job.ended(POLL_SECONDS):
            yield self._taken(waiting)
        yield self._taken(waiting)
        yield from self._run_alone(waiting)

    def _start(self, tasks: Sequence[GroupTask]) -> _Job:
        slices = slices_of(tasks, self._context.defaultParallelism)
        return _Job(self._context, slices, self._runner)

    def _run_alone(self, waiting: dict[int, GroupTask]) -> Iterator[Sequence[Answer]]:
        following = deque(waiting.values())
        running: list[_Job] = []
        while following or running:
            while following and len(running) < self._context.defaultParallelism:
                running.append(self._start([following.popleft()]))
            running[0].ended(POLL_SECONDS)
            ended = [job for job in running if job.ended(0)]
            running = [job for job in running if job not in ended]
            yield self._taken(waiting)
            for job in ended:
                if job.first in waiting:
                    del waiting[job.first]
                    yield [Answer(job.first, error=TASK_LOST, cause=job.error)]

    def _taken(self, waiting: dict[int, GroupTask]) -> Sequence[Answer]:
        """Return the answers since the last call, without second answers to the same task."""
        # Another thread appends to this same list while the job runs.
        arrived = self._answers.value
        answers = arrived[:]
        del arrived[: len(answers)]
        return [one for one in answers if waiting.pop(one.number, None) is not None]


class _Job:
    """A Spark job that runs in a separate thread."""

    def __init__(
        self, context: SparkContext, slices: list[list[GroupTask]], runner: GroupRunner
    ) -> None:
        self.first = slices[0][0].number
        self.error = ""
        self._context = context
        self._slices = slices
        self._runner = runner
        self._thread = threading.Thread(target=self._run, name="spark job", daemon=True)
        self._thread.start()

    def ended(self, seconds: float) -> bool:
        """Wait up to this long, and return True if the job has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        groups = [task.group for tasks in self._slices for task in tasks]
        objects = sum(len(group.sources) for group in groups)
        try:
            self._context.setJobDescription(f"{len(groups):,} groups of {objects:,} objects")
            # Each slice is retried, or speculated on, separately.
            slices = self._context.parallelize(self._slices, len(self._slices))
            slices.foreachPartition(self._runner)
        except Exception as error:
            self.error = first_line(error)


def slices_of(tasks: Sequence[GroupTask], cores: int) -> list[list[GroupTask]]:
    """Divide groups among Spark's tasks: one for each, except that tiny groups share one.

    Args:
        tasks: the groups; their order is kept.
        cores: of all executors.
    """
    least = _TASKS_OF_A_CORE * cores
    most_bytes = min(_SLICE_BYTES, sum(task.group.size for task in tasks) // least)
    most_sources = min(_SLICE_SOURCES, sum(len(task.group.sources) for task in tasks) // least)
    slices: list[list[GroupTask]] = []
    size = sources = 0
    for task in tasks:
        size += task.group.size
        sources += len(task.group.sources)
        if not slices or size > most_bytes or sources > most_sources:
            slices.append([])
            size, sources = task.group.size, len(task.group.sources)
        slices[-1].append(task)
    return slices
