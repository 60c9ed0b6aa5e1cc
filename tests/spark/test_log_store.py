"""Two drivers that commit to one Delta table on S3 at the same moment, with the real Delta."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # py4j has no annotations
from pyspark.sql import SparkSession

from compactor_local.embedded import EmbeddedS3
from compactor_spark.log_store import one_driver_only, use_conditional_commits
from compactor_spark.maintain.delta import DeltaTable
from compactor_tables.table_engine import Rewritten
from tests.spark.gate import Gate, Request

pytestmark = pytest.mark.slow
deltalake = pytest.importorskip("deltalake")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyiceberg")

from tests.spark.maintenance_world import (  # noqa: E402 - needs these libraries
    DELTA,
    Maintained,
    day,
    ids,
)

_buckets = itertools.count(1)
_LOG = "_delta_log/"


@pytest.fixture
def bucket(s3: EmbeddedS3) -> str:
    """Of one test; S3A keeps what it was told of a bucket."""
    made = f"raced-{next(_buckets)}"
    s3.create_bucket(made)
    return made


@pytest.fixture
def conditional(tables: SparkSession) -> SparkSession:
    use_conditional_commits(tables)
    return tables


@pytest.fixture
def as_delta_has_it(conditional: SparkSession) -> Iterator[SparkSession]:
    """With the log store that Delta takes by itself."""
    conf: Any = conditional.sparkContext._jsc.sc().conf()
    named = "spark.delta.logStore.s3a.impl"
    ours = conf.get(named)
    conf.set(named, "io.delta.storage.S3SingleDriverLogStore")
    yield conditional
    conf.set(named, ours)


def append(session: SparkSession, uri: str, *numbers: int) -> None:
    frame = session.createDataFrame([(one,) for one in numbers], "id BIGINT")
    frame.coalesce(1).write.format("delta").mode("append").save(uri.replace("s3://", "s3a://"))


def raced(
    session: SparkSession, s3: EmbeddedS3, proxy: Gate, bucket: str
) -> tuple[Any, dict[str, str]]:
    """Spark appends 3, and right before its commit is stored another driver appends 2."""
    session.conf.set(f"fs.s3a.bucket.{bucket}.endpoint", proxy.endpoint_url)
    uri = f"s3://{bucket}/t"
    append(session, uri, 1)
    options = {
        "AWS_ENDPOINT_URL": s3.endpoint_url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        **{
            name: s3.environment[name] or ""
            for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        },
    }
    other = deltalake.DeltaTable(uri, storage_options=options)

    def overtake(request: Request) -> None:
        if request.method == "PUT" and request.path.endswith(f"{_LOG}{1:020d}.json"):
            proxy.rules.clear()
            deltalake.write_deltalake(other, pyarrow.table({"id": [2]}), mode="append")

    proxy.rules.append(overtake)
    append(session, uri, 3)
    assert not proxy.rules
    return deltalake.DeltaTable(uri, storage_options=options), options


def numbers(table: Any) -> list[int]:
    return sorted(table.to_pyarrow_table().column("id").to_pylist())


def test_a_commit_that_was_overtaken_becomes_the_next_version(
    conditional: SparkSession, s3: EmbeddedS3, proxy: Gate, bucket: str
) -> None:
    table, _ = raced(conditional, s3, proxy, bucket)
    assert numbers(table) == [1, 2, 3]
    assert table.version() == 2
    assert one_driver_only(conditional) == ""


def test_deltas_own_log_store_writes_over_it(
    as_delta_has_it: SparkSession, s3: EmbeddedS3, proxy: Gate, bucket: str
) -> None:
    # The day on which this fails, ours has nothing left to do.
    table, _ = raced(as_delta_has_it, s3, proxy, bucket)
    assert numbers(table) == [1, 3]


@pytest.fixture
def write(conditional: SparkSession, bucket: str) -> Callable[..., str]:
    """Writes lines as a version of a log; returns the exception's class where one is raised."""
    jvm: Any = conditional._jvm
    context: Any = conditional.sparkContext
    configuration = context._jsc.hadoopConfiguration()
    store = jvm.s3compactor.ConditionalLogStore(configuration)

    def write(name: str, *lines: str, overwrite: bool = False) -> str:
        path = jvm.org.apache.hadoop.fs.Path(f"s3a://{bucket}/t/{_LOG}{name}")
        given = jvm.java.util.ArrayList()
        for line in lines:
            given.add(line)
        try:
            store.write(path, given.iterator(), overwrite, configuration)
        except Py4JJavaError as error:
            return str(error.java_exception.getClass().getSimpleName())
        return ""

    return write


def test_a_version_is_written_once_and_found_again_by_its_writer(
    write: Callable[..., str], s3: EmbeddedS3, bucket: str
) -> None:
    def stored(name: str) -> bytes:
        found = s3.client("s3").get_object(Bucket=bucket, Key=f"t/{_LOG}{name}")["Body"].read()
        return bytes(found)

    assert write("1.json", "a", "é") == ""
    assert stored("1.json") == "a\né\n".encode()
    # As when the answer to a PUT is lost, and it is sent again.
    assert write("1.json", "a", "é") == ""
    assert write("1.json", "b") == "FileAlreadyExistsException"
    assert stored("1.json") == "a\né\n".encode()
    # Delta's hints are replaced.
    assert write("_last_checkpoint", "1") == write("_last_checkpoint", "2", overwrite=True) == ""
    assert stored("_last_checkpoint") == b"2\n"


def test_a_log_store_that_spark_was_given_stands(tables: SparkSession) -> None:
    class Told:
        """A context with a log store of its owner's."""

        sparkContext = None  # noqa: N815 - Spark's name

        def getConf(self) -> Any:  # noqa: N802 - Spark's name
            return self

        def getAll(self) -> list[tuple[str, str]]:  # noqa: N802 - Spark's name
            return [("spark.delta.logStore.s3a.impl", "io.delta.storage.S3DynamoDBLogStore")]

    told: Any = Told()
    told.sparkContext = told
    told._jvm = tables._jvm
    use_conditional_commits(told)
    assert one_driver_only(told) == ""


def test_a_rewrite_that_was_written_over_is_not_rolled_back_over_the_others_rows(
    tables: SparkSession, tmp_path: Path
) -> None:
    table = Maintained(DELTA, tables, tmp_path)
    table.make()
    table.fill("2026-11-01")
    before = table.read()
    there, elsewhere = Path(tmp_path, table.name), Path(tmp_path, "elsewhere")
    shutil.copytree(there, elsewhere)
    rows = pyarrow.table({"id": [10_000], "day": ["2026-11-01"], "v": ["theirs"]})
    deltalake.write_deltalake(elsewhere, rows, mode="append")

    class WrittenOver(DeltaTable):
        """Right behind its commit a driver stores its own at the same place, by a plain PUT."""

        def rows_of(self, partition: Any, rewritten: Rewritten) -> Any:
            commit = Path("_delta_log", f"{int(rewritten.after):020d}.json")
            shutil.copytree(elsewhere, there, dirs_exist_ok=True)
            (there / commit.parent / f".{commit.name}.crc").unlink()
            return super().rows_of(partition, rewritten)

    told = table.maintain(table.order(day("2026-11-01")), table.engine(WrittenOver))
    assert told.status == "failed"
    (partition,) = told.partitions
    assert "another driver's now" in partition.why
    assert ids(table.read()) == sorted([*ids(before), 10_000])
