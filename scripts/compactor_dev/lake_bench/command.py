"""All ways in turn over the same objects, and the count of what became of their rows."""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import boto3
from pyiceberg.catalog import Catalog

from compactor_cli.console import print_error, print_table
from compactor_cli.local.embedded import EmbeddedS3, embedded_s3, in_environment
from compactor_cli.local.ingest import Ingest
from compactor_cli.local.table_reader import TableReader
from compactor_dev.lake_bench import ours, trips
from compactor_dev.lake_bench.sketch import FORMS, Form, Sketch

_BUCKET, _RAW = "lake", "raw/"
_DATABASE, _TABLE = "lake", "trips"
_WRITERS = ("a", "b", "c", "d")
_TWICE_SHARE = 0.2
_KILL_SHARE = 0.25
_OBJECTS_A_SECOND = 20.0


@dataclass(frozen=True, slots=True)
class Result:
    """What one way came to.

    Attributes:
        cpu_seconds: of the producer, the functions and the workers; not of the servers.
    """

    way: str
    rows: int
    doubled: int
    lost: int
    files: int
    snapshots: int
    conflicts: int
    killed: int
    seconds: float
    cpu_seconds: float


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all; 1 when ours doubled or lost a row."""
    parser = argparse.ArgumentParser(prog="make lake-bench", description=__doc__)
    parser.add_argument("--objects", type=int, default=200)
    parser.add_argument("--rows", type=int, default=500, help="in each object (%(default)s)")
    args = parser.parse_args(argv)
    bodies = list(trips.objects(args.objects, args.rows))
    ways: list[tuple[str, _Way]] = [(form.name, partial(_sketch, form)) for form in FORMS]
    results = [_in_a_lake(name, way, bodies, args.rows) for name, way in [*ways, ("ours", _ours)]]
    heads = ["", "Rows", "Doubled", "Lost", "Files", "Snapshots", "Conflicts", "Killed"]
    title = (
        f"{args.objects} Parquet objects of {args.rows} trips, {_TWICE_SHARE:.0%} of the events"
        f" twice, {len(_WRITERS)} writers"
    )
    print_table(title, [*heads, "Seconds", "CPU s"], [_cells(one) for one in results])
    return int(bool(results[-1].doubled or results[-1].lost))


def _cells(result: Result) -> list[str]:
    counts = (result.rows, result.doubled, result.lost, result.files, result.snapshots)
    told = [f"{count:,}" for count in (*counts, result.conflicts, result.killed)]
    return [result.way, *told, f"{result.seconds:.0f}", f"{result.cpu_seconds:.0f}"]


# Fills the table in this catalog; returns conflicts, how many were killed, and seconds.
_Way = Callable[[EmbeddedS3, Sequence[bytes], Catalog], tuple[int, int, float]]


def _cpu_seconds() -> float:
    """Of this process, and of the children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _in_a_lake(way_name: str, way: _Way, bodies: Sequence[bytes], rows: int) -> Result:
    with embedded_s3(subprocess.DEVNULL, lake=True) as server, in_environment(server.environment):
        server.create_bucket(_BUCKET)
        reader = TableReader(server, _DATABASE, _TABLE, (trips.NUMBER, "total_amount"))
        before = _cpu_seconds()
        conflicts, killed, seconds = way(server, bodies, reader.catalog)
        cpu_seconds = _cpu_seconds() - before
        counted = reader.counted()
    wanted = len(bodies) * rows
    return Result(
        way_name,
        counted.rows,
        counted.rows - counted.distinct,
        wanted - counted.distinct,
        counted.data_files,
        counted.snapshots,
        conflicts,
        killed,
        seconds,
        cpu_seconds,
    )


def _written(put: Callable[[str, bytes], None], bodies: Sequence[bytes]) -> threading.Event:
    """Write the objects at a steady rate, in a thread; set when all are written."""
    done = threading.Event()

    def write() -> None:
        began = time.monotonic()
        for number, body in enumerate(bodies):
            time.sleep(max(0.0, began + number / _OBJECTS_A_SECOND - time.monotonic()))
            writer = _WRITERS[number % len(_WRITERS)]
            put(f"{_RAW}{writer}/{number:05}.parquet", body)
        done.set()

    threading.Thread(target=write, daemon=True).start()
    return done


def _sketch(
    form: Form, server: EmbeddedS3, bodies: Sequence[bytes], catalog: Catalog
) -> tuple[int, int, float]:
    s3 = boto3.client("s3")
    clients: tuple[Any, Any] = boto3.client("dynamodb"), s3
    name = f"{_DATABASE}.{_TABLE}"
    sketch = Sketch(clients, _BUCKET, catalog, name, kill_share=_KILL_SHARE, form=form)
    twice = random.Random(3)

    def put(key: str, body: bytes) -> None:
        s3.put_object(Bucket=_BUCKET, Key=key, Body=body)
        for _ in range(1 + (twice.random() < _TWICE_SHARE)):
            sketch.on_event(key)

    began = time.monotonic()
    written = _written(put, bodies)
    workers = [
        threading.Thread(target=sketch.work, args=(f"{_RAW}{writer}/", written))
        for writer in _WRITERS
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    seen = sketch.seen
    return seen.conflicts, seen.killed, time.monotonic() - began


def _ours(server: EmbeddedS3, bodies: Sequence[bytes], _: Catalog) -> tuple[int, int, float]:
    s3 = boto3.client("s3")
    twice = random.Random(3)
    runs = ours.Ours(server, _KILL_SHARE)

    def put(key: str, body: bytes) -> None:
        s3.put_object(Bucket=_BUCKET, Key=key, Body=body)
        if twice.random() < _TWICE_SHARE:
            ingest.tell_again()

    began = time.monotonic()
    with runs.executions as executions:
        ingest = Ingest(
            server,
            _BUCKET,
            _RAW,
            ours.streams(_BUCKET, _RAW, _WRITERS, f"glue:{_DATABASE}.{_TABLE}"),
            executions_url=executions.endpoint_url,
            sweep_seconds=ours.SWEEP_SECONDS,
            log=subprocess.DEVNULL,
        )
        with ingest:
            runs.drain(ingest, _written(put, bodies))
        seconds = time.monotonic() - began
    if runs.failed() > runs.killed:
        print_error(f"{runs.failed() - runs.killed} runs failed by themselves")
    return ours.conflicts(s3, _BUCKET), runs.killed, seconds
