"""One round of columnar groups: runs a few concurrently, each as a job over all executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped] # py4j has no annotations
from pyspark import AccumulatorParam
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from compactor.conditions import StoreTraits
from compactor.outputs.pending import PendingOutput
from compactor.ports import ObjectStore
from compactor.s3.store import S3Store
from compactor.settings.settings import Settings
from compactor_spark.answers import Answer, GroupTask
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.groups import compact_columnar
from compactor_spark.columnar.sample import pin_by_sample
from compactor_spark.columnar.session import columnar_session
from compactor_spark.rounds import POLL_SECONDS, first_line
from compactor_spark.tasks import OF_AWS, OpenStore, answer_for

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

# A single task writes the rows of a group, so it takes several groups to keep executors busy.
_MOST_CONCURRENT_GROUPS = 8


class SparkFailed(Exception):
    """A Spark job failed; has the first line of Spark's message."""


class RequestsParam(AccumulatorParam[Counter[str]]):
    """Adds up requests by kind over tasks."""

    def zero(self, value: Counter[str]) -> Counter[str]:
        """Return the initial value in a task."""
        return Counter()

    def addInPlace(  # noqa: N802 - Spark's name for it
        self, value1: Counter[str], value2: Counter[str]
    ) -> Counter[str]:
        """Add the second counter to the first, and return the first."""
        value1.update(value2)
        return value1


class ParquetRounds:
    """Runs groups with columnar outputs; the counterpart of :class:`compactor_spark.rounds.Rounds`.

    Args:
        session: a running Spark session.
        settings: of the run.
        run_id: of the run.
        client: serves the driver's own requests.
        traits: store features that are safe to rely on.
    """

    def __init__(
        self,
        session: SparkSession,
        settings: Settings,
        run_id: str,
        client: S3Client,
        *,
        traits: StoreTraits = OF_AWS,
    ) -> None:
        self._session = session
        self._settings = settings
        self._run_id = run_id
        self._client = client
        self._traits = traits
        self._open_store = OpenStore.of(settings, client.meta.region_name, traits)
        concurrent = min(_MOST_CONCURRENT_GROUPS, max(1, session.sparkContext.defaultParallelism))
        self._concurrent = concurrent

    def run(self, tasks: Sequence[GroupTask]) -> Iterator[Sequence[Answer]]:
        """Yield answers as groups end, one for each task.

        Often yields an empty batch, so that the caller can log.
        """
        self._pin_columns(tasks)
        with ThreadPoolExecutor(self._concurrent, thread_name_prefix="columnar") as pool:
            running: set[Future[Answer]] = {pool.submit(self._answer, task) for task in tasks}
            try:
                while running:
                    done, running = wait(running, POLL_SECONDS, "FIRST_COMPLETED")
                    yield [future.result() for future in done]
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _pin_columns(self, tasks: Sequence[GroupTask]) -> None:
        if self._settings.format == "parquet" or not tasks:
            return
        # A separate store, as these requests belong to no partition.
        context = self._context(tasks[0], self._new_store())
        session = columnar_session(self._session)
        groups = [task.group for task in tasks if not task.replays]
        if not groups:
            return
        with suppress(Exception):
            # Every group runs into the same error, and reports it as its own failure.
            pin_by_sample(session, groups, context)

    def _answer(self, task: GroupTask) -> Answer:
        # A separate store, so that the group's requests are counted separately.
        store = self._new_store()
        nothing: Counter[str] = Counter()
        elsewhere = self._session.sparkContext.accumulator(nothing, RequestsParam())
        context = replace(self._context(task, store), requests=elsewhere)
        answer = answer_for(task, self._run_id, store, lambda: self._stored(task, context))
        return replace(answer, requests=answer.requests + elsewhere.value)

    def _new_store(self) -> S3Store:
        return S3Store(self._client).with_traits(self._traits)

    def _context(self, task: GroupTask, store: ObjectStore) -> ColumnarContext:
        return ColumnarContext(
            self._settings, store, task.destination, self._run_id, self._open_store
        )

    def _stored(self, task: GroupTask, context: ColumnarContext) -> PendingOutput:
        group = task.group
        text = f"group {group.id}: rows of {len(group.sources):,} objects"
        self._session.sparkContext.setJobDescription(text)
        try:
            return compact_columnar(self._session, group, context, task.replays)
        except (Py4JError, PySparkException) as error:
            raise SparkFailed(first_line(error)) from error
