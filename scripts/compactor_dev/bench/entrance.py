"""Small objects into one table, exactly once under faults: ``make bench ARGS="entrance …"``.

Parquet objects arrive at a steady rate below four prefixes; a fifth of the events is delivered
twice, and a quarter of the batches or runs is killed. Compares the commonly described method, a
more careful form of it, and this project; DuckDB counts the final rows of the table.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog import Catalog

from compactor.orchestration.in_process import run_in_process
from compactor.settings.settings import Settings
from compactor_cli.commands.store import open_store
from compactor_cli.console import print_error, print_table
from compactor_dev.bench.sketch import Sketch
from compactor_local.embedded import EmbeddedS3, embedded_s3, in_environment
from compactor_local.executions import FAILED, Executions
from compactor_local.ingest import Ingest, Stream
from compactor_local.model import EngineError
from compactor_local.table_reader import TableReader

_BUCKET, _RAW = "lake", "raw/"
_DATABASE, _TABLE = "lake", "trips"
_NAME = f"{_DATABASE}.{_TABLE}"
_WRITERS = ("a", "b", "c", "d")
_TWICE_SHARE, _KILL_SHARE = 0.2, 0.25
_OBJECTS_A_SECOND = 20.0
# Covers a run from its first request to the commit of the table.
_KILLED_AFTER_SECONDS = (0.5, 5.0)
_SWEEP_SECONDS, _LOOK_SECONDS = 1.0, 0.5
_SCHEMA = pa.schema(
    [
        ("trip", pa.int64()),
        ("pickup", pa.timestamp("us")),
        ("flag", pa.string()),
        ("distance", pa.float64()),
        ("total_amount", pa.float64()),
    ]
)


class Method(NamedTuple):
    """A method of ingestion: fills the table; returns the numbers of conflicts and kills."""

    name: str
    fill: Callable[[EmbeddedS3, Sequence[bytes], Catalog], tuple[int, int]]


def options(parser: argparse.ArgumentParser) -> None:
    """Add this scenario's options."""
    parser.add_argument("--objects", type=int, default=200, help="number of objects (%(default)s)")
    parser.add_argument("--rows", type=int, default=500, help="rows per object (%(default)s)")
    parser.add_argument(
        "--ways", default=",".join(one.name for one in _WAYS), help="comma-separated (%(default)s)"
    )


def main(args: argparse.Namespace, directory: Path) -> int:
    """Measure all methods; returns 1 if ours duplicated or lost a row."""
    bodies = list(_objects(args.objects, args.rows))
    names = args.ways.split(",")
    lines, sound = [], True
    for way in _WAYS:
        if way.name in names:
            line, doubled_or_lost = _in_a_lake(way, bodies, args.rows)
            lines.append(line)
            sound &= way.name != "ours" or not doubled_or_lost
    heads = ["", "Rows", "Doubled", "Lost", "Files", "Snapshots", "Conflicts", "Killed", "Seconds"]
    title = f"{args.objects} Parquet objects of {args.rows} rows, {len(_WRITERS)} writers"
    print_table(title, heads, lines)
    return int(not sound)


def _objects(count: int, rows: int) -> Iterator[bytes]:
    drawn = random.Random(1)
    for number in range(count):
        trips = range(number * rows, (number + 1) * rows)
        columns = [
            list(trips),
            [1_767_225_600_000_000 + trip * 7_000_000 for trip in trips],
            [drawn.choice("NY") for _ in trips],
            [drawn.randrange(1, 3_000) / 100 for _ in trips],
            [drawn.randrange(300, 10_500) / 100 for _ in trips],
        ]
        body = io.BytesIO()
        arrays = [pa.array(one, kind.type) for one, kind in zip(columns, _SCHEMA, strict=True)]
        pq.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA), body)
        yield body.getvalue()


def _in_a_lake(way: Method, bodies: Sequence[bytes], rows: int) -> tuple[list[str], int]:
    print_error(f"entrance: {way.name}")
    with embedded_s3(lake=True) as server, in_environment(server.environment):
        server.create_bucket(_BUCKET)
        reader = TableReader(server, _DATABASE, _TABLE, ("trip", "total_amount"))
        began = time.monotonic()
        conflicts, killed = way.fill(server, bodies, reader.catalog)
        seconds = time.monotonic() - began
        counted = reader.counted()
    doubled, lost = counted.rows - counted.distinct, len(bodies) * rows - counted.distinct
    figures = (
        counted.rows,
        doubled,
        lost,
        counted.data_files,
        counted.snapshots,
        conflicts,
        killed,
    )
    return [way.name, *(f"{one:,}" for one in figures), f"{seconds:.0f}"], doubled + lost


def _written(put: Callable[[str, bytes], None], bodies: Sequence[bytes]) -> threading.Event:
    """Write the objects at a steady rate in a thread; returns an event set at the end."""
    done = threading.Event()

    def write() -> None:
        began = time.monotonic()
        for number, body in enumerate(bodies):
            time.sleep(max(0.0, began + number / _OBJECTS_A_SECOND - time.monotonic()))
            put(f"{_RAW}{_WRITERS[number % len(_WRITERS)]}/{number:05}.parquet", body)
        done.set()

    threading.Thread(target=write, daemon=True).start()
    return done


def _as_described(
    server: EmbeddedS3, bodies: Sequence[bytes], catalog: Catalog, *, careful: bool
) -> tuple[int, int]:
    s3, twice = boto3.client("s3"), random.Random(3)
    # The sketch retries by itself.
    properties = {"commit.retry.num-retries": "0"}
    catalog.create_table(_NAME, _SCHEMA, f"s3://{_BUCKET}/tables/{_NAME}", properties=properties)
    clients = (boto3.client("dynamodb"), s3)
    sketch = Sketch(clients, _BUCKET, catalog, _NAME, kill_share=_KILL_SHARE, careful=careful)

    def put(key: str, body: bytes) -> None:
        s3.put_object(Bucket=_BUCKET, Key=key, Body=body)
        for _ in range(1 + (twice.random() < _TWICE_SHARE)):
            sketch.on_event(key)

    written = _written(put, bodies)
    workers = [
        threading.Thread(target=sketch.work, args=(f"{_RAW}{writer}/", written))
        for writer in _WRITERS
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sketch.conflicts, sketch.killed


def _ours(server: EmbeddedS3, bodies: Sequence[bytes], _: Catalog) -> tuple[int, int]:
    s3, twice, drawn = boto3.client("s3"), random.Random(3), random.Random(7)
    killed = 0

    def carry_out(name: str, given: Mapping[str, Any]) -> None:
        nonlocal killed
        dies = drawn.random() < _KILL_SHARE
        run = subprocess.Popen(
            [sys.executable, "-m", __name__, name, server.endpoint_url, json.dumps(given)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            code = run.wait(drawn.uniform(*_KILLED_AFTER_SECONDS) if dies else None)
        except subprocess.TimeoutExpired:
            run.kill()
            code = run.wait()
            killed += 1
        if code:
            raise EngineError(f"{name} exited with {code}")

    def put(key: str, body: bytes) -> None:
        s3.put_object(Bucket=_BUCKET, Key=key, Body=body)
        if twice.random() < _TWICE_SHARE:
            ingest.redeliver()

    with Executions(carry_out) as executions:
        ingest = Ingest(
            server,
            _BUCKET,
            _RAW,
            [_stream(writer) for writer in _WRITERS],
            executions_url=executions.endpoint_url,
            sweep_seconds=_SWEEP_SECONDS,
            log=subprocess.DEVNULL,
        )
        with ingest:
            written = _written(put, bodies)
            while not written.is_set() or not ingest.is_at_rest(executions):
                ingest.check()
                time.sleep(_LOOK_SECONDS)
        failed = sum(one.status == FAILED for one in executions.all()) - killed
    if failed:
        print_error(f"{failed} runs failed without being killed")
    return _conflicts(s3), killed


def _stream(writer: str) -> Stream:
    given = {
        "s3_source_uri": f"s3://{_BUCKET}/{_RAW}{writer}/",
        "s3_destination_uri": f"s3://{_BUCKET}/compacted/{writer}/",
        "format": "parquet",
        "table": f"glue:{_NAME}",
        "engine": "worker",
        "settle_seconds": 0,
        "open_partition_seconds": 0,
    }
    return Stream(name=writer, input=given, objects=10, size=1 << 30, seconds=2)


def _conflicts(s3: Any) -> int:
    """Return the number of conflicting commits of the table, from the runs' receipts."""
    total = 0
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=_BUCKET, Prefix="_compactor/"):
        for one in page.get("Contents", []):
            if one["Key"].endswith("/table.json"):
                body = s3.get_object(Bucket=_BUCKET, Key=one["Key"])["Body"].read()
                total += json.loads(body)["conflicts"]
    return total


_WAYS = (
    Method("as described", partial(_as_described, careful=False)),
    Method("with more care", partial(_as_described, careful=True)),
    Method("ours", _ours),
)


def _one_run(name: str, endpoint_url: str, given: str) -> int:
    """Run in a separate process, which can be killed; returns 0 on success."""
    store = open_store(endpoint_url, _BUCKET)
    report = run_in_process(Settings.from_input(json.loads(given)), name, store)
    return int(report.status != "succeeded")


if __name__ == "__main__":
    sys.exit(_one_run(*sys.argv[1:]))
