"""How much faster one query is after a merge: many small Parquet objects against few large ones.

    python spark/compactor_spark/measure_scan.py --bucket B --objects 2000 --rows 1000

Writes the objects to ``s3://B/small/``, merges them to ``s3://B/merged/`` as a run with
``format: "parquet"`` does, and then scans both in one session, in turns. A scan reads every object
through the store into a directory and lets Spark count the rows and add up one column; both parts
are measured. Prints one JSON object. The endpoint and the credentials come from the environment.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from compactor.clock import NoDeadline, SystemClock
from compactor.model import Partition
from compactor.outputs.group import draft_of
from compactor.runs.given import PartitionRun
from compactor.runs.progress import PartitionProgress
from compactor.runs.window import Window
from compactor.settings.settings import Settings
from compactor.stores.s3 import S3Store, make_client
from compactor_spark.columnar.context import ColumnarContext
from compactor_spark.columnar.groups import compact_columnar
from compactor_spark.tasks import OpenStore

_TURNS = 5
_COLUMNS = (
    "id",
    "id % 1000 as account",
    "cast(id * 7 % 100000 as decimal(12,2)) / 100 as amount",
    "uuid() as token",
    "timestamp_seconds(1760000000 + id) as moment",
)


@dataclass(frozen=True, slots=True)
class Scan:
    """What one scan found, and its seconds: fetching the objects, and the query over them."""

    objects: int
    bytes: int
    rows: int
    total: int
    fetch_seconds: float
    query_seconds: float


def main() -> None:
    """Write, merge, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bucket", required=True, help="an empty bucket")
    parser.add_argument("--objects", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=1_000, help="in each object")
    args = parser.parse_args()
    session = SparkSession.Builder().master("local[2]").appName("parquet_scan").getOrCreate()
    store = S3Store(make_client())
    write(session, store, args.bucket, objects=args.objects, rows=args.rows)
    merged = merge(session, store, args.bucket)
    report = {"merge": merged, **measure(session, store, args.bucket)}
    sys.stdout.write(json.dumps(report, indent=1) + "\n")
    session.stop()


def write(session: SparkSession, store: S3Store, bucket: str, *, objects: int, rows: int) -> None:
    """Store the small objects below ``small/``."""
    with tempfile.TemporaryDirectory() as directory:
        frame = session.range(0, objects * rows, 1, objects).selectExpr(*_COLUMNS)
        target = Path(directory) / "small"
        frame.write.parquet(target.as_uri())
        for path in sorted(target.glob("*.parquet")):
            store.put(bucket, f"small/{path.name}", path.read_bytes())


def merge(session: SparkSession, store: S3Store, bucket: str) -> dict[str, Any]:
    """Merge them below ``merged/``, in the order of writes of every run."""
    settings = Settings.from_input(
        {
            "s3_source_uri": f"s3://{bucket}/small/",
            "s3_destination_uri": f"s3://{bucket}/merged/",
            "format": "parquet",
            "settle_seconds": 0,
            "open_partition_seconds": 0,
        }
    )
    clock, deadline = SystemClock(), NoDeadline()
    run = PartitionRun(Partition(bucket, "small/", ""), settings, store, clock, deadline, "scan")
    context = ColumnarContext(
        settings, store, run.destination, run.run_id, OpenStore.of(settings, None)
    )
    started = time.monotonic()
    progress = PartitionProgress(run, run.log.load(), rebuild=False)
    for group in progress.windows.plan(Window()).groups:
        draft = draft_of(compact_columnar(session, group, context), run.run_id, clock.now())
        if draft is not None:
            progress.groups.commit(draft)
    totals = progress.state.totals(run.run_id)
    return {
        "objects_in": totals.sources,
        "objects_out": totals.outputs,
        "rows": totals.records,
        "seconds": round(time.monotonic() - started, 2),
    }


def measure(session: SparkSession, store: S3Store, bucket: str) -> dict[str, Any]:
    """Scan both in turns, after one turn that is not counted; medians of the seconds."""
    turns = [
        [scan(session, store, bucket, prefix) for prefix in ("small/", "merged/")]
        for _ in range(_TURNS + 1)
    ]
    report = {}
    for number, name in enumerate(("before", "after")):
        scans = [turn[number] for turn in turns[1:]]
        report[name] = {
            "objects": scans[0].objects,
            "bytes": scans[0].bytes,
            "rows": scans[0].rows,
            "total": scans[0].total,
            "fetch_seconds": round(statistics.median(s.fetch_seconds for s in scans), 3),
            "query_seconds": round(statistics.median(s.query_seconds for s in scans), 3),
        }
    return report


def scan(session: SparkSession, store: S3Store, bucket: str, prefix: str) -> Scan:
    """Read every object below a prefix, and one column of all of them."""
    started = time.monotonic()
    directory = Path(tempfile.mkdtemp())
    try:
        pages = store.list_objects(bucket, prefix)
        sources = [one for page in pages for one in page]
        for number, body in enumerate(store.read_sources(sources)):
            with (directory / f"{number}.parquet").open("wb") as stream:
                stream.writelines(body.chunks() if body.chunks else [body.content or b""])
        fetched = time.monotonic()
        found = session.read.parquet(directory.as_uri()).selectExpr("count(*)", "sum(account)")
        rows, total = found.collect()[0]
        ended = time.monotonic()
    finally:
        shutil.rmtree(directory)
    size = sum(source.size for source in sources)
    return Scan(len(sources), size, rows, total, fetched - started, ended - fetched)


if __name__ == "__main__":
    main()
