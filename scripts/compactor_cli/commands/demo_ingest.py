"""``compactor demo --ingest``: ingests small objects into an Iceberg table by events."""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

from compactor.settings.settings import Settings
from compactor.sizes import plural
from compactor_cli.commands.failures import Failure
from compactor_cli.console import (
    Step,
    heard_by,
    print_line,
    print_table,
    progress,
)
from compactor_cli.ingest_source import FORMATS, JSON, PARQUET, Produced, Producer
from compactor_cli.whole import Machine, run_here
from compactor_local.embedded import EmbeddedS3
from compactor_local.executions import FAILED, Executions
from compactor_local.ingest import Ingest, Stream
from compactor_local.kept_spark import KeptSpark
from compactor_local.model import EngineError
from compactor_local.table_reader import TableReader
from compactor_machine.environment import engine_environment, opened_log
from compactor_machine.spark_submit import SparkMissing, find_spark

_BUCKET = "lake"
_RAW = "raw/"
_DATABASE, _TABLE = "lake", "events"
_OBJECTS_A_SECOND = 50.0
# A run takes the objects present at its start; these thresholds give about four runs.
_THRESHOLD_OBJECTS = 400
_THRESHOLD_BYTES = 64 * 1024 * 1024
_THRESHOLD_SECONDS = 10
_SWEEP_SECONDS = 2.0
_LOOK_SECONDS = 0.5
_LONGEST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of the demonstration.

    Attributes:
        rows: in the table, as counted by an engine other than Spark.
        doubled: rows that appear more than once.
        missing: rows that were written but are not in the table.
        freshness_p50: median seconds over rows from an object's PUT until a reader of the table
            sees its rows,
        freshness_p99: and the 99th percentile.
    """

    objects: int
    bytes: int
    produced_rows: int
    runs: int
    data_files: int
    snapshots: int
    rows: int
    doubled: int
    missing: int
    same_sum: bool
    freshness_p50: float
    freshness_p99: float
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the table has each written row exactly once, and no other row."""
        whole = self.rows == self.produced_rows and not self.doubled and not self.missing
        return whole and self.same_sum

    @property
    def line(self) -> str:
        """The proof in one line."""
        if self.holds:
            return f"{self.rows:,} rows produced, {self.rows:,} in the table, each once"
        return (
            f"{self.produced_rows:,} rows produced, {self.rows:,} in the table:"
            f" {self.missing:,} missing, {self.doubled:,} more than once"
        )


def run(args: argparse.Namespace, server: EmbeddedS3) -> int:
    """Write objects, ingest them by events, and print the proof.

    Args:
        args: of the command.
        server: with catalog and queue services; the environment points to it.

    Raises:
        Failure: a run failed, or the proof did.
    """
    try:
        find_spark()
    except SparkMissing as error:
        raise Failure(f"this demonstration needs Spark: {error.what}") from error
    server.create_bucket(_BUCKET)
    with (
        opened_log(args.log) as log,
        KeptSpark(engine_environment({}, server.endpoint_url), log) as spark,
    ):
        machine = Machine(args.workers, server.endpoint_url, args.log, spark=spark)
        return _demonstrate(args, server, _Lake(server, machine), log)


def _demonstrate(
    args: argparse.Namespace, server: EmbeddedS3, lake: _Lake, log: IO[bytes] | int
) -> int:
    began = time.monotonic()
    with lake.executions as executions:
        ingest = Ingest(
            server,
            _BUCKET,
            _RAW,
            [_stream(kind) for kind in FORMATS],
            executions_url=executions.endpoint_url,
            sweep_seconds=_SWEEP_SECONDS,
            log=log,
        )
        with ingest:
            _flow(lake, ingest, server.endpoint_url, args.objects)
        failed = [one for one in executions.all() if one.status == FAILED]
    shown = lake.shown(time.monotonic() - began)
    _show(shown, as_json=args.json)
    if failed:
        raise Failure(f"run {failed[0].name} failed: {failed[0].cause}")
    if not shown.holds:
        raise Failure(shown.line)
    return 0


class _Lake:
    """Carries out the runs, and notes what a reader sees of the table after each.

    Args:
        server: the embedded S3.
        machine: how runs run.
    """

    def __init__(self, server: EmbeddedS3, machine: Machine) -> None:
        self.produced = Produced()
        self.executions = Executions(self._carry_out)
        self._machine = machine
        self._seen_at: dict[int, float] = {}
        self.now = ""
        self._table = TableReader(server, _DATABASE, _TABLE, ("id", "reading"))

    def _carry_out(self, name: str, given: Mapping[str, Any]) -> None:
        def show(step: Step) -> None:
            self.now = f"{name}: {step.text or step.what}"

        with heard_by(show):
            done = run_here(Settings.from_input(given), self._machine, name)
        self.now = ""
        report = done.report
        if report is None or report.status != "succeeded":
            raise EngineError(report.cause if report else done.stands)
        now = time.time()
        for number in self._table.ids():
            self._seen_at.setdefault(number, now)

    def shown(self, seconds: float) -> Shown:
        """Return the result so far."""
        made, counted = self.produced, self._table.counted()
        ages = sorted(at - made.put_at[one] for one, at in self._seen_at.items())
        return Shown(
            objects=made.objects,
            bytes=made.bytes,
            produced_rows=made.rows,
            runs=len(self.executions.all()),
            data_files=counted.data_files,
            snapshots=counted.snapshots,
            rows=counted.rows,
            doubled=counted.rows - counted.distinct,
            missing=len(made.put_at.keys() - self._table.ids()),
            same_sum=counted.total == made.readings,
            freshness_p50=_percentile(ages, 0.50),
            freshness_p99=_percentile(ages, 0.99),
            seconds=seconds,
        )


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _stream(kind: str) -> Stream:
    """Return the stream of objects of one format into the table."""
    return Stream(
        name=kind,
        input={
            "s3_source_uri": f"s3://{_BUCKET}/{_RAW}{kind}/",
            "s3_destination_uri": f"s3://{_BUCKET}/compacted/{kind}/",
            "format": "parquet" if kind == PARQUET else "auto",
            "output_format": "parquet" if kind == JSON else "same",
            "table": f"glue:{_DATABASE}.{_TABLE}",
            # Each object is written once, with a single PUT.
            "settle_seconds": 0,
            "open_partition_seconds": 0,
        },
        objects=_THRESHOLD_OBJECTS // len(FORMATS),
        size=_THRESHOLD_BYTES,
        seconds=_THRESHOLD_SECONDS,
    )


def _flow(lake: _Lake, ingest: Ingest, endpoint_url: str, objects: int) -> None:
    """Write all objects, and wait until all are ingested."""
    stopped = threading.Event()
    with progress("ingesting objects", objects) as bar:
        producer = Producer(endpoint_url, _BUCKET, _RAW)
        lake.produced = producer.produced
        writing = threading.Thread(
            target=producer.run, args=(objects, _OBJECTS_A_SECOND, stopped), daemon=True
        )
        writing.start()
        try:
            until = time.monotonic() + objects / _OBJECTS_A_SECOND + _LONGEST_SECONDS
            while writing.is_alive() or not ingest.is_at_rest(lake.executions):
                ingest.check()
                bar.show(producer.produced.objects, objects, lake.now)
                if time.monotonic() > until:
                    raise Failure(f"objects are still pending after {_LONGEST_SECONDS:g} seconds")
                time.sleep(_LOOK_SECONDS)
        finally:
            stopped.set()
            writing.join()


def _show(shown: Shown, *, as_json: bool) -> None:
    if as_json:
        document = {**asdict(shown), "holds": shown.holds}
        print(json.dumps(document, indent=2), flush=True)
        return
    rows = [
        ("Objects", f"{shown.objects:,}", f"{shown.data_files:,}"),
        ("Rows", f"{shown.produced_rows:,}", f"{shown.rows:,}"),
        ("Average size", f"{shown.bytes / max(1, shown.objects) / 1024:.1f} KiB", ""),
        ("Runs", "", f"{shown.runs:,}"),
        ("Snapshots", "", f"{shown.snapshots:,}"),
        ("Written to readable, median", "", f"{shown.freshness_p50:.1f} s"),
        ("Written to readable, p99", "", f"{shown.freshness_p99:.1f} s"),
    ]
    title = f"{plural(shown.objects, 'object')} into one Iceberg table, {shown.seconds:.0f} s"
    print_table(title, ("", "Written", "Table"), rows)
    print_line(f"{shown.line} (counted by DuckDB)", "bold green" if shown.holds else "bold red")
