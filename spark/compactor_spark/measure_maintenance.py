"""Maintain a table of many small files while a thread appends to it, and measure the effect.

    measure_maintenance.py --table ADDRESS --state s3://BUCKET/state/ --go PATH

Creates the table, prints a JSON object, waits for a file at PATH (spark-submit does not pass on
standard input), maintains the table by an order while a writer appends, and prints another JSON
object. Before and after maintenance, the caller reads the table with another engine than Spark.
Endpoint and credentials come from the environment.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark import SparkConf
from pyspark.sql import SparkSession

from compactor.s3.store import make_client
from compactor.settings.tables import DELTA, TableAddress, parse_table
from compactor.settings.uris import S3Uri, parse_location
from compactor.sinks.upserts import quoted
from compactor.sizes import MIB
from compactor_spark.maintain.job import Maintenance
from compactor_spark.maintain.opening import open_maintained, start_settings
from compactor_spark.opening import table_name, table_session
from compactor_tables.maintenance_receipts import MaintenanceReceipt
from compactor_tables.orders import (
    CHECKPOINT,
    DELETES,
    MANIFESTS,
    REWRITE,
    Condition,
    Order,
    PartitionOrder,
)

_PARTITIONS = 4
_COMMITS = 10
_PAUSE_SECONDS = 0.5
_ROWS_APPENDED = 10


@dataclass
class Writer:
    """Appends to partitions in turn until it is stopped, and records failures.

    Attributes:
        table: to append to.
        next: the first number that is not in the table.
        commits: number of successful appends.
        failures: errors of failed appends.
    """

    table: Table
    next: int
    commits: int = 0
    failures: list[str] = field(default_factory=list)
    _ended: threading.Event = field(default_factory=threading.Event)

    def append(self) -> None:
        """Append until :meth:`end` is called."""
        while not self._ended.wait(_PAUSE_SECONDS):
            number = self.commits + len(self.failures)
            try:
                self.table.append(self.next, _ROWS_APPENDED, number % _PARTITIONS, 1)
            except Exception as error:
                self.failures.append(f"{type(error).__name__}: {str(error)[:200]}")
            else:
                self.next += _ROWS_APPENDED
                self.commits += 1

    def end(self) -> None:
        """Start no further append."""
        self._ended.set()


@dataclass(frozen=True, slots=True)
class Table:
    """The table, with the operations of its writers.

    Attributes:
        turns: number of times that a scan is run.
    """

    session: SparkSession
    address: TableAddress
    turns: int

    @property
    def sql(self) -> str:
        """The table's name in statements."""
        name = table_name(self.address)
        return f"delta.{quoted(name)}" if self.address.kind == DELTA else name

    def make(self) -> None:
        """Create the table, with partitions, and with deletes that do not rewrite data files."""
        is_delta = self.address.kind == DELTA
        if not is_delta:
            namespace = self.sql.rpartition(".")[0]
            self.session.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        said = (
            "'delta.enableDeletionVectors' = 'true'"
            if is_delta
            else "'format-version' = '2', 'write.delete.mode' = 'merge-on-read',"
            " 'write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true'"
        )
        self.session.sql(
            f"CREATE TABLE {self.sql} (id BIGINT, part INT, v STRING, n DECIMAL(12,2))"
            f" USING {'delta' if is_delta else 'iceberg'} PARTITIONED BY (part)"
            f" TBLPROPERTIES ({said})"
        )

    def append(self, first: int, rows: int, part: int, files: int) -> None:
        """Append rows to one partition, as this many files in one commit."""
        frame = self.session.range(first, first + rows, 1, files).selectExpr(
            "id", f"{part} AS part", "uuid() AS v", "CAST(id % 100000 AS DECIMAL(12,2)) AS n"
        )
        if self.address.kind == DELTA:
            frame.write.format("delta").mode("append").save(self.address.uri)
        else:
            frame.writeTo(self.sql).append()

    def scan(self) -> tuple[list[int], float]:
        """Return the rows' count and the sum of their ids, and the median duration in seconds."""
        seconds, found = [], [0, 0]
        for _ in range(self.turns):
            began = time.monotonic()
            (row,) = self.session.table(self.sql).selectExpr("count(*)", "sum(id)").collect()
            found = [int(row[0]), int(row[1])]
            seconds.append(time.monotonic() - began)
        return found, statistics.median(seconds)


def main() -> None:
    """Create the table, wait for the file, maintain the table and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--table", required=True)
    parser.add_argument("--state", required=True)
    parser.add_argument("--go", required=True, type=Path)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--rows", type=int, default=500, help="in each file")
    parser.add_argument("--turns", type=int, default=3, help="of a scan; the median counts")
    args = parser.parse_args()
    address, state = parse_table(args.table), parse_location(args.state)
    session = _session(address)
    client = make_client()
    opened = table_session(session, address, client, f"{state.uri}warehouse")
    table = Table(opened, address, max(1, args.turns))
    table.make()
    rows, files = args.files * args.rows, args.files // _COMMITS
    for number in range(_COMMITS):
        table.append(number * rows // _COMMITS, rows // _COMMITS, number % _PARTITIONS, files)
        _say(f"{(number + 1) * files:,} of {args.files:,} files written")
    table.session.sql(f"DELETE FROM {table.sql} WHERE id % 100 = 0")  # noqa: S608 - its own table
    _say("a row of a hundred deleted; scanning")
    found, seconds = table.scan()
    _print({"rows": found[0], "sum": found[1], "scan_seconds": seconds})
    while not args.go.exists():
        time.sleep(_PAUSE_SECONDS)
    _print(_maintain(session, table, state, rows))
    session.stop()


def _session(address: TableAddress) -> SparkSession:
    builder = SparkSession.Builder()
    for name, value in start_settings([address], dict(SparkConf().getAll())).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _maintain(session: SparkSession, table: Table, state: S3Uri, rows: int) -> dict[str, Any]:
    address = table.address
    order = Order(
        run_id="measured",
        table=address.text,
        engine="spark",
        steps=(REWRITE, DELETES, CHECKPOINT if address.kind == DELTA else MANIFESTS),
        target_bytes=512 * MIB,
        partitions=tuple(
            PartitionOrder(f"part={one}", where=(Condition("part", "identity", str(one)),))
            for one in range(_PARTITIONS)
        ),
    )
    engine = open_maintained(session, address, make_client(), state)
    receipt = MaintenanceReceipt(table=address.text, run_id=order.run_id, engine="spark")
    writer = Writer(table, rows)
    thread = threading.Thread(target=writer.append)
    thread.start()
    work = Maintenance(order, engine, receipt, save=lambda _: None, say=_say)
    receipt = work.run()
    writer.end()
    thread.join()
    found, seconds = table.scan()
    return {
        "rows": found[0],
        "sum": found[1],
        "scan_seconds": seconds,
        "status": receipt.status,
        "cause": receipt.cause,
        "seconds": receipt.seconds,
        "partitions": [[one.status, one.files, one.into, one.why] for one in receipt.partitions],
        "steps": receipt.steps,
        "commits": writer.commits,
        "failures": writer.failures,
        "appended": writer.next - rows,
        "appended_sum": sum(range(rows, writer.next)),
    }


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S', time.gmtime())} {line}\n")


def _print(document: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(document)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
