"""One round: many groups as one Spark job, whose answers are given out while it runs."""

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
# What a group's answer says when all attempts at it ended with their executors.
TASK_LOST = "TaskLost"


class Rounds:
    """Runs groups on the executors.

    Args:
        context: Spark, ready to run.
        settings: of the run.
        run_id: of the run.
        region: where the buckets are, as the driver's client found it.
        traits: the ways that are safe at the store.
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
        """Answers as tasks end, one for each task; often none, so that the caller may log.

        A task whose executor dies is Spark's to retry. When it gives up on one task it ends
        the job: whatever has no answer then gets a job of its own.
        """
        waiting = {task.number: task for task in tasks}
        job = self._start(tasks)
        # Ends: Spark gives up a task that failed spark.task.maxFailures times, and EMR the step.
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
        """What came in since the last look; a second answer to the same task is left out."""
        # Another thread appends to this very list while the job runs.
        arrived = self._answers.value
        answers = arrived[:]
        del arrived[: len(answers)]
        return [one for one in answers if waiting.pop(one.number, None) is not None]


class _Job:
    """A Spark job in a thread of its own."""

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
        """True when the job has ended; waits that long for it."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        objects = sum(len(task.group.sources) for task in self._tasks)
        description = f"{len(self._tasks):,} groups of {objects:,} objects"
        try:
            self._context.setJobDescription(description)
            # One group to a slice: each is retried, and run twice where it is slow, alone.
            slices = self._context.parallelize(self._tasks, len(self._tasks))
            slices.foreachPartition(self._runner)
        except Exception as error:
            self.error = first_line(error)


def first_line(error: Exception) -> str:
    """What an error says in one line; of one from the Java side, without the stack trace."""
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java.getMessage())
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)
