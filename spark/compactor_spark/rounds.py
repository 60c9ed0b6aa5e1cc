"""One round: runs many groups as one Spark job, and yields their answers while it runs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence

from pyspark import SparkContext

from compactor.conditions import StoreTraits
from compactor.settings.settings import Settings
from compactor_spark.answers import Answer, AnswersParam, GroupTask
from compactor_spark.tasks import OF_AWS, GroupRunner, OpenStore

POLL_SECONDS = 0.2
# Error name in the answer of a group when every attempt at it was lost with its executor.
TASK_LOST = "TaskLost"


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
        return _Job(self._context, tasks, self._runner)

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
        self, context: SparkContext, tasks: Sequence[GroupTask], runner: GroupRunner
    ) -> None:
        self.first = tasks[0].number
        self.error = ""
        self._context = context
        self._tasks = list(tasks)
        self._runner = runner
        self._thread = threading.Thread(target=self._run, name="spark job", daemon=True)
        self._thread.start()

    def ended(self, seconds: float) -> bool:
        """Wait up to this long, and return True if the job has ended."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        objects = sum(len(task.group.sources) for task in self._tasks)
        description = f"{len(self._tasks):,} groups of {objects:,} objects"
        try:
            self._context.setJobDescription(description)
            # One group per slice, so that each is retried, or speculated on, separately.
            slices = self._context.parallelize(self._tasks, len(self._tasks))
            slices.foreachPartition(self._runner)
        except Exception as error:
            self.error = first_line(error)


def first_line(error: Exception) -> str:
    """Return an error's message in one line; for a Java error, without the stack trace."""
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java.getMessage())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
