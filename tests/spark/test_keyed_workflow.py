"""The state machine, with a table whose rows have a key: Spark merges, PublishTable looks at it.

By spark-submit, with the real Iceberg and the real Delta, as ``compactor run --workers`` has it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from compactor import layout
from compactor.settings.settings import Settings
from compactor.stores.s3 import S3Store, make_client
from compactor_cli.local.embedded import EmbeddedS3, SeedObject
from compactor_cli.local.engine import run_workflow
from compactor_cli.local.model import EngineOptions, WorkflowResult
from compactor_cli.local.spark_jars import JARS_VARIABLE, packages_environment
from compactor_cli.local.spark_submit import SparkHere
from tests.spark.gate import Denied, Gate, Request
from tests.support.embedded import find_embedded
from tests.support.server_builds import Unavailable, table_jars

pytestmark = pytest.mark.slow
Row = Mapping[str, Any]


@dataclass
class Workflow:
    """Changes of people, and runs of the state machine over them.

    Attributes:
        read: the rows of the table, by a library that has not written them.
    """

    s3: EmbeddedS3
    source: str
    given: dict[str, Any]
    log: Path
    read: Callable[[], list[Row]]
    _names: Iterator[int] = field(default_factory=lambda: iter(range(1, 100)))

    def arrive(self, path: str, *records: Row) -> None:
        body = b"".join(json.dumps(one).encode() + b"\n" for one in records)
        key = f"cdc/{path}/{next(self._names):05}.json"
        self.s3.seed(self.source, [SeedObject(key, body, time.time() - 9 * 86_400)])

    def run(self, name: str, endpoint_url: str) -> WorkflowResult:
        settings = Settings.from_input(self.given)
        environment = {
            **self.s3.environment,
            **packages_environment(settings),
            JARS_VARIABLE: str(table_jars()[0].parent),
        }
        return run_workflow(
            self.given,
            run_name=name,
            workers=1,
            endpoint_url=endpoint_url,
            options=EngineOptions(environment=environment, log=self.log, wait_scale=0),
        )

    def report(self, name: str) -> dict[str, Any]:
        store = S3Store(make_client(self.s3.endpoint_url))
        key = layout.run_key(Settings.from_input(self.given), name, "report.json")
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
    source, bucket = f"people-{request.param}-source", f"people-{request.param}-lake"
    for one in (source, bucket):
        s3.create_bucket(one)
    given: dict[str, Any] = {
        "s3_source_uri": f"s3://{source}/cdc/",
        "depth": 1,
        "upsert_key": ["id"],
        "order_by": ["at"],
        "delete_when": {"op": ["D"]},
        "parquet_schema": "id BIGINT, at BIGINT, op STRING, name STRING",
    }
    if request.param == "iceberg":
        catalog = f"sqlite:///{tmp_path}/people.db"
        given["s3_destination_uri"] = f"s3://{bucket}/changes/"
        given["table"] = f"sql:{catalog}#lake.people"

        def read() -> list[Row]:
            known = {"type": "sql", "uri": catalog, "s3.endpoint": s3.endpoint_url}
            found = load_catalog("compactor", **known).load_table("lake.people").scan().to_arrow()
            return list(found.to_pylist())
    else:
        given["s3_destination_uri"] = f"s3://{bucket}/people/_changes/"
        given["table"] = f"delta:s3://{bucket}/people/"

        def read() -> list[Row]:
            options = {"AWS_ENDPOINT_URL": s3.endpoint_url, "AWS_ALLOW_HTTP": "true"}
            found = DeltaTable(f"s3://{bucket}/people/", storage_options=options)
            return list(found.to_pyarrow_table().to_pylist())

    return Workflow(s3, source, given, tmp_path / "log", read)


def change(key: int, at: int, name: str, op: str = "U") -> Row:
    return {"id": key, "at": at, "op": op, "name": name}


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
    rows = sorted(workflow.read(), key=lambda row: int(row["id"]))
    assert rows == [change(1, 1, "Ann"), change(3, 5, "Cid")]
    told = workflow.report("run-2")["table"]["upserts"]
    assert {name: told[name] for name in ("records", "inserted", "deleted", "superseded")} == {
        "records": 5,
        "inserted": 2,
        "deleted": 1,
        "superseded": 2,
    }
