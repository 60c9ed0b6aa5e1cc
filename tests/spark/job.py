"""The job as spark-submit runs it, on partitions that a test has filled."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark

from compactor.discovery.work_list import Discovery, leave_to_spark, write_work
from compactor.model import Partition
from compactor.orchestration.discovery_step import begin
from compactor.partition import receipts
from compactor.partition.receipts import Receipt
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_cli.machine.installed import spark_script
from compactor_dev import IMPORT_ROOTS, REPOSITORY
from compactor_local.embedded import EmbeddedS3, SeedObject
from tests.support.java import SHORT_LIVED
from tests.support.world import records_in

SPARK_HOME = Path(pyspark.__file__).parent
LONG_AGO_SECONDS = 9 * 86_400
RUN_SECONDS = 600
_OWN_LINES = ("compact_partitions: ", "compact_run: ")
_names = itertools.count(1)

CSV = [{"match": "*.csv", "format": "csv", "header": True}]


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that has come to its end; ``lines`` are what it wrote itself."""

    code: int
    lines: list[str]
    log: str


@dataclass
class Job:
    """Sources in a bucket of their own, a destination, and the job over them.

    Attributes:
        endpoint: what the job is told; a proxy before the S3, or the S3 itself.
        master: Spark's.
        given: fields of the run's input.
        conf: Spark's settings.
    """

    s3: EmbeddedS3
    master: str
    endpoint: str = ""
    given: dict[str, Any] = field(default_factory=dict)
    conf: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        number = next(_names)
        self.source, self.lake = f"spark-{number}-source", f"spark-{number}-lake"
        self.run_id = f"run-{number}"
        self.client = make_client(self.s3.endpoint_url)
        self.store = S3Store(self.client)
        self.items: list[Partition] = []
        self._started: list[subprocess.Popen[str]] = []
        for bucket in (self.source, self.lake):
            self.s3.create_bucket(bucket)

    @property
    def settings(self) -> Settings:
        return Settings.from_input(
            {
                "s3_source_uri": f"s3://{self.source}/logs/",
                "s3_destination_uri": f"s3://{self.lake}/compacted/",
                "depth": 1,
                "engine": "spark",
                **({} if "format" in self.given else {"formats": CSV}),
                **self.given,
            }
        )

    @property
    def place(self) -> str:
        bucket, prefix = self.settings.layout.run(self.run_id)
        return f"s3://{bucket}/{prefix}"

    def seed(self, objects: Mapping[str, bytes]) -> None:
        arrived = time.time() - LONG_AGO_SECONDS
        seeds = (SeedObject(f"logs/{key}", body, arrived) for key, body in objects.items())
        self.s3.seed(self.source, seeds)

    def discover(self, *more: Partition) -> list[Partition]:
        """Write the run's records, with all partitions and these on the list for Spark."""
        begun = begin(self.settings, self.run_id, self.store, time.time())
        self.items = [*begun.found.partitions, *more]
        if more:
            write_work(Discovery(tuple(self.items)), self.settings, self.run_id, self.store)
        for partition in self.items:
            leave_to_spark(self.settings, self.run_id, partition, self.store)
        return self.items

    def start(self) -> subprocess.Popen[str]:
        """Submit it; its process leads a group of its own, with all that it starts."""
        options = ["--master", self.master]
        return self.submit_words([*options, str(spark_script()), "--run", self.place])

    def submit_words(self, words: Sequence[str]) -> subprocess.Popen[str]:
        """Start spark-submit with these words and the settings of a test."""
        given = {**os.environ, **self.s3.environment}
        environment = {name: value for name, value in given.items() if value}
        environment |= {
            "AWS_ENDPOINT_URL_S3": self.endpoint or self.s3.endpoint_url,
            "PYTHONPATH": os.pathsep.join(IMPORT_ROOTS),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        # Executors of a cluster do not inherit these from the driver.
        conf = {
            f"spark.executorEnv.{name}": value
            for name, value in self.s3.environment.items()
            if value and not name.startswith("AWS_ENDPOINT_URL")
        }
        conf |= {"spark.executor.extraJavaOptions": SHORT_LIVED}
        conf |= {"spark.ui.enabled": "false", **self.conf}
        options = [word for name in conf for word in ("--conf", f"{name}={conf[name]}")]
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin" / "spark-submit"), *options, *words],
            cwd=REPOSITORY,
            env=environment,
            # Spark passes what the driver's Python writes on to its own standard output.
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def run(self) -> Ended:
        return self.wait(self.start())

    def wait(self, process: subprocess.Popen[str]) -> Ended:
        try:
            log, _ = process.communicate(timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill(process)
            log, _ = process.communicate()
            raise AssertionError(f"the job did not end:\n{log[-4000:]}") from None
        lines = [line for line in log.splitlines() if line.startswith(_OWN_LINES)]
        return Ended(process.returncode, lines, log)

    def kill(self, process: subprocess.Popen[str]) -> None:
        """SIGKILL to the driver: its Java and its Python process at once."""
        os.killpg(process.pid, signal.SIGKILL)

    def kill_started(self) -> None:
        """End whatever still runs: a test that failed has waited for nothing."""
        for process in self._started:
            if process.poll() is None:
                self.kill(process)
                process.communicate()

    # What it left.

    def record(self, name: str) -> dict[str, Any] | None:
        """One of the run's records; None where there is none."""
        bucket, key = self.settings.layout.run(self.run_id, name)
        if self.store.head(bucket, key) is None:
            return None
        document: dict[str, Any] = json.loads(self.store.get(bucket, key))
        return document

    def receipt(self, path: str) -> Receipt:
        partition = Partition(self.source, f"logs/{path}", path)
        return receipts.decode(
            self.store.get(*self.settings.layout.receipt(self.run_id, partition))
        )

    def outputs(self) -> dict[str, bytes]:
        return self.bodies(self.lake, "compacted/")

    def bodies(self, bucket: str, prefix: str = "") -> dict[str, bytes]:
        pages = self.store.list_objects(bucket, prefix)
        return {one.key: self.store.get(bucket, one.key) for page in pages for one in page}

    def readable(self) -> Counter[int]:
        """How often each numbered record is readable in the destination."""
        found: Counter[int] = Counter()
        for body in self.outputs().values():
            found += records_in(body)
        return found

    def uploads(self, prefix: str = "") -> list[str]:
        """Keys of the uploads that are neither completed nor aborted."""
        answer = self.client.list_multipart_uploads(Bucket=self.lake, Prefix=prefix)
        return [one["Key"] for one in answer.get("Uploads", ())]
