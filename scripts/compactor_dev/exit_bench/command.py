"""Each format in turn: read, maintained beside a writer, read again, and counted."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog.sql import SqlCatalog

from compactor.settings.tables import parse_table
from compactor_cli.console import print_error, print_table
from compactor_cli.installed import spark_script
from compactor_cli.local.definition import REGION
from compactor_cli.local.embedded import EmbeddedS3, embedded_s3
from compactor_cli.local.spark_jars import table_packages
from compactor_cli.local.spark_submit import find_spark, local_command, local_environment

_BUCKET = "exit-bench"
_TITLE = "{files:,} files of {rows:,} rows in 4 partitions, a writer appending all the while"
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


class Read(NamedTuple):
    """What a reader that is not Spark finds."""

    rows: int
    distinct: int
    total: int
    files: int
    seconds: float


def main(argv: Sequence[str] | None = None) -> int:
    """Measure both formats; 1 when a row was lost or doubled, or a run failed."""
    parser = argparse.ArgumentParser(prog="make exit-bench", description=__doc__)
    parser.add_argument("--files", type=int, nargs="+", default=[2_000])
    parser.add_argument("--rows", type=int, default=500, help="in each file (%(default)s)")
    parser.add_argument(
        "--turns", type=int, default=3, help="of each scan; the median counts (%(default)s)"
    )
    parser.add_argument("--format", nargs="+", default=["iceberg", "delta"])
    args = parser.parse_args(argv)
    sound = True
    for files in args.files:
        lines = []
        for kind in args.format:
            with tempfile.TemporaryDirectory() as directory, embedded_s3() as server:
                server.create_bucket(_BUCKET)
                line, fine = _measured(server, kind, directory, files, args)
            lines.append(line)
            sound &= fine
        print_table(_TITLE.format(files=files, rows=args.rows), list(_HEADS), lines)
    return int(not sound)


def _measured(
    server: EmbeddedS3, kind: str, directory: str, files: int, args: argparse.Namespace
) -> tuple[list[str], bool]:
    if kind == "iceberg":
        catalog = f"sqlite:///{directory}/catalog.db"
        address = f"sql:{catalog}#lake.t"
        read = _timed(lambda: _iceberg(server, catalog), args.turns)
    else:
        address = f"delta:s3://{_BUCKET}/t/"
        read = _timed(lambda: _delta(server), args.turns)
    go = Path(directory, "go")
    job = _started(server, address, go, (files, args.rows, args.turns))
    try:
        made = _next(job)
        before = read()
        go.touch()
        done = _next(job)
        after = read()
    finally:
        job.kill()
        job.wait()
    if done["failures"] or done["cause"]:
        print_error(f"{kind}: {done['cause']} {done['failures'][:3]}")
    gave_way = sum(one[0] == "gave way" for one in done["partitions"])
    lost = made["rows"] + done["appended"] - after.distinct
    doubled = after.rows - after.distinct
    same = after.total == made["sum"] + done["appended_sum"]
    line = [
        kind,
        f"{before.files:,}",
        f"{after.files:,}",
        f"{done['seconds']:.0f}",
        *(f"{one['scan_seconds']:.1f}" for one in (made, done)),
        *(f"{one.seconds:.1f}" for one in (before, after)),
        *(str(one) for one in (done["commits"], len(done["failures"]), gave_way, lost, doubled)),
    ]
    return line, done["status"] == "done" and same and not lost and not doubled


def _started(
    server: EmbeddedS3, address: str, go: Path, size: tuple[int, int, int]
) -> subprocess.Popen[str]:
    spark = find_spark()
    environment = {name: value for name, value in server.environment.items() if value}
    environment |= table_packages([parse_table(address)])
    script = str(spark_script("measure_maintenance.py"))
    state = f"s3://{_BUCKET}/state/"
    words = ["spark-submit", "--conf", "spark.driver.memory=3g", script]
    words += ["--table", address, "--state", state, "--go", str(go)]
    words += ["--files", str(size[0]), "--rows", str(size[1]), "--turns", str(size[2])]
    return subprocess.Popen(
        local_command(words, spark, environment),
        env=local_environment(environment, spark),
        stdout=subprocess.PIPE,
        text=True,
    )


def _next(job: subprocess.Popen[str]) -> dict[str, Any]:
    """What the job tells next; all else that it prints, its errors among it, is shown."""
    assert job.stdout is not None  # noqa: S101 - it was asked for
    for line in job.stdout:
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
        sys.stderr.write(line)
    raise SystemExit("Spark has ended; what it printed is above")


def _timed(read: Callable[[], tuple[pa.Table, int]], turns: int) -> Callable[[], Read]:
    """Read all ids, and let DuckDB count them; the median of the seconds."""

    def measured() -> Read:
        read_so = [_turn(read) for _ in range(max(1, turns))]
        return read_so[-1]._replace(seconds=statistics.median(one.seconds for one in read_so))

    return measured


def _turn(read: Callable[[], tuple[pa.Table, int]]) -> Read:
    began = time.monotonic()
    table, files = read()
    with duckdb.connect() as connection:
        connection.register("t", table)
        counts = "SELECT count(*), count(DISTINCT id), sum(id) FROM t"
        rows, distinct, total = connection.execute(counts).fetchone() or (0, 0, 0)
    return Read(int(rows), int(distinct), int(total), files, time.monotonic() - began)


def _iceberg(server: EmbeddedS3, catalog: str) -> tuple[pa.Table, int]:
    given = _access(server)
    options = {f"s3.{name}": value for name, value in given.items()}
    table = SqlCatalog("compactor", uri=catalog, **options).load_table("lake.t")
    scan = table.scan(selected_fields=("id",))
    return scan.to_arrow(), sum(1 for _ in scan.plan_files())


def _delta(server: EmbeddedS3) -> tuple[pa.Table, int]:
    given = _access(server)
    options = {f"aws_{name.replace('-', '_')}": value for name, value in given.items()}
    table = DeltaTable(f"s3://{_BUCKET}/t/", storage_options={**options, "aws_allow_http": "true"})
    rows = pa.table(QueryBuilder().register("t", table).execute("SELECT id FROM t"))
    return rows, len(table.file_uris())


def _access(server: EmbeddedS3) -> Mapping[str, str]:
    given = server.environment
    return {
        "endpoint": server.endpoint_url,
        "region": REGION,
        "access-key-id": str(given["AWS_ACCESS_KEY_ID"]),
        "secret-access-key": str(given["AWS_SECRET_ACCESS_KEY"]),
    }
