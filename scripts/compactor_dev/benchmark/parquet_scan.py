"""``python -m compactor_dev.benchmark.parquet_scan``: a query before and after a merge of Parquet.

Starts an embedded S3 and lets :mod:`spark.measure_scan` write, merge and measure there. What it
prints after the merge must be the same rows and the same total as before.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

from compactor_cli.console import print_error, print_line
from compactor_cli.installed import spark_script
from compactor_cli.local.child import python_environment
from compactor_cli.local.embedded import EmbeddedS3, embedded_s3
from compactor_cli.local.spark_submit import SparkMissing, find_spark
from compactor_dev import IMPORT_ROOTS

_BUCKET = "parquet-scan"


def main() -> int:
    """Run it; 1 when the rows differ or something is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--objects", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=1_000, help="in each object")
    args = parser.parse_args()
    try:
        find_spark()
    except SparkMissing as error:
        print_error(str(error))
        return 1
    with embedded_s3() as s3:
        s3.create_bucket(_BUCKET)
        report = _measured(s3, ["--objects", str(args.objects), "--rows", str(args.rows)])
    print_line(json.dumps(report, indent=1))
    before, after = report["before"], report["after"]
    same = all(before[name] == after[name] for name in ("rows", "total"))
    if not same:
        print_error("the rows differ")
    return 0 if same else 1


def _measured(s3: EmbeddedS3, arguments: list[str]) -> dict[str, dict[str, float]]:
    environment = python_environment(os.environ, *IMPORT_ROOTS)
    environment |= {name: value for name, value in s3.environment.items() if value}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    script = str(spark_script("measure_scan.py"))
    done = subprocess.run(
        [sys.executable, script, "--bucket", _BUCKET, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, dict[str, float]] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    sys.exit(main())
