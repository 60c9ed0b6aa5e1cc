"""Spark reads the readers' table by Hive's catalog: the table, its partitions, its lists.

There is no Glue for Spark here: partitions go from moto's Glue into Hive's catalog as they are,
each with its location and its input format.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import boto3
import pytest

from compactor_cli.commands import main
from compactor_cli.machine.spark_submit import SparkHere
from tests.support import hive_here
from tests.support.java import ENVIRONMENT
from tests.support.reader_lake import DAYS, INPUT, Lake, reader_lake
from tests.support.server_builds import Unavailable, table_jars

PLACES = (str(INPUT["s3_source_uri"]), str(INPUT["s3_destination_uri"]))
WORDS = (
    "--date-format", "dt=%Y-%m-%d", "--window", f"{DAYS[0]}..{DAYS[-1]}",
    "--settle-seconds", "0", "--reader-table", "glue:lake.logs",
)  # fmt: skip


class TextLake(Lake):
    """Sources in a form that Spark's own classes read: lines of text."""

    def add(self, day: str, objects: int) -> None:
        for _ in range(objects):
            ids = range(len(self.put), len(self.put) + 5)
            body = "".join(f"{day} 12:00:{one % 60:02} INFO record {one}\n" for one in ids)
            key = f"raw/dt={day}/{ids[0]:06}.log"
            self.s3.put_object(Bucket="my-logs", Key=key, Body=body.encode())
            self.put |= set(ids)


class Hive:
    """The other process."""

    def __init__(self, endpoint: str, jars: str, directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(hive_here.__file__)), endpoint, jars],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(directory / "log").open("wb"),
            text=True,
        )

    def ask(
        self, *sql: str, hive: tuple[str, ...] = (), empty_splits: bool = True
    ) -> list[list[Any]]:
        order = {"sql": sql, "hive": hive, "empty_splits": empty_splits}
        stream = cast(IO[str], self._process.stdin)
        stream.write(json.dumps(order) + "\n")
        stream.flush()
        told = json.loads(cast(IO[str], self._process.stdout).readline())
        assert "error" not in told, told["error"]
        return cast(list[list[Any]], told["rows"])

    def create_table(self) -> None:
        """The table of Glue, by what `SHOW CREATE TABLE` says of it."""
        table = boto3.client("glue").get_table(DatabaseName="lake", Name="logs")["Table"]
        stored = table["StorageDescriptor"]
        (column,), (key,) = stored["Columns"], table["PartitionKeys"]
        serde = stored["SerdeInfo"]
        pairs = ", ".join(
            "'{}' = '{}'".format(name, value.replace("\\", "\\\\"))
            for name, value in serde["Parameters"].items()
        )
        self.ask(
            "CREATE DATABASE lake",
            f"CREATE EXTERNAL TABLE lake.logs ({column['Name']} {column['Type']})"
            f" PARTITIONED BY ({key['Name']} {key['Type']})"
            f" ROW FORMAT SERDE '{serde['SerializationLibrary']}'"
            f" WITH SERDEPROPERTIES ({pairs}) STORED AS INPUTFORMAT '{stored['InputFormat']}'"
            f" OUTPUTFORMAT '{stored['OutputFormat']}' LOCATION '{stored['Location']}'",
        )

    def copy_partitions(self) -> list[bool]:
        """Those of Glue; which of the days are a list."""
        glue = boto3.client("glue")
        found = glue.get_partitions(DatabaseName="lake", TableName="logs")["Partitions"]
        for one in found:
            (day,), stored = one["Values"], one["StorageDescriptor"]
            alter = "ALTER TABLE lake.logs"
            self.ask(
                f"{alter} DROP IF EXISTS PARTITION (dt = '{day}')",
                f"{alter} ADD PARTITION (dt = '{day}') LOCATION '{stored['Location']}'",
            )
            formats = (
                f"INPUTFORMAT '{stored['InputFormat']}' OUTPUTFORMAT '{stored['OutputFormat']}'"
                f" SERDE '{stored['SerdeInfo']['SerializationLibrary']}'"
            )
            # Hive 2 finds no partition of a table that is named with its database.
            spec = f"logs PARTITION (dt = '{day}')"
            self.ask(hive=("USE lake", f"ALTER TABLE {spec} SET FILEFORMAT {formats}"))
        stored_as = {one["Values"][0]: one["StorageDescriptor"]["InputFormat"] for one in found}
        return ["Symlink" in stored_as[day] for day in DAYS]

    def ids(self, day: str = "", *, empty_splits: bool = True) -> list[int]:
        asked = "SELECT dt, CAST(substring_index(line, ' ', -1) AS INT) FROM lake.logs"
        rows = self.ask(asked, empty_splits=empty_splits)
        return sorted(row[1] for row in rows if row[0] == day or not day)

    def end(self) -> None:
        cast(IO[str], self._process.stdin).close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def lake_and_hive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_here: SparkHere
) -> Iterator[tuple[Lake, Hive]]:
    try:
        jars = os.pathsep.join(map(str, table_jars()))
    except Unavailable as reason:
        pytest.skip(f"no jars of S3 for Spark: {reason}")
    with reader_lake(tmp_path, monkeypatch, TextLake) as (lake, url):
        for name, value in ENVIRONMENT.items():
            monkeypatch.setenv(name, value)
        hive = Hive(url, jars, tmp_path)
        try:
            yield lake, hive
        finally:
            hive.end()


def test_spark_reads_each_record_once_in_every_state_if_it_asks_empty_splits(
    lake_and_hive: tuple[Lake, Hive],
) -> None:
    lake, hive = lake_and_hive
    for day in DAYS:
        lake.add(day, 4)
    assert main(["table", "refresh", *PLACES, *WORDS]) == 0
    hive.create_table()
    assert hive.copy_partitions() == [False] * 3
    assert hive.ids() == sorted(lake.put)

    # Copied before the run switches: what was planned then stays readable.
    running = lake.run()
    while running.poll() is None:
        assert hive.ids() == sorted(lake.put)
    assert running.returncode == 0
    hive.copy_partitions()
    assert hive.ids() == sorted(lake.put)

    lake.add(DAYS[0], 2)
    assert main(["table", "refresh", *PLACES, *WORDS]) == 0
    assert hive.copy_partitions() == [True, False, False]
    assert hive.ids() == sorted(lake.put)
    assert len(hive.ids(DAYS[0])) == 6 * 5
    # What docs/readers.md warns of: no rows, and no error.
    assert hive.ids(DAYS[0], empty_splits=False) == []

    lake.forget_grace()
    assert lake.clean_up() == 3 * 4
    assert hive.ids() == sorted(lake.put)
