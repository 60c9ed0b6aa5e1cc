"""Sources, a destination and the work of one partition whose outputs hold rows."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, cast

from pyspark.sql import DataFrame, SparkSession

from compactor import layout
from compactor.log.entries import Commit
from compactor.log.log import CommitLog
from compactor.model import ObjectGroup, Partition
from compactor.outputs.group import draft_of
from compactor.outputs.pending import PendingOutput
from compactor.planning.partition_listing import take_listing
from compactor.planning.plan import Knowledge, plan
from compactor.runs.listings import Window
from compactor.runs.partition_progress import PartitionProgress
from compactor.runs.partition_run import PartitionRun
from compactor.runs.replays import replay_groups
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_dev import IMPORT_ROOTS
from compactor_local.embedded import EmbeddedS3, SeedObject
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.groups import compact_columnar
from compactor_spark.tasks import OpenStore
from tests.support.examples import limited
from tests.support.table_engines import Unavailable, engine_settings

#: A directory with the jars of hadoop-aws and all it needs, where somebody has resolved them.
JARS_VARIABLE = "COMPACTOR_HADOOP_AWS_JARS"
#: Where no DDL is read, nothing is asked of a session.
NO_SESSION = cast(SparkSession, None)
LONG_AGO_SECONDS = 9 * 86_400
_names = itertools.count(1)


@contextmanager
def session_here(s3: EmbeddedS3, directory: Path) -> Iterator[SparkSession]:
    """A session in this process; its workers find the embedded S3 and this repository."""
    path = os.pathsep.join(IMPORT_ROOTS)
    wanted = {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    wanted |= {name: value for name, value in s3.environment.items() if value}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    builder = SparkSession.Builder().master("local[2,4]").appName("rows")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(directory),
        "spark.local.dir": str(directory),
        **_with_jars(_s3a(s3), _engines()),
    }.items():
        builder = builder.config(name, value)
    try:
        session = builder.getOrCreate()
    finally:
        # The JVM has it now, and hands it to its workers; no later test must find it.
        for name, old in before.items():
            if old is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = old
    try:
        yield session
    finally:
        session.stop()


def _s3a(s3: EmbeddedS3) -> dict[str, str]:
    """Spark's own way to the embedded S3, where its jars are at hand: those of tables have it."""
    directory = os.environ.get(JARS_VARIABLE)
    jars = (
        ",".join(str(path) for path in sorted(Path(directory).glob("*.jar"))) if directory else ""
    )
    return {
        **({"spark.jars": jars} if jars else {}),
        "spark.hadoop.fs.s3a.endpoint": s3.endpoint_url,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.access.key": s3.environment["AWS_ACCESS_KEY_ID"],
        "spark.hadoop.fs.s3a.secret.key": s3.environment["AWS_SECRET_ACCESS_KEY"],
    }


def _engines() -> dict[str, str]:
    """Tables of Iceberg and Delta, where their jars are at hand."""
    try:
        return engine_settings()
    except Unavailable:
        return {}


def _with_jars(one: Mapping[str, str], other: Mapping[str, str]) -> dict[str, str]:
    jars = [settings["spark.jars"] for settings in (one, other) if "spark.jars" in settings]
    return {**one, **other, **({"spark.jars": ",".join(jars)} if jars else {})}


class _Clock:
    """The machine's clock, and no deadline."""

    def now(self) -> float:
        return time.time()

    def remaining_seconds(self) -> float:
        return inf


@dataclass
class RowWorld:
    """One partition, ``logs/a/``, in buckets of its own."""

    session: SparkSession
    s3: EmbeddedS3
    directory: Path
    given: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        number = next(_names)
        self.source, self.lake = f"rows-{number}-source", f"rows-{number}-lake"
        self.client = make_client(self.s3.endpoint_url)
        self.store = S3Store(self.client, threads=16)
        self.partition = Partition(self.source, "logs/a/", "a/")
        self.runs = 0
        for bucket in (self.source, self.lake):
            self.s3.create_bucket(bucket)

    @property
    def settings(self) -> Settings:
        uris = {
            "s3_source_uri": f"s3://{self.source}/logs/",
            "s3_destination_uri": f"s3://{self.lake}/compacted/",
            "depth": 1,
            "reads": 16,
        }
        return limited({**uris, **self.given})

    # Sources.

    def put(self, name: str, body: bytes) -> None:
        arrived = time.time() - LONG_AGO_SECONDS
        self.s3.seed(self.source, [SeedObject(f"logs/a/{name}", body, arrived)])

    def put_lines(self, name: str, *records: Mapping[str, Any]) -> None:
        self.put(name, "".join(json.dumps(one) + "\n" for one in records).encode())

    def put_rows(self, name: str, frame: DataFrame, **options: str) -> None:
        """Store the rows of a frame as one Parquet object, written by Spark."""
        (body,) = self.parquet(frame, 1, **options)
        self.put(name, body)

    def put_sql(self, name: str, query: str, **options: str) -> None:
        self.put_rows(name, self.session.sql(query), **options)

    def parquet(self, frame: DataFrame, count: int, **options: str) -> list[bytes]:
        """A frame as this many Parquet objects."""
        target = self.directory / f"frame-{next(_names)}"
        writer = frame.repartition(count).write.options(**options)
        writer.parquet(target.as_uri())
        bodies = [path.read_bytes() for path in sorted(target.glob("*.parquet"))]
        shutil.rmtree(target)
        assert len(bodies) == count
        return bodies

    # Work.

    def context(self) -> ColumnarContext:
        self.runs += 1
        open_store = OpenStore.of(self.settings, None)
        run = self._run()
        return ColumnarContext(
            self.settings, self.store, run.destination, f"run-{self.runs}", open_store
        )

    def groups(self) -> tuple[ObjectGroup, ...]:
        state = self.log.load()
        listing = take_listing(self.store, self.partition, state.committed)
        known = Knowledge(state.committed, state.quarantined)
        return plan(listing, self.settings, known, time.time()).groups

    def pending(self) -> PendingOutput:
        """Steps 1 to 3 for the one group that there is."""
        (group,) = self.groups()
        return compact_columnar(self.session, group, self.context())

    def run(self) -> list[Commit]:
        """The partition, as the driver does it; its commits of this run."""
        context = self.context()
        run = self._run()
        progress = PartitionProgress(run, run.log.load(), rebuild=False)
        progress.settling.settle()
        commits = []
        groups = [(one, ()) for one in progress.windows.plan(Window()).groups]
        for group, replays in [*replay_groups(progress.state, self.settings), *groups]:
            pending = compact_columnar(self.session, group, context, replays)
            draft = draft_of(pending, context.run_id, time.time())
            if draft is not None:
                commits.append(progress.groups.commit(draft))
        progress.finish()
        run.log.checkpoint(progress.state)
        return commits

    def _run(self) -> PartitionRun:
        clock = _Clock()
        run_id = f"run-{self.runs}"
        return PartitionRun(self.partition, self.settings, self.store, clock, clock, run_id)

    # What is there.

    @property
    def log(self) -> CommitLog:
        return CommitLog(self.store, self.settings, self.partition)

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        return [one.key for page in self.store.list_objects(bucket, prefix) for one in page]

    def output(self) -> DataFrame:
        """What a reader of the destination sees."""
        return self.session.read.parquet(self.output_files()[0].parent.as_uri())

    def output_files(self) -> list[Path]:
        """Copies of all outputs."""
        target = self.directory / f"output-{next(_names)}"
        target.mkdir()
        for number, key in enumerate(self.keys(self.lake, "compacted/")):
            (target / f"{number}.parquet").write_bytes(self.store.get(self.lake, key))
        return sorted(target.iterdir())

    def commits(self) -> list[Commit]:
        """The valid entries of the log, oldest first."""
        return [*self.log.every_commit()][::-1]

    def rejects(self) -> list[dict[str, str]]:
        _, prefix = layout.rejects_key(self.settings, self.partition, "")
        lines = [
            line
            for key in self.keys(self.lake, prefix)
            for line in self.store.get(self.lake, key).splitlines()
        ]
        return [json.loads(line) for line in lines]

    def uploads(self) -> list[str]:
        return [one.key for one in self.store.list_uploads(self.lake, "")]
