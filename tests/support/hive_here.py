"""A Spark process with Hive's own catalog, as on a cluster; it reads one order per line.

    python hive_here.py ENDPOINT JARS      in the directory for its catalog

An order is ``{"sql": [statements], "hive": [statements], "empty_splits": bool}``: statements for
Spark, statements for Hive, which supports more on partitions, and whether Spark reads files that
seem empty. The answer has the rows of Spark's last statement, or ``error``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession


def session(endpoint: str, jars: str) -> SparkSession:
    """Return a Spark session whose ``s3://`` is this S3."""
    builder = SparkSession.Builder().master("local[2]").enableHiveSupport()
    s3a = "spark.hadoop.fs.s3a"
    for name, value in {
        # Hive's classes have another loader; with spark.jars each would load its own S3 classes.
        "spark.driver.extraClassPath": jars,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": str(Path.cwd() / "warehouse"),
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        f"{s3a}.endpoint": endpoint,
        f"{s3a}.endpoint.region": "us-east-1",
        f"{s3a}.path.style.access": "true",
        f"{s3a}.access.key": "test",
        f"{s3a}.secret.key": "test",
        f"{s3a}.aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    """Answer orders until standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = session(*sys.argv[1:])
    java: Any = spark._jsparkSession
    hive = java.sharedState().externalCatalog().unwrapped().client()
    system: Any = spark._jvm.java.lang.System  # type: ignore[union-attr] # it runs
    for line in sys.stdin:
        order = json.loads(line)
        try:
            ignored = "false" if order["empty_splits"] else "true"
            java.sparkContext().conf().set("spark.hadoopRDD.ignoreEmptySplits", ignored)
            rows: list[list[Any]] = []
            # Spark only passes on Hive's own statements in its tests.
            system.setProperty("spark.testing", "true")
            for statement in order["hive"]:
                hive.runSqlHive(statement)
            system.clearProperty("spark.testing")
            for statement in order["sql"]:
                rows = [list(row) for row in spark.sql(statement).collect()]
            told: dict[str, Any] = {"rows": rows}
        except Exception as error:
            told = {"error": " ".join(str(error).split())[:600]}
        print(json.dumps(told), file=answers, flush=True)


if __name__ == "__main__":
    main()
