"""Session settings that make Spark read and write columns alike on every release and machine."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import SparkSession

#: Settings whose defaults differ between Spark 3.5 and 4.1, depend on the cluster, or do not suit.
SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.ansi.enabled": "true",
        # Our own code rejects names that differ only in case; Spark must not merge them.
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.parquet.mergeSchema": "false",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
        # INT96, the default, is deprecated, and few readers recognise it as a timestamp.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        "spark.sql.legacy.parquet.nanosAsLong": "false",
    }
)


def pinned_session(session: SparkSession) -> SparkSession:
    """Return a new session of the same Spark application, with :data:`SETTINGS`."""
    own = session.newSession()
    for name, value in SETTINGS.items():
        own.conf.set(name, value)
    return own
