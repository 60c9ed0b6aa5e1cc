"""Many groups on Spark, and beside workers: outputs are those of a worker, to the byte."""

from __future__ import annotations

import io
import itertools
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from compactor.clock import NoDeadline, SystemClock
from compactor.discovery.discover import discover
from compactor.log.log import CommitLog
from compactor.model import Partition
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts, Receipt
from compactor.partition.run import compact_partition
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_local.embedded import EmbeddedS3, SeedObject
from compactor_spark.console import Console
from compactor_spark.driver import Driver
from compactor_spark.places import LoadedRun
from tests.spark.cluster import python_workers
from tests.support.embedded import find_embedded
from tests.support.examples import limited

pytestmark = pytest.mark.slow

# One partition of 200 groups, and small partitions of one group each.
GROUPS, SOURCES_OF_A_GROUP = 200, 2
SMALL_PARTITIONS, SOURCES_OF_A_PARTITION = 60, 2
RECORDS_OF_A_SOURCE = 5
SOURCES = GROUPS * SOURCES_OF_A_GROUP + SMALL_PARTITIONS * SOURCES_OF_A_PARTITION
RECORDS = SOURCES * RECORDS_OF_A_SOURCE
ROWS = {"output_format": "parquet", "parquet_schema": "id BIGINT, name STRING, at TIMESTAMP"}
KINDS = [pytest.param({}, id="bytes"), pytest.param(ROWS, id="rows")]
LONG_AGO_SECONDS = 9 * 86_400
_names = itertools.count(1)


def keys() -> list[str]:
    large = [f"large/{number:04}.json" for number in range(GROUPS * SOURCES_OF_A_GROUP)]
    small = [
        f"small-{number:03}/{one}.json"
        for number in range(SMALL_PARTITIONS)
        for one in range(SOURCES_OF_A_PARTITION)
    ]
    return [*large, *small]


def lines(number: int) -> bytes:
    first = number * RECORDS_OF_A_SOURCE
    records = [
        {"id": first + n, "name": f"é{n}", "at": f"2026-01-02T03:04:0{n}Z"}
        for n in range(RECORDS_OF_A_SOURCE)
    ]
    return "".join(json.dumps(one) + "\n" for one in records).encode()


@dataclass
class Lake:
    """Sources, and destinations beside each other in one bucket."""

    s3: EmbeddedS3
    session: SparkSession
    source: str
    given: dict[str, object]
    log: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        self.bucket = f"{self.source}-lake"
        self.s3.create_bucket(self.bucket)
        arrived = time.time() - LONG_AGO_SECONDS
        self.s3.seed(
            self.source,
            (SeedObject(f"logs/{key}", lines(n), arrived) for n, key in enumerate(keys())),
        )
        self.store = S3Store(make_client(self.s3.endpoint_url))

    def settings(self, name: str) -> Settings:
        return limited(
            {
                "s3_source_uri": f"s3://{self.source}/logs/",
                "s3_destination_uri": f"s3://{self.bucket}/{name}/",
                "depth": 1,
                "group_sources": SOURCES_OF_A_GROUP,
                **self.given,
            }
        )

    def items(self, settings: Settings) -> Sequence[Partition]:
        return discover(settings, self.store, time.time()).partitions

    def on_spark(self, settings: Settings, run_id: str) -> Sequence[Receipt]:
        """The driver over all partitions, in the session of this process."""
        loaded = LoadedRun(run_id, settings, self.items(settings))
        driver = Driver(loaded, make_client(self.s3.endpoint_url), Console(self.log))
        return driver.compact(self.session, lambda: None)

    def by_workers(self, settings: Settings, run_id: str) -> Sequence[Receipt]:
        """Every partition as a Lambda function compacts it."""
        clock = SystemClock()
        return [
            compact_partition(
                PartitionRun(item, settings, self.store, clock, NoDeadline(), run_id),
                Counts(),
            )
            for item in reversed(self.items(settings))
        ]

    def keys(self, settings: Settings) -> list[str]:
        pages = self.store.list_objects(self.bucket, settings.destination.prefix)
        return [one.key for page in pages for one in page]

    def outputs(self, settings: Settings) -> dict[str, bytes]:
        prefix = settings.destination.prefix
        return {
            key.removeprefix(prefix): self.store.get(self.bucket, key)
            for key in self.keys(settings)
        }

    def commits(self, settings: Settings) -> dict[str, object]:
        """What the logs say, but for times, ids and the order in which groups were finished."""
        found: dict[str, object] = {}
        for item in self.items(settings):
            for commit in CommitLog(self.store, settings, item).every_commit():
                output = commit.output
                assert output is not None
                key = output.key.removeprefix(settings.destination.prefix)
                found[commit.group_id] = replace(
                    commit,
                    sequence=0,
                    commit_id="",
                    log_id="",
                    run_id="",
                    created_at=0.0,
                    output=replace(output, upload_id="", key=key),
                )
        return found

    def uploads(self) -> list[str]:
        return [one.key for one in self.store.list_uploads(self.bucket, "")]


@pytest.fixture
def lake(
    request: pytest.FixtureRequest,
    s3: EmbeddedS3,
    spark_session: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> Lake:
    find_embedded(s3, monkeypatch)
    return Lake(s3, spark_session, f"many-{next(_names)}", request.param)


@contextmanager
def killing_tasks(lake: Lake, settings: Settings) -> Iterator[None]:
    """Kill all Python workers of Spark's as outputs appear, three times in all.

    A task fails for good when it has failed four times.
    """
    ended = threading.Event()

    def kill() -> None:
        for outputs in (1, 20, 40):
            while len(lake.keys(settings)) < outputs and not ended.wait(0.02):
                pass
            for pid in python_workers(os.getpid()):
                os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield
    finally:
        ended.set()
        killer.join()


def failed_tasks(session: SparkSession) -> int:
    """Failed attempts at tasks in the newest job of the session."""
    tracker = session.sparkContext.statusTracker()
    job = tracker.getJobInfo(max(tracker.getJobIdsForGroup(None)))
    assert job is not None
    stages = [tracker.getStageInfo(number) for number in job.stageIds]
    return sum(one.numFailedTasks for one in stages if one is not None)


@pytest.mark.parametrize("lake", KINDS, indirect=True)
def test_200_groups_and_many_small_partitions_are_those_of_a_worker_though_tasks_are_killed(
    lake: Lake,
) -> None:
    here, there = lake.settings("by-spark"), lake.settings("by-workers")
    with killing_tasks(lake, here):
        receipts = lake.on_spark(here, "run-spark")
    assert failed_tasks(lake.session) > 0
    assert {one.status for one in receipts} == {"done"}, [one.cause for one in receipts]
    assert sum(one.counts.objects_in for one in receipts) == SOURCES
    assert {one.status for one in lake.by_workers(there, "run-workers")} == {"done"}
    outputs = lake.outputs(here)
    assert len(outputs) == GROUPS + SMALL_PARTITIONS
    assert outputs == lake.outputs(there)
    assert lake.commits(here) == lake.commits(there)
    assert lake.uploads() == []


@pytest.mark.parametrize("lake", KINDS, indirect=True)
def test_both_engines_on_one_lake_concurrently_store_each_record_once(
    lake: Lake, tmp_path: Path
) -> None:
    settings = lake.settings("shared")
    by_workers: list[Receipt] = []
    workers = threading.Thread(
        target=lambda: by_workers.extend(lake.by_workers(settings, "run-workers"))
    )
    workers.start()
    try:
        on_spark = lake.on_spark(settings, "run-spark")
    finally:
        workers.join()
    for receipts in (by_workers, on_spark):
        assert {one.status for one in receipts} == {"done"}, [one.cause for one in receipts]
        assert sum(one.counts.objects_in for one in receipts) > 0
    # What one engine left to the other, as it had planned it at the same time.
    lake.by_workers(settings, "run-after")
    assert counted(lake.outputs(settings), tmp_path) == (RECORDS, RECORDS, sum(range(RECORDS)))
    assert lake.uploads() == []


def counted(outputs: dict[str, bytes], directory: Path) -> tuple[int, int, int]:
    """Rows, different ids and their sum, as DuckDB reads the outputs."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE found (id BIGINT)")
        for number, (name, body) in enumerate(outputs.items()):
            path = directory / f"{number}.{name.rpartition('.')[2]}"
            path.write_bytes(body)
            reader = "read_parquet" if path.suffix == ".parquet" else "read_json_auto"
            connection.execute(f"INSERT INTO found SELECT id FROM {reader}('{path}')")  # noqa: S608 - our own path
        found = connection.sql("SELECT count(*), count(DISTINCT id), sum(id)::BIGINT FROM found")
        (rows,) = found.fetchall()
        return rows
