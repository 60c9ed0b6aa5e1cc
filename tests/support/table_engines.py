"""Spark with the real Iceberg and the real Delta, for all tests of tables in one process.

A process has one Spark: the settings that count when it starts are :func:`engine_settings`, and
each test takes a session of its own, with catalogs of its own, over it: :func:`table_session`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from compactor_spark.columnar.session import columnar_session
from tests.support import server_builds
from tests.support.server_builds import Unavailable

__all__ = [
    "ICEBERG",
    "Unavailable",
    "engine_settings",
    "known_session",
    "small_session",
    "table_session",
]

#: The catalog of Iceberg's tables.
ICEBERG = "lake"
_EXTENSIONS = (
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "io.delta.sql.DeltaSparkSessionExtension",
)
# A table of the tests has a few hundred rows: compiling code for each statement, and dividing it,
# takes nearly all of its time.
_SMALL: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.stats.collect": "false",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    # By default VACUUM lists with 10,000 tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}


def engine_settings() -> dict[str, str]:
    """What Spark must be started with; also right for tests without tables.

    Raises:
        Unavailable: the jars cannot be had on this machine; says why.
    """
    return {
        "spark.jars": ",".join(str(jar) for jar in server_builds.table_jars()),
        "spark.sql.extensions": ",".join(_EXTENSIONS),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def small_session(session: SparkSession) -> SparkSession:
    """A session of its own for tables of a few rows."""
    own = columnar_session(session)
    for name, value in _SMALL.items():
        own.conf.set(name, value)
    return own


def table_session(session: SparkSession, directory: Path) -> SparkSession:
    """A session whose tables of Iceberg are ``lake.NAMESPACE.NAME``, and which knows Delta.

    Args:
        session: started with :func:`engine_settings`.
        directory: where the catalog, a SQLite file that pyiceberg's SqlCatalog reads as well, and
            the tables of Iceberg lie; empty.
    """
    own = known_session(session, directory)
    own.sql(f"CREATE NAMESPACE {ICEBERG}.db")
    return own


def known_session(session: SparkSession, directory: Path) -> SparkSession:
    """The same where such a catalog is there already."""
    own = small_session(session)
    catalog = f"spark.sql.catalog.{ICEBERG}"
    settings: Mapping[str, str] = {
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{directory}{os.sep}catalog.db",
        f"{catalog}.jdbc.schema-version": "V1",
        f"{catalog}.warehouse": str(directory / "warehouse"),
        f"{catalog}.cache-enabled": "false",
    }
    for name, value in settings.items():
        own.conf.set(name, value)
    return own
