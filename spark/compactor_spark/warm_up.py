"""Script that starts Spark before the first job, and makes it load what every job needs."""

from __future__ import annotations

from pyspark.sql import SparkSession


def main() -> None:
    """Start Spark, run a query and stop the session; the JVM stays with the process."""
    session = SparkSession.builder.getOrCreate()
    session.range(1).selectExpr("sum(id)").collect()
    session.stop()


if __name__ == "__main__":
    main()
