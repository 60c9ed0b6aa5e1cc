"""Queries without end over a table whose lake is at work: who writes to it, and who reads.

Producers, runs, killed runs, refreshes and clean-ups come in the order that a seed gives, some two
at a time, all over one S3 and one Glue. A thread asks DuckDB for the whole table meanwhile. What a
query reads is found from what Glue's API says, by nothing of the product, and so is what it must
and may read: from the moments at which objects were put and the table was refreshed.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import duckdb
from botocore.exceptions import ClientError

from compactor.catalogs.readers import open_readers
from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.clock import NoDeadline, SystemClock
from compactor.limits import WorkerLimits
from compactor.partition.inputs import PartitionRun
from compactor.partition.receipts import Counts
from compactor.partition.run import compact_partition
from compactor.readers.refresh import Refreshing, refresh
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_local.embedded import EmbeddedS3
from tests.e2e.query_oracle import Figures, Misread, Oracle
from tests.support.catalog_plan import is_list, objects_at, shown_by
from tests.support.reader_lake import run_of

DAYS = ("2026-01-02", "2026-01-03", "2026-01-04")
RECORDS = 5
#: What no query here outlasts, seconds; one that does is told apart.
GRACE_SECONDS = 4
# Between two queries, so that others get on.
_PAUSE_SECONDS = 0.15
_INPUT = {
    "s3_source_uri": "s3://my-logs/raw/",
    "s3_destination_uri": "s3://my-lake/compacted/",
    "date_format": "dt=%Y-%m-%d",
    "window": f"{DAYS[0]}..{DAYS[-1]}",
    "settle_seconds": 0,
    "reader_table": "glue:lake.logs",
}
# A request that a killed run has sent is answered by then.
_ON_ITS_WAY_SECONDS = 0.5


class QueriedLake:
    """One schedule.

    Args:
        s3: with Glue beside it, and nothing in it; the environment names both.
        directory: for what queries bring here.
        seed: of the schedule.
    """

    def __init__(self, s3: EmbeddedS3, directory: Path, seed: int) -> None:
        self.random = Random(seed)
        self.directory = directory
        self.oracle, self.figures = Oracle(), Figures()
        self.s3, self.glue = s3.client("s3"), s3.client("glue")
        for bucket in ("my-logs", "my-lake"):
            s3.create_bucket(bucket)
        self.glue.create_database(DatabaseInput={"Name": "lake"})
        (directory / "input.json").write_text(json.dumps(_INPUT))
        open_readers.cache_clear()
        # Less than anybody may ask for: nobody waits a quarter of an hour here.
        given = Settings.from_input(_INPUT)
        self.settings = replace(given, limits=WorkerLimits(reader_grace_seconds=GRACE_SECONDS))
        self.store = S3Store(make_client(None))
        self._next = self._runs = 0
        self._at_work = 0
        self._lock = threading.Lock()

    def play(self, queries: int) -> Figures:
        """Work and ask, until so many answers were right and everybody has had a turn.

        Raises:
            Misread: one was not.
        """
        self.add()
        self.refresh()
        stopped = threading.Event()
        with ThreadPoolExecutor(1) as reader, ThreadPoolExecutor(2) as workers:
            asking = reader.submit(self._ask_on, stopped)
            try:
                while not asking.done() and not self.figures.all_of(queries):
                    for one in [workers.submit(act) for act in self._next_acts()]:
                        one.result()
            finally:
                stopped.set()
            asking.result()
        self.work_here(switches=True)
        self.refresh()
        self.ask()
        if self.oracle.known != self.oracle.begun:
            raise Misread("what was refreshed last is not all there is")
        return self.figures

    def _next_acts(self) -> list[Callable[[], None]]:
        usual: list[Callable[[], None]] = [
            self.add, self.add, self.refresh, self.clean_up, self.clean_up,
            lambda: self.work_here(switches=True), self.work_beside, self.work_here_and_wait,
        ]  # fmt: skip
        drawn = self.random.random()
        if not self.figures.acts["killed runs"]:
            return [self.die]
        if drawn < 0.1:
            return [self.run, self.add]
        if drawn < 0.2:
            return [self.die]
        return self.random.sample(usual, self.random.choice([1, 2]))

    def add(self) -> None:
        """A producer; what comes behind a run is late."""
        self.figures.acts["producers"] += 1
        for _ in range(self._draw(1, 3)):
            with self._lock:
                ids = set(range(self._next, self._next + RECORDS))
                self._next += RECORDS
                day = self.random.choice(DAYS)
            body = "".join(json.dumps({"id": one}) + "\n" for one in sorted(ids))
            key = f"raw/dt={day}/{min(ids):06}.json"
            with self.oracle.putting(ids):
                self.s3.put_object(Bucket="my-logs", Key=key, Body=body.encode())

    def refresh(self) -> None:
        """As ``compactor table refresh`` does it."""
        self.figures.acts["refreshes"] += 1
        catalog = open_readers("glue:lake.logs")
        work = Refreshing(self.settings, self.store, SystemClock(), catalog)
        with self._working(), self.oracle.switching() as succeeded:
            outcomes = refresh([f"dt={day}/" for day in DAYS], work)
            if not any(one.fault for one in outcomes):
                succeeded()

    def work_here(self, *, switches: bool) -> None:
        """A run's worker of each partition; without a table it only compacts."""
        self.figures.acts["runs here"] += 1
        table = self.settings.reader_table if switches else None
        settings = replace(self.settings, reader_table=table)
        with self._working():
            for day in DAYS:
                partition = settings.partition_at(f"dt={day}/")
                run = PartitionRun(
                    partition, settings, self.store, SystemClock(), NoDeadline(), self._run_id()
                )
                with self.oracle.switching():
                    compact_partition(run, Counts())

    def work_here_and_wait(self) -> None:
        """Time passes, so that clean-up has something to do."""
        self.work_here(switches=True)
        time.sleep(self._draw(0, GRACE_SECONDS))

    def work_beside(self) -> None:
        """As runs that may not switch do: late sources are listed, and then in outputs, too."""
        self.add()
        self.refresh()
        self.work_here(switches=False)
        self.clean_up()

    def clean_up(self) -> None:
        """Of each partition."""
        self.figures.acts["clean-ups"] += 1
        settings = replace(self.settings, delete_after="0d")
        with self._working():
            for day in DAYS:
                run = CleanUpRun(
                    f"dt={day}/", settings, self.store, SystemClock(), NoDeadline(), self._run_id()
                )
                receipt = record_clean_up(run, CleanUpReceipt(run.path, run.run_id))
                self.figures.deleted += receipt.counts.deleted

    def run(self) -> None:
        """A whole run in processes of its own."""
        self.figures.acts["runs"] += 1
        with self._working(), self.oracle.switching() as succeeded:
            if run_of(self.directory / "input.json").wait(600) == 0:
                succeeded()

    def die(self) -> None:
        """One that is killed."""
        self.figures.acts["killed runs"] += 1
        with self._working(), self.oracle.switching():
            running = run_of(self.directory / "input.json")
            time.sleep(self._draw(4, 40) / 10)
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            time.sleep(_ON_ITS_WAY_SECONDS)

    def ask(self) -> None:
        """One query over the whole table.

        Raises:
            Misread: it lacks a record, or has one twice.
        """
        busy = self._at_work > 0
        begun, must = time.monotonic(), self.oracle.must_be_read()
        try:
            rows = self._read(self._plan())
        except ClientError as error:
            if time.monotonic() - begun < GRACE_SECONDS - 1:
                raise Misread(f"a query ends with {error}") from error
            self.figures.outlasted += 1
            return
        ids = set(rows)
        doubled, lost = len(rows) - len(ids), must - ids
        if doubled or lost or not ids <= self.oracle.begun:
            raise Misread(f"{doubled} records twice, without {sorted(lost)[:10]}")
        self.oracle.was_read(ids)
        self.figures.queries += 1
        self.figures.during += busy or self._at_work > 0

    def _ask_on(self, stopped: threading.Event) -> None:
        while not stopped.wait(_PAUSE_SECONDS):
            self.ask()

    def _plan(self) -> list[tuple[str, str]]:
        """The objects of a query over the whole table, as an engine plans it."""
        found: list[tuple[str, str]] = []
        for location, input_format in shown_by(self.glue, "lake", "logs"):
            bucket = location[len("s3://") :].partition("/")[0]
            self.figures.shown["lists" if is_list(input_format) else bucket] += 1
            found += objects_at(self.s3, location, input_format)
        return found

    def _read(self, plan: list[tuple[str, str]]) -> list[int]:
        """What DuckDB reads of these objects."""
        if not plan:
            return []
        place = self.directory / f"query-{threading.get_ident()}"
        place.mkdir(exist_ok=True)

        def fetch(number: int) -> str:
            bucket, key = plan[number]
            file = place / f"{number}.json"
            file.write_bytes(self.s3.get_object(Bucket=bucket, Key=key)["Body"].read())
            return str(file)

        with ThreadPoolExecutor(4) as pool:
            files = list(pool.map(fetch, range(len(plan))))
        with duckdb.connect() as connection:
            read = "FROM read_json($1, format='newline_delimited', columns={id: 'BIGINT'})"
            rows = connection.execute(read, [files])
            return [int(row[0]) for row in rows.fetchall()]

    @contextmanager
    def _working(self) -> Iterator[None]:
        with self._lock:
            self._at_work += 1
        try:
            yield
        finally:
            with self._lock:
                self._at_work -= 1

    def _run_id(self) -> str:
        with self._lock:
            self._runs += 1
            return f"run-{self._runs}"

    def _draw(self, least: int, most: int) -> int:
        with self._lock:
            return self.random.randint(least, most)
