"""Spark with the real Iceberg and Delta, shared by all tests of tables in one process.

A process has one Spark, started with :func:`engine_settings`. Each test uses its own session with
its own catalogs: :func:`table_session`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from compactor_spark.session import pinned_session
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

#: The name of the Iceberg catalog.
ICEBERG = "lake"
_EXTENSIONS = (
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "io.delta.sql.DeltaSparkSessionExtension",
)
# Tables of the tests have a few hundred rows: generating code for each statement and splitting it
# into tasks would take nearly all of the time.
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
    """Return the settings that Spark must be started with; they also suit tests without tables.

    Raises:
        Unavailable: the jars are not available on this machine; gives the reason.
    """
    return {
        "spark.jars": ",".join(str(jar) for jar in server_builds.table_jars()),
        "spark.sql.extensions": ",".join(_EXTENSIONS),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }


def small_session(session: SparkSession) -> SparkSession:
    """Return a new session for tables of a few rows."""
    own = pinned_session(session)
    for name, value in _SMALL.items():
        own.conf.set(name, value)
    return own


def table_session(session: SparkSession, directory: Path) -> SparkSession:
    """Return a session with Delta, and with Iceberg tables named ``lake.NAMESPACE.NAME``.

    Args:
        session: a session that was started with :func:`engine_settings`.
        directory: an empty directory for the Iceberg tables and the catalog, a SQLite file that
            pyiceberg's SqlCatalog can read as well.
    """
    own = known_session(session, directory)
    own.sql(f"CREATE NAMESPACE {ICEBERG}.db")
    return own


def known_session(session: SparkSession, directory: Path) -> SparkSession:
    """Return the same for a directory that already has such a catalog."""
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
