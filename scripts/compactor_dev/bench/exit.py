"""Tables of small files, maintained by Spark while a writer appends: ``make bench ARGS="exit …"``.

Spark (``compactor_spark/measure_maintenance.py``) creates each table on a local S3 and maintains it
while a writer appends; before and after, another reader than Spark reads the table, and DuckDB
counts its rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog.sql import SqlCatalog

from compactor.settings.tables import parse_table
from compactor_cli.console import print_error, print_table
from compactor_cli.machine.installed import spark_script
from compactor_cli.machine.spark_jars import table_packages
from compactor_cli.machine.spark_submit import find_spark, local_command, local_environment
from compactor_dev.bench.measure import Spread
from compactor_local.definition import REGION
from compactor_local.embedded import EmbeddedS3, embedded_s3

_BUCKET = "exit-bench"
_HEADS = (
    "",
    "Files",
    "after",
    "Seconds",
    "Spark scan s",
    "after",
    "Other reader s",
    "after",
    "Appends",
    "failed",
    "Gave way",
    "Lost",
    "Doubled",
)
_Rows = Callable[[], tuple[pa.Table, int]]


class Read(NamedTuple):
    """The table as a reader other than Spark sees it."""

    rows: int
    distinct: int
    total: int
    files: int
    seconds: float


def options(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--files", type=int, default=2_000, help="number of files (%(default)s)")
    parser.add_argument("--rows", type=int, default=500, help="rows per file (%(default)s)")
    parser.add_argument(
        "--turns", type=int, default=3, help="repetitions of each scan (%(default)s)"
    )
    parser.add_argument("--format", nargs="+", default=["iceberg", "delta"])


def main(args: argparse.Namespace, directory: Path) -> int:
    """Measure; returns 1 if a row was lost or duplicated, or a run failed."""
    lines, sound = [], True
    for kind in args.format:
        with tempfile.TemporaryDirectory() as scratch, embedded_s3() as server:
            server.create_bucket(_BUCKET)
            line, fine = _measured(server, kind, Path(scratch), args)
        lines.append(line)
        sound &= fine
    title = f"{args.files:,} files of {args.rows:,} rows in 4 partitions, while a writer appends"
    print_table(title, _HEADS, lines)
    return int(not sound)


def _measured(
    server: EmbeddedS3, kind: str, scratch: Path, args: argparse.Namespace
) -> tuple[list[str], bool]:
    access = {
        "endpoint": server.endpoint_url,
        "region": REGION,
        "access-key-id": str(server.environment["AWS_ACCESS_KEY_ID"]),
        "secret-access-key": str(server.environment["AWS_SECRET_ACCESS_KEY"]),
    }
    catalog = f"sqlite:///{scratch}/catalog.db"
    if kind == "iceberg":
        address, read = f"sql:{catalog}#lake.t", lambda: _iceberg(access, catalog)
    else:
        address, read = f"delta:s3://{_BUCKET}/t/", lambda: _delta(access)
    job = _started(server, address, scratch / "go", args)
    try:
        made = _next(job)
        before = _timed(read, args.turns)
        (scratch / "go").touch()
        done = _next(job)
        after = _timed(read, args.turns)
    finally:
        job.kill()
        job.wait()
    if done["failures"] or done["cause"]:
        print_error(f"{kind}: {done['cause']} {done['failures'][:3]}")
    gave_way = sum(one[0] == "gave way" for one in done["partitions"])
    lost = made["rows"] + done["appended"] - after.distinct
    doubled = after.rows - after.distinct
    same = after.total == made["sum"] + done["appended_sum"]
    line = [kind, f"{before.files:,}", f"{after.files:,}", f"{done['seconds']:.0f}"]
    line += [f"{one['scan_seconds']:.1f}" for one in (made, done)]
    line += [f"{one.seconds:.1f}" for one in (before, after)]
    counts = (done["commits"], len(done["failures"]), gave_way, lost, doubled)
    return [*line, *map(str, counts)], done[
        "status"
    ] == "done" and same and not lost and not doubled


def _started(
    server: EmbeddedS3, address: str, go: Path, args: argparse.Namespace
) -> subprocess.Popen[str]:
    spark = find_spark()
    environment = {name: value for name, value in server.environment.items() if value}
    environment |= table_packages([parse_table(address)])
    words = ["spark-submit", "--conf", "spark.driver.memory=3g"]
    words += [str(spark_script("measure_maintenance.py")), "--table", address, "--go", str(go)]
    words += ["--state", f"s3://{_BUCKET}/state/", "--files", str(args.files)]
    words += ["--rows", str(args.rows), "--turns", str(args.turns)]
    return subprocess.Popen(
        local_command(words, spark, environment),
        env=local_environment(environment, spark),
        stdout=subprocess.PIPE,
        text=True,
    )


def _next(job: subprocess.Popen[str]) -> dict[str, Any]:
    """Return the job's next report; its other output is shown."""
    assert job.stdout is not None  # noqa: S101 - it was asked for
    for line in job.stdout:
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
        sys.stderr.write(line)
    raise SystemExit("Spark has exited; see its output above")


def _timed(read: _Rows, turns: int) -> Read:
    """Read all ids and count them with DuckDB; returns the median of the seconds."""
    found = [_turn(read) for _ in range(max(1, turns))]
    return found[-1]._replace(seconds=Spread.of(one.seconds for one in found).median)


def _turn(read: _Rows) -> Read:
    began = time.monotonic()
    table, files = read()
    with duckdb.connect() as connection:
        connection.register("t", table)
        counts = "SELECT count(*), count(DISTINCT id), sum(id) FROM t"
        rows, distinct, total = connection.execute(counts).fetchone() or (0, 0, 0)
    return Read(int(rows), int(distinct), int(total), files, time.monotonic() - began)


def _iceberg(access: Mapping[str, str], catalog: str) -> tuple[pa.Table, int]:
    given = {f"s3.{name}": value for name, value in access.items()}
    table = SqlCatalog("compactor", uri=catalog, **given).load_table("lake.t")
    scan = table.scan(selected_fields=("id",))
    return scan.to_arrow(), sum(1 for _ in scan.plan_files())


def _delta(access: Mapping[str, str]) -> tuple[pa.Table, int]:
    given = {f"aws_{name.replace('-', '_')}": value for name, value in access.items()}
    table = DeltaTable(f"s3://{_BUCKET}/t/", storage_options={**given, "aws_allow_http": "true"})
    rows = pa.table(QueryBuilder().register("t", table).execute("SELECT id FROM t"))
    return rows, len(table.file_uris())
