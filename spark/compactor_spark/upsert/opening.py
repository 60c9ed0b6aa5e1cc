"""Opens the table that a run's settings name, for the Spark of this job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import SparkSession

from compactor.errors import InvalidInput
from compactor.settings.settings import Settings
from compactor.settings.tables import DELTA
from compactor_spark.opening import session_settings, table_name, table_session
from compactor_spark.upsert.delta import DeltaTables
from compactor_spark.upsert.engines import Engine
from compactor_spark.upsert.iceberg import IcebergTables

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client


class OpenedTable(NamedTuple):
    """An engine, and the name of the table in it."""

    engine: Engine
    name: str


def start_settings(settings: Settings, given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that Spark must be started with for the table of a run.

    Empty if Spark does not write the table.

    Args:
        settings: of the run.
        given: spark-submit's settings.
    """
    address = settings.table_address
    if address is None or not settings.upsert_key:
        return {}
    return session_settings(address, given)


def open_table(session: SparkSession, settings: Settings, client: S3Client) -> OpenedTable:
    """Open the table in a separate session; the table is not accessed yet.

    Args:
        session: started with :func:`start_settings`.
        settings: of the run; they name a table with a key.
        client: its endpoint and region are used.

    Raises:
        InvalidInput: Spark lacks the jars or the extension for the table.
    """
    address = settings.table_address
    if address is None:
        raise InvalidInput("table", None, "the address of a table")
    own = table_session(session, address, client, _beside(settings), deletes=False)
    if address.kind == DELTA:
        return OpenedTable(DeltaTables(own), table_name(address))
    engine = IcebergTables(
        own, makes_namespaces=address.kind == "sql", keys_beside=address.kind == "glue"
    )
    return OpenedTable(engine, table_name(address))


def _beside(settings: Settings) -> str:
    """Return the warehouse for a catalog without a location of its own: outside the outputs."""
    destination = settings.destination
    return f"s3://{destination.bucket}/{destination.prefix.rstrip('/')}.table"
