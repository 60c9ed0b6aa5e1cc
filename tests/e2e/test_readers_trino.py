"""Trino reads the table that the product made, while real runs are at work and clean up.

It asks Glue and S3 itself, as Athena does: nothing of the product says what it reads.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from compactor_cli.commands import main
from tests.support.reader_lake import DAYS, INPUT, Lake, reader_lake
from tests.support.trino import build
from tests.support.trino.server import Places, Trino, running

OBJECTS = 6


class AskedLake:
    """A lake whose table Trino reads."""

    def __init__(self, lake: Lake, trino: Trino) -> None:
        self.lake = lake
        self._trino = trino
        self.queries = 0

    def refresh(self) -> None:
        """``compactor table refresh``, without a run."""
        places = [str(INPUT["s3_source_uri"]), str(INPUT["s3_destination_uri"])]
        words = ["--date-format", "dt=%Y-%m-%d", "--window", f"{DAYS[0]}..{DAYS[-1]}"]
        words += ["--settle-seconds", "0"]
        assert main(["table", "refresh", *places, *words, "--reader-table", "glue:lake.logs"]) == 0

    def read(self) -> list[int]:
        """The ids of all rows."""
        self.queries += 1
        return [int(one) for (one,) in self._trino.ask("SELECT id FROM lake.logs ORDER BY id")]

    def require_exact(self) -> None:
        assert self.read() == sorted(self.lake.put)

    def watch(self, work: subprocess.Popen[bytes], known: set[int]) -> None:
        """Query until a run has ended: nothing known is lost, and nothing doubled."""
        while work.poll() is None:
            found = self.read()
            assert len(found) == len(set(found)), "doubled"
            assert known <= set(found) <= self.lake.put, "lost"
        assert work.returncode == 0

    def shown(self) -> list[str]:
        """What each day shows, by its location in the catalog."""
        kinds = {"my-logs": "raw", "compacted": "compacted", "compactor-readers": "listed"}
        glue = boto3.client("glue")
        found = glue.get_partitions(DatabaseName="lake", TableName="logs")["Partitions"]
        places = {one["Values"][0]: one["StorageDescriptor"]["Location"] for one in found}
        words = [places[day].removeprefix("s3://").split("/") for day in DAYS]
        return [kinds[one[0] if one[0] == "my-logs" else one[1]] for one in words]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AskedLake]:
    here = build.find()
    if here is None:
        pytest.skip("no Trino here: make servers fetches it")
    with (
        reader_lake(tmp_path, monkeypatch) as (lake, url),
        running(here, Places(url, url), tmp_path / "trino", quick=True) as trino,
    ):
        yield AskedLake(lake, trino)


def test_trino_reads_each_record_once_before_during_and_after_runs_and_clean_up(
    asked: AskedLake,
) -> None:
    lake = asked.lake
    for day in DAYS:
        lake.add(day, OBJECTS)
    asked.refresh()
    assert asked.shown() == ["raw"] * 3
    asked.require_exact()

    asked.watch(lake.run(), set(lake.put))
    assert asked.shown() == ["compacted"] * 3
    asked.require_exact()

    # Late ones, seen before anything has compacted them.
    lake.add(DAYS[0], 2)
    asked.refresh()
    assert asked.shown() == ["listed", "compacted", "compacted"]
    asked.require_exact()

    asked.watch(lake.run(), set(lake.put))
    assert asked.shown() == ["compacted"] * 3
    lake.add(DAYS[1], 1)
    asked.refresh()
    assert asked.shown() == ["compacted", "listed", "compacted"]
    asked.require_exact()

    lake.forget_grace()
    # All but the one that no output holds.
    assert lake.clean_up() == len(lake.put) // 5 - 1
    asked.require_exact()
    assert asked.queries > 6
