"""One embedded S3 and, where executors must be distinguished, one small cluster for all tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from compactor_cli.machine.spark_submit import SparkHere, SparkMissing, find_spark
from compactor_local.embedded import EmbeddedS3, embedded_s3
from tests.spark.cluster import Cluster, cluster
from tests.spark.gate import Gate, gate
from tests.spark.job import Job
from tests.spark.session import session_here
from tests.support.embedded import find_embedded
from tests.support.table_engines import Unavailable, engine_settings, table_session

LOCAL = "local[2,4]"


@pytest.fixture(autouse=True)
def own_environment() -> Iterator[None]:
    """What runs in this process instead of an executor's leaves no environment behind."""
    before = dict(os.environ)
    yield
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(scope="session")
def spark_here() -> SparkHere:
    """The Spark and the Java of this machine; whatever needs them is skipped without."""
    try:
        return find_spark()
    except SparkMissing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark_session(
    s3: EmbeddedS3, spark_here: SparkHere, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    """Spark in this process, with workers that find the embedded S3."""
    with session_here(s3, tmp_path_factory.mktemp("spark")) as running:
        yield running


@pytest.fixture
def tables(spark_session: SparkSession, tmp_path: Path) -> SparkSession:
    """A session with empty catalogs of Iceberg and Delta."""
    try:
        engine_settings()
    except Unavailable as reason:
        pytest.skip(f"no jars of Iceberg and Delta: {reason}")
    return table_session(spark_session, tmp_path)


@pytest.fixture(scope="session")
def s3() -> Iterator[EmbeddedS3]:
    with embedded_s3() as running:
        yield running


@pytest.fixture
def proxy(s3: EmbeddedS3) -> Iterator[Gate]:
    """Between the job and the S3."""
    with gate(s3.endpoint_url) as running:
        yield running


@pytest.fixture(scope="session")
def two_executors(
    spark_here: SparkHere, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster of two executors with one core each."""
    directory: Path = tmp_path_factory.mktemp("cluster")
    with cluster(directory, hosts=("127.0.0.2", "127.0.0.3")) as running:
        yield running


@pytest.fixture
def new_job(
    s3: EmbeddedS3, spark_here: SparkHere, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Job]:
    """Makes jobs; this process finds the embedded S3, too."""
    find_embedded(s3, monkeypatch)

    def make(master: str = LOCAL, **given: object) -> Job:
        return Job(s3, master, given=dict(given))

    return make
