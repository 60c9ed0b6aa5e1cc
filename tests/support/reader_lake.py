"""Sources, real runs, and what the catalog shows of sources and outputs, on moto."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import duckdb
import pytest

from compactor.cleaning.clean_partition import CleanUpRun, record_clean_up
from compactor.cleaning.clean_up_receipts import CleanUpReceipt
from compactor.clock import NoDeadline, SystemClock
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from tests.support.catalog_plan import objects_at, shown_by
from tests.support.moto_server import moto_server

INPUT = {
    "s3_source_uri": "s3://my-logs/raw/",
    "s3_destination_uri": "s3://my-lake/compacted/",
    "date_format": "dt=%Y-%m-%d",
    "window": "2026-01-02..2026-01-04",
    "settle_seconds": 0,
    "reader_table": "glue:lake.logs",
    "delete_after": "0d",
}
DAYS = ("2026-01-02", "2026-01-03", "2026-01-04")
MARKER = "_compactor/compacted/readers/table.json"


def run_of(given: Path) -> subprocess.Popen[bytes]:
    """Start a run with this input, in processes that can be killed together."""
    command = [sys.executable, "-m", "compactor", "run", "--workers", "1", "--input", str(given)]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


class Lake:
    """Sources, the records put so far, and an engine that reads the table."""

    def __init__(self, directory: Path, table: str = "glue:lake.logs") -> None:
        self.directory = directory
        self.input = {**INPUT, "reader_table": table}
        self.s3 = boto3.client("s3")
        self.glue = boto3.client("glue")
        self.put: set[int] = set()
        self.queries = 0
        # Records put since the last completed run: they may be visible already or not yet.
        self.late: set[int] = set()
        for bucket in ("my-logs", "my-lake"):
            self.s3.create_bucket(Bucket=bucket)
        self.glue.create_database(DatabaseInput={"Name": "lake"})
        (directory / "input.json").write_text(json.dumps({**self.input, "delete_after": None}))

    def add(self, day: str, objects: int) -> None:
        """Put new sources of five records each."""
        for _ in range(objects):
            ids = range(len(self.put), len(self.put) + 5)
            body = "".join(json.dumps({"id": one}) + "\n" for one in ids)
            key = f"raw/dt={day}/{ids[0]:06}.json"
            self.s3.put_object(Bucket="my-logs", Key=key, Body=body.encode())
            self.put |= set(ids)

    def run(self) -> subprocess.Popen[bytes]:
        """Start a run in its own processes."""
        return run_of(self.directory / "input.json")

    def plan(self) -> list[tuple[str, str]]:
        """Return the objects of a query over the whole table."""
        return [
            one
            for location, input_format in self.shown()
            for one in objects_at(self.s3, location, input_format)
        ]

    def shown(self) -> Iterator[tuple[str, str]]:
        """Yield location and input format of each partition in the catalog."""
        return shown_by(self.glue, "lake", "logs")

    def read(self, plan: list[tuple[str, str]]) -> tuple[int, set[int]]:
        """Return how many records DuckDB reads from these objects, and which."""
        self.queries += 1
        place = self.directory / f"query-{self.queries}"
        place.mkdir()

        def fetch(number: int, bucket: str, key: str) -> None:
            name = str(place / f"{number}-{key.rpartition('/')[2]}")
            self.s3.download_file(bucket, key, name)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda one: fetch(one[0], *one[1]), enumerate(plan)))
        rows = duckdb.read_json(f"{place}/*", format="newline_delimited").fetchall()
        return len(rows), {int(row[0]) for row in rows}

    def require_exact(self) -> None:
        assert self.read(self.plan()) == (len(self.put), self.put)

    def watch(self, running: subprocess.Popen[bytes], known: set[int]) -> None:
        """Query until a run has ended, and check that no record is lost or doubled."""
        before = self.queries
        while running.poll() is None:
            count, ids = self.read(self.plan())
            assert count == len(ids), "doubled"
            assert known <= ids <= self.put, "lost"
        assert self.queries > before, "nobody asked while it ran"

    def die(self, seconds: float) -> set[int]:
        """Put late sources and kill a run over them; return the records known before."""
        known = set(self.put)
        self.add(DAYS[0], 3)
        running = self.run()
        time.sleep(seconds)
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
        count, ids = self.read(self.plan())
        assert count == len(ids), "doubled"
        assert known <= ids | self.late, "lost"
        self.late |= self.put - known
        return known

    def clean_up(self) -> int:
        # Without the table: clean-up must learn of it from the state.
        given = {name: value for name, value in self.input.items() if name != "reader_table"}
        settings = Settings.from_input(given)
        store = S3Store(make_client(None))
        deleted = 0
        for day in DAYS:
            run = CleanUpRun(f"dt={day}/", settings, store, SystemClock(), NoDeadline(), "cleaning")
            receipt = record_clean_up(run, CleanUpReceipt(run.path, run.run_id))
            assert receipt.unsafe == []
            deleted += receipt.counts.deleted
        return deleted

    def forget_grace(self) -> None:
        """Set the grace period to 0, so that tests need not wait for an hour."""
        body = json.loads(self.s3.get_object(Bucket="my-lake", Key=MARKER)["Body"].read())
        told = json.dumps({**body, "grace_seconds": 0}).encode()
        self.s3.put_object(Bucket="my-lake", Key=MARKER, Body=told)


@contextmanager
def reader_lake(
    directory: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Lake] = Lake
) -> Iterator[tuple[Lake, str]]:
    """Yield a lake on its own moto, and the URL of that."""
    with moto_server() as url:
        named: dict[str, Any] = {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": url,
        }
        for name, value in named.items():
            monkeypatch.setenv(name, value)
        from compactor.catalogs.readers import open_readers

        open_readers.cache_clear()
        yield kind(directory), url
        open_readers.cache_clear()
