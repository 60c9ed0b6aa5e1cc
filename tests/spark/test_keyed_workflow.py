"""The state machine, with a table whose rows have a key: Spark merges, PublishTable looks at it.

By spark-submit, with the real Iceberg and the real Delta, as ``compactor run --workers`` has it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_cli.machine.spark_jars import JARS_VARIABLE, packages_environment
from compactor_cli.machine.spark_submit import SparkHere
from compactor_local.embedded import EmbeddedS3
from compactor_local.engine import EngineOptions, WorkflowResult, run_workflow
from tests.spark.gate import Denied, Gate, Request
from tests.spark.people import People, Row, arrive, change, people_of
from tests.support.embedded import find_embedded
from tests.support.server_builds import Unavailable, table_jars

pytestmark = pytest.mark.slow


@dataclass
class Workflow:
    """Changes of people, and runs of the state machine over them."""

    s3: EmbeddedS3
    source: str
    people: People
    log: Path
    _names: Iterator[int] = field(default_factory=lambda: iter(range(1, 100)))

    def arrive(self, path: str, *records: Row) -> None:
        arrive(self.s3, self.source, f"{path}/{next(self._names):05}", records)

    def run(self, name: str, endpoint_url: str) -> WorkflowResult:
        settings = Settings.from_input(self.people.given)
        environment = {
            **self.s3.environment,
            **packages_environment(settings),
            JARS_VARIABLE: str(table_jars()[0].parent),
        }
        return run_workflow(
            self.people.given,
            run_name=name,
            workers=1,
            endpoint_url=endpoint_url,
            options=EngineOptions(environment=environment, log=self.log, wait_scale=0),
        )

    def report(self, name: str) -> dict[str, Any]:
        store = S3Store(make_client(self.s3.endpoint_url))
        key = Settings.from_input(self.people.given).layout.run(name, "report.json")
        found: dict[str, Any] = json.loads(store.get(*key))
        return found

    def log_of_the_job(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-4000:]


@pytest.fixture(params=["iceberg", "delta"])
def workflow(
    request: pytest.FixtureRequest, s3: EmbeddedS3, spark_here: SparkHere, tmp_path: Path
) -> Workflow:
    try:
        table_jars()
    except Unavailable as reason:
        pytest.skip(f"no jars of Iceberg and Delta: {reason}")
    source, people = people_of(request.param, s3, f"people-{request.param}", tmp_path)
    return Workflow(s3, source, people, tmp_path / "log")


def test_what_spark_could_not_merge_fails_the_run_and_the_next_one_merges_it(
    workflow: Workflow, proxy: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_embedded(workflow.s3, monkeypatch)
    workflow.arrive("a", change(1, 1, "Ann"), change(2, 1, "Bob"), change(2, 2, "", "D"))
    workflow.arrive("b", change(3, 5, "Cid"), change(3, 4, "late"))

    def deny(request: Request) -> None:
        """What either table is made of; outputs and the run's own records pass."""
        of_table = any(part in request.path for part in ("/changes.table/", "/people/_delta_log/"))
        if of_table and request.method in {"PUT", "POST"}:
            raise Denied

    proxy.rules.append(deny)
    failed = workflow.run("run-1", proxy.endpoint_url)
    assert failed.status == "FAILED", workflow.log_of_the_job()
    report = workflow.report("run-1")
    assert report["totals"]["objects_in"] == 2, "what was compacted stands"
    proxy.rules.clear()

    # Nothing new has come: Spark is started for what is left.
    result = workflow.run("run-2", proxy.endpoint_url)

    assert result.status == "SUCCEEDED", (result.cause, workflow.log_of_the_job())
    rows = sorted(workflow.people.read(), key=lambda row: int(row["id"]))
    assert rows == [change(1, 1, "Ann"), change(3, 5, "Cid")]
    told = workflow.report("run-2")["table"]["upserts"]
    assert {name: told[name] for name in ("records", "inserted", "deleted", "superseded")} == {
        "records": 5,
        "inserted": 2,
        "deleted": 1,
        "superseded": 2,
    }
