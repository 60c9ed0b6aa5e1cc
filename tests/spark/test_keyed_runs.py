"""``compactor run`` with an upsert key: on the real Iceberg and the real Delta, read by others."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from compactor.report.report import RunReport
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_cli.commands import verify
from compactor_cli.whole import Machine, run_here
from compactor_local.embedded import EmbeddedS3
from compactor_spark import compact_partitions, opening
from compactor_spark.upsert.delta import DeltaTables
from compactor_spark.upsert.iceberg import IcebergTables
from tests.spark.people import Row, arrive, change, people_of
from tests.support.embedded import find_embedded
from tests.support.table_engines import small_session

pytestmark = pytest.mark.slow
_names = itertools.count(1)


class Killed(BaseException):
    """As if the driver were gone."""


class Lasting:
    """A session that goes on when a job stops it."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def stop(self) -> None:
        """Others need it."""


class SparkHere:
    """The job as spark-submit runs it, in this process."""

    def run(self, run_id: str, run_uri: str, on_line: Callable[[str], None]) -> str:
        try:
            return "" if compact_partitions.main(["--run", run_uri]) == 0 else "failed"
        except Killed:
            return "exit status 137"

    def stop(self) -> None:
        """It ends by itself."""


@dataclass
class Lake:
    """Changes of people, as they arrive, and the table of them.

    Attributes:
        read: the rows of the table, by a library that has not written them.
        take_back: the rows to what they were before the last merge, by that library.
    """

    s3: EmbeddedS3
    source: str
    settings: Settings
    read: Callable[[], list[Row]]
    take_back: Callable[[], object]

    def arrive(self, path: str, *records: Row) -> None:
        arrive(self.s3, self.source, f"{path}/{next(_names):05}", records)

    def run(self) -> RunReport:
        done = run_here(self.settings, Machine(1, self.s3.endpoint_url, spark=SparkHere()))
        assert done.report is not None
        return done.report

    def merged(self) -> tuple[int, ...]:
        """A run that succeeds: inserted, updated, deleted, superseded, stale."""
        report = self.run()
        assert report.status == "succeeded", report.cause
        assert report.table is not None
        counts = report.table.upserts
        if counts is None:
            return (0, 0, 0, 0, 0)
        assert counts.accounted == counts.records
        return (counts.inserted, counts.updated, counts.deleted, counts.superseded, counts.stale)

    @property
    def people(self) -> dict[int, str]:
        rows = self.read()
        assert all(set(row) == {"id", "at", "op", "name"} for row in rows)
        found = {row["id"]: row["name"] for row in rows}
        assert len(found) == len(rows)
        return found


@pytest.fixture(params=["iceberg", "delta"])
def lake(
    request: pytest.FixtureRequest,
    s3: EmbeddedS3,
    tables: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Lake:
    find_embedded(s3, monkeypatch)
    monkeypatch.setattr(opening, "pinned_session", small_session)
    monkeypatch.setattr(compact_partitions, "start_session", lambda _: Lasting(tables))
    source, people = people_of(request.param, s3, f"keyed-{next(_names)}", tmp_path)
    return Lake(s3, source, Settings.from_input(people.given), people.read, people.take_back)


def test_a_run_merges_what_it_compacts_and_what_a_killed_one_has_left(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.arrive("a", change(1, 1, "Ann"), change(2, 1, "Bob"), change(2, 1, "Bobby"))
    lake.arrive("b", change(3, 5, "Cid"), change(4, 3, "", "D"))
    assert lake.merged() == (3, 0, 1, 1, 0)
    assert lake.people == {1: "Ann", 2: "Bobby", 3: "Cid"}
    # An update, a delete, and two late records: of a row, and of a key that was deleted since.
    lake.arrive("a", change(1, 2, "Anna"), change(2, 3, "", "D"))
    lake.arrive("a", change(3, 4, "late"), change(4, 2, "zombie"))

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        for engine in (IcebergTables, DeltaTables):
            patched.setattr(engine, "merge", killed)
        report = lake.run()
    assert report.status == "failed"
    assert "exit status 137" in report.cause
    assert lake.people == {1: "Ann", 2: "Bobby", 3: "Cid"}
    # Nothing new has come: what is committed and named is merged.
    assert lake.merged() == (0, 1, 1, 0, 2)
    assert lake.people == {1: "Anna", 3: "Cid"}
    store = S3Store(make_client(lake.s3.endpoint_url))
    checked = verify.check(lake.settings, store, sources=True)
    assert checked.findings == []
    assert checked.table is not None
    assert (checked.table.outputs, checked.table.waiting) == (3, 0)
    # Whoever has no Spark sees as well that what was merged is no longer there.
    lake.take_back()
    assert lake.people == {1: "Ann", 2: "Bobby", 3: "Cid"}
    (told,) = verify.check(lake.settings, store, sources=False).findings
    assert "does not have what it says: " in told
