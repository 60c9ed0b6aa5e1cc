"""JSON becomes the rows of an Iceberg table: by the state machine with its functions, and here."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from compactor.catalogs.opening import open_catalog
from compactor.log.identity import read_identity
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_cli.machine.installed import import_roots
from compactor_cli.whole import Machine, run_here
from compactor_local.embedded import EmbeddedS3, SeedObject
from compactor_local.engine import EngineOptions, WorkflowResult, run_workflow
from tests.support.embedded import find_embedded

pytestmark = pytest.mark.slow
pytest.importorskip("pyiceberg")
_names = itertools.count(1)


class Sink:
    """A source of JSON lines in two partitions, and a table in a catalog of this machine."""

    def __init__(self, s3: EmbeddedS3, directory: Path) -> None:
        self.s3 = s3
        self.log = directory / "log"
        number = next(_names)
        self.source, self.lake = f"table-{number}-source", f"table-{number}-lake"
        for bucket in (self.source, self.lake):
            s3.create_bucket(bucket)
        self.given: dict[str, Any] = {
            "s3_source_uri": f"s3://{self.source}/logs/",
            "s3_destination_uri": f"s3://{self.lake}/compacted/",
            "depth": 1,
            "table": f"sql:sqlite:///{directory}/catalog.db#lake.events",
        }
        self.settings = Settings.from_input(self.given)
        self.store = S3Store(make_client(s3.endpoint_url))
        self._next = 0

    def arrive(self, path: str, objects: int = 3) -> None:
        seeds = []
        for _ in range(objects):
            body = b"".join(b'{"n": %d, "day": "%s"}\n' % (self._next + i, path.encode())
                            for i in range(2))  # fmt: skip
            self._next += 2
            key = f"logs/{path}/{self._next}.json"
            seeds.append(SeedObject(key, body, time.time() - 9 * 86_400))
        self.s3.seed(self.source, seeds)

    def run(self, name: str, **fields: Any) -> WorkflowResult:
        return run_workflow(
            {**self.given, **fields},
            run_name=name,
            workers=1,
            endpoint_url=self.s3.endpoint_url,
            on_progress=lambda _: None,
            options=EngineOptions(environment=self.s3.environment, log=self.log, wait_scale=0),
        )

    def report(self, run_id: str) -> dict[str, Any]:
        body = self.store.get(*self.settings.layout.run(run_id, "report.json"))
        found: dict[str, Any] = json.loads(body)
        return found

    def sources(self) -> list[str]:
        pages = self.store.list_objects(self.source, "logs/")
        return [one.key for page in pages for one in page]

    def table(self) -> Any:
        identity = read_identity(self.settings, self.store)
        assert identity is not None
        state = open_catalog(self.settings, self.store).load(identity.log_id)
        assert state is not None
        return state.handle

    def told(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-4000:]

    def must_have_all(self) -> None:
        rows = Counter(self.table().scan().to_arrow().column("n").to_pylist())
        assert rows == Counter(range(self._next))


@pytest.fixture
def sink(s3: EmbeddedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sink:
    find_embedded(s3, monkeypatch)
    return Sink(s3, tmp_path)


def test_the_workflow_brings_every_record_into_the_table_once(sink: Sink) -> None:
    sink.arrive("a")
    sink.arrive("b")
    result = sink.run("first")
    assert result.status == "SUCCEEDED", (result.cause, sink.told())
    sink.must_have_all()
    told = sink.report("first")["table"]
    assert (told["status"], told["outputs"], told["rows"], told["commits"]) == ("done", 2, 12, 1)
    assert len(sink.table().snapshots()) == 1

    # The next run has late objects; and deletes all sources, whose outputs are in the table.
    sink.arrive("a", 1)
    result = sink.run("second", delete_after="0d")
    assert result.status == "SUCCEEDED", (result.cause, sink.told())
    sink.must_have_all()
    assert sink.report("second")["clean_up"]["deleted"] >= 6

    # A table that is gone ends the run before it compacts or deletes anything.
    table = sink.table()
    table.catalog.drop_table(table.name())
    sink.arrive("b", 1)
    before = sink.sources()
    result = sink.run("third", delete_after="0d")
    assert result.status == "FAILED"
    assert result.error == "IntegrityError"
    assert "it was dropped or renamed" in (result.cause or "")
    assert sink.sources() == before != []


def test_a_run_here_does_the_same(sink: Sink) -> None:
    sink.arrive("a")
    machine = Machine(1, sink.s3.endpoint_url, sink.log)
    done = run_here(sink.settings, machine)
    assert done.report is not None
    assert done.report.status == "succeeded", done.report.cause
    assert done.report.table is not None
    assert done.report.table.outputs == 1
    assert "table: 1 output, 6 rows in sql:" in str(done.report)
    sink.must_have_all()


_RECIPE = re.compile(r"^```sh\n([^`]*'day\(ts\)'\n[^`]*)```$", re.MULTILINE)


def test_the_recipe_for_a_table_by_days_works_as_it_is_typed(
    s3: EmbeddedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repo_root: Path
) -> None:
    find_embedded(s3, monkeypatch)
    arrived = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [arrived - timedelta(days=back) for back in (3, 2)]
    lines = [f'{{"id": {n}, "ts": "{day:%Y-%m-%d}T{n:02}:59:59Z", "country": "de"}}\n'
             for day in days for n in (0, 23)]  # fmt: skip
    keys = [f"raw/{day:%Y/%m/%d}/{n}.json" for day in days for n in (0, 23)]
    seeds = [SeedObject(key, line.encode(), days[0].timestamp())
             for key, line in zip(keys, lines, strict=True)]  # fmt: skip
    s3.seed("my-events", seeds)
    s3.create_bucket("my-lake")
    (recipe,) = _RECIPE.findall((repo_root / "docs" / "tables.md").read_text(encoding="utf-8"))
    table = f"sql:sqlite:///{tmp_path}/catalog.db#lake.events"
    typed = f"compactor() {{ '{sys.executable}' -m compactor_cli \"$@\"; }}\n" + recipe.replace(
        ". .venv/bin/activate\n", ""
    ).replace("glue:lake.events", table)
    done = subprocess.run(
        ["/bin/sh", "-e", "-c", typed],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, import_roots()))},
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    settings = Settings.from_input(
        {
            "s3_source_uri": "s3://my-events/raw/",
            "s3_destination_uri": "s3://my-lake/events/",
            "table": table,
        }
    )
    store = S3Store(make_client(s3.endpoint_url))
    identity = read_identity(settings, store)
    assert identity is not None
    state = open_catalog(settings, store).load(identity.log_id)
    assert state is not None
    handle: Any = state.handle
    parts = handle.inspect.partitions().to_pylist()
    found = {one["partition"]["ts_day"]: one["record_count"] for one in parts}
    assert found == {day.date(): 2 for day in days}
    wanted = f"ts >= '{days[1]:%Y-%m-%d}T00:00:00+00:00'"
    with handle.scan(row_filter=wanted).to_duckdb("events") as connection:
        assert connection.execute("SELECT count(*) FROM events").fetchone() == (2,)
