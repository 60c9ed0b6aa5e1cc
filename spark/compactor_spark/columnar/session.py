"""How Spark reads and writes columns here: the same on every release and every machine."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import SparkSession

#: Where defaults differ between Spark 3.5 and 4.1, or depend on the cluster, they are set.
SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.ansi.enabled": "true",
        # Names that differ in case alone are refused by us, not joined by Spark.
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.parquet.mergeSchema": "false",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
        # INT96, the default, is deprecated and known to few readers as what it is.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        "spark.sql.legacy.parquet.nanosAsLong": "false",
        # Parsing only the columns that are asked for would miss what is wrong in the others.
        "spark.sql.optimizer.enableJsonExpressionOptimization": "false",
        "spark.sql.optimizer.enableCsvExpressionOptimization": "false",
        "spark.sql.csv.parser.columnPruning.enabled": "false",
        # One output is one object.
        "spark.sql.files.maxRecordsPerFile": "0",
    }
)


def columnar_session(session: SparkSession) -> SparkSession:
    """A session of its own over the same Spark, with :data:`SETTINGS`."""
    own = session.newSession()
    for name, value in SETTINGS.items():
        own.conf.set(name, value)
    return own


def quoted(name: str) -> str:
    """A column's name as an expression that means this very column, dots and all."""
    return "`" + name.replace("`", "``") + "`"
