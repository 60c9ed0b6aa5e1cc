"""A Spark session in the process of the tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from compactor_dev import IMPORT_ROOTS
from compactor_local.embedded import EmbeddedS3
from tests.support.table_engines import Unavailable, engine_settings


@contextmanager
def session_here(s3: EmbeddedS3, directory: Path) -> Iterator[SparkSession]:
    """A session in this process; its workers find the embedded S3 and this repository."""
    path = os.pathsep.join(IMPORT_ROOTS)
    wanted = {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    wanted |= {name: value for name, value in s3.environment.items() if value}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    builder = SparkSession.Builder().master("local[2,4]").appName("tests")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(directory),
        "spark.local.dir": str(directory),
        **_s3a(s3),
        **_engines(),
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
    """The embedded S3 for Hadoop's S3A, whose jars come with those of tables."""
    return {
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
