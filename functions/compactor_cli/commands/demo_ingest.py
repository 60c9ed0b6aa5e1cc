"""``compactor demo --ingest``: ingests small objects into an Iceberg table by events."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from compactor.catalogs.opening import open_catalog
from compactor.orchestration.in_process import run_in_process
from compactor.orchestration.run_progress import RunProgress
from compactor.orchestration.workers import Observer
from compactor.ports import ObjectStore
from compactor.registry.streams import Stream
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor.sinks.table_catalog import TableCatalog
from compactor.sizes import plural
from compactor_cli.command_line import Args
from compactor_cli.console import print_line, print_table, progress
from compactor_cli.failures import Failure
from compactor_cli.ingest_source import FORMATS, JSON, PARQUET, Produced, Producer
from compactor_cli.whole import compacting_text
from compactor_local import EngineError
from compactor_local.embedded import EmbeddedS3
from compactor_local.ingest import REGISTRY_TABLE, Ingest, Runs
from compactor_local.table_reader import TableReader

_BUCKET = "lake"
_RAW = "raw/"
_DATABASE, _TABLE = "lake", "events"
_OBJECTS_A_SECOND = 50.0
# A run takes the objects that are pending at its start, and begins when the oldest is this old.
_THRESHOLD_SECONDS = 1
_THRESHOLD_OBJECTS, _THRESHOLD_BYTES = 10_000, 64 * 1024 * 1024
_SWEEP_SECONDS = 1.0
_LOOK_SECONDS = 0.5
_LONGEST_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of the demonstration.

    Attributes:
        rows: in the table, as counted by an engine that did not write it.
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


def run(args: Args, server: EmbeddedS3) -> int:
    """Write objects, ingest them by events, and print the proof.

    Args:
        args: of the command.
        server: with catalog and queue services; the environment points to it.

    Raises:
        Failure: a run failed, or the proof did.
    """
    server.create_bucket(_BUCKET)
    lake, began = _Lake(server), time.monotonic()
    streams = [_stream(kind) for kind in FORMATS]
    with lake.runs:
        ingest = Ingest(server, _BUCKET, _RAW, streams, lake.runs, sweep_seconds=_SWEEP_SECONDS)
        with ingest:
            _flow(lake, ingest, server.endpoint_url, args.objects)
    shown = lake.shown(time.monotonic() - began)
    _show(shown, as_json=args.json)
    if lake.runs.failures:
        raise Failure(lake.runs.failures[0])
    if not shown.holds:
        raise Failure(shown.line)
    return 0


class _Lake:
    """Carries out the runs in this process, and notes what a reader sees of the table after each.

    Args:
        server: the embedded S3.
    """

    def __init__(self, server: EmbeddedS3) -> None:
        self.produced = Produced()
        self.runs = Runs(self._carry_out)
        self._s3 = make_client(server.endpoint_url)
        # Kept from run to run: to open a client of Glue takes longer than many a run.
        self._catalogs: dict[str, TableCatalog] = {}
        self._seen_at: dict[int, float] = {}
        self.now = ""
        self._table = TableReader(server, _DATABASE, _TABLE)

    def _carry_out(self, name: str, settings: Settings) -> None:
        store = S3Store(self._s3)
        report = run_in_process(settings, name, store, _Show(self, name), self._catalog_of)
        self.now = ""
        if report.status != "succeeded":
            raise EngineError(report.cause)
        now = time.time()
        for number in self._table.ids():
            self._seen_at.setdefault(number, now)

    def _catalog_of(self, settings: Settings, store: ObjectStore) -> TableCatalog:
        stream = settings.s3_source_uri
        if stream not in self._catalogs:
            self._catalogs[stream] = open_catalog(settings, store)
        return self._catalogs[stream]

    def shown(self, seconds: float) -> Shown:
        """Return the result so far."""
        made, counted = self.produced, self._table.counted()
        ages = sorted(at - made.put_at[one] for one, at in self._seen_at.items())
        return Shown(
            objects=made.objects,
            bytes=made.bytes,
            produced_rows=made.rows,
            runs=self.runs.count,
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


class _Show(Observer):
    """Shows the progress of a run."""

    def __init__(self, lake: _Lake, name: str) -> None:
        self._lake, self._name = lake, name

    def progressed(self, progress: RunProgress) -> None:
        self._lake.now = f"{self._name}: {compacting_text(progress)}"


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def _stream(kind: str) -> Stream:
    """Return the stream of objects of one format into the table."""
    return Stream(
        name=kind,
        settings=Settings.from_input(
            {
                "s3_source_uri": f"s3://{_BUCKET}/{_RAW}{kind}/",
                "s3_destination_uri": f"s3://{_BUCKET}/compacted/{kind}/",
                "listing": f"events:{REGISTRY_TABLE}/{kind}",
                "formats": PARQUET if kind == PARQUET else [],
                "output_format": "parquet" if kind == JSON else "same",
                "table": f"glue:{_DATABASE}.{_TABLE}",
                "engine": "worker",
                # Each object is written once, with a single PUT.
                "settle_seconds": 0,
            }
        ),
        objects=_THRESHOLD_OBJECTS // len(FORMATS),
        bytes=_THRESHOLD_BYTES,
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
            while not ingest.has_ingested(objects):
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
