"""Starts Spark, and lets it load what every job needs, before there is one: a script."""

from __future__ import annotations

from pyspark.sql import SparkSession


def main() -> None:
    """Do so; the Java stays with the process."""
    session = SparkSession.builder.getOrCreate()
    session.range(1).selectExpr("sum(id)").collect()
    session.stop()


if __name__ == "__main__":
    main()
