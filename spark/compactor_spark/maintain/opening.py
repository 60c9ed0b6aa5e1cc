"""Opens the table that an order names, for maintenance by Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from compactor.settings.tables import DELTA, TableAddress
from compactor.settings.uris import S3Uri
from compactor_spark.maintain.delta import DeltaTable
from compactor_spark.maintain.iceberg import IcebergTable
from compactor_spark.opening import session_settings, table_name, table_session
from compactor_tables.table_engine import Tables

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client


def start_settings(tables: Iterable[TableAddress], given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that Spark must be started with for these tables.

    Args:
        tables: of the orders of a job.
        given: spark-submit's settings.
    """
    said: dict[str, str] = {}
    for one in tables:
        said |= session_settings(one, {**given, **said})
    return said


def open_maintained(
    session: SparkSession, address: TableAddress, client: S3Client, state: S3Uri
) -> Tables:
    """Open the table in a separate session.

    Args:
        session: started with :func:`start_settings`.
        address: of the table.
        client: its endpoint and region are used.
        state: location of the run's documents. Catalogs require a warehouse, which is set below
            it, but no table is created there.

    Raises:
        InvalidInput: Spark lacks the jars or the extension for the table, or it does not exist.
    """
    own = table_session(session, address, client, f"{state.uri.rstrip('/')}/warehouse")
    if address.kind == DELTA:
        return DeltaTable(own, table_name(address))
    return IcebergTable(own, table_name(address))
