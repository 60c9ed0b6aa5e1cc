"""The whole workflow, with partitions for Lambda and for Spark in one run."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_local.embedded import EmbeddedS3, SeedObject
from compactor_local.engine import EngineOptions, WorkflowProgress, WorkflowResult, run_workflow
from tests.spark.gate import Denied, Gate, Request
from tests.support.audit import Places, audit

pytestmark = pytest.mark.slow
_names = itertools.count(1)


class Workflow:
    """A source with partitions of several sizes; more than three objects are oversized."""

    def __init__(self, s3: EmbeddedS3, log: Path) -> None:
        self.s3 = s3
        self.log = log
        number = next(_names)
        self.source, self.lake = f"workflow-{number}-source", f"workflow-{number}-lake"
        for bucket in (self.source, self.lake):
            s3.create_bucket(bucket)
        self.given: dict[str, Any] = {
            "s3_source_uri": f"s3://{self.source}/logs/",
            "s3_destination_uri": f"s3://{self.lake}/compacted/",
            "depth": 1,
            "formats": [{"match": "*.csv", "format": "csv", "header": True}],
            "lambda_max_bytes": 90,
        }
        self.settings = Settings.from_input(self.given)
        self.progress: list[WorkflowProgress] = []

    def seed(self, objects: dict[str, bytes]) -> None:
        arrived = time.time() - 9 * 86_400
        seeds = (SeedObject(f"logs/{key}", body, arrived) for key, body in objects.items())
        self.s3.seed(self.source, seeds)

    def run(
        self, endpoint_url: str, services: Mapping[str, str] | None = None, **fields: Any
    ) -> WorkflowResult:
        return run_workflow(
            {**self.given, **fields},
            run_name="run",
            workers=1,
            endpoint_url=endpoint_url,
            on_progress=self.progress.append,
            options=EngineOptions(
                environment={**self.s3.environment, **(services or {})}, log=self.log, wait_scale=0
            ),
        )

    def report(self) -> dict[str, Any]:
        store = S3Store(make_client(self.s3.endpoint_url))
        body = store.get(*self.settings.layout.run("run", "report.json"))
        found: dict[str, Any] = json.loads(body)
        return found

    def log_of_the_job(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-4000:]


@pytest.fixture
def workflow(s3: EmbeddedS3, tmp_path: Path) -> Workflow:
    return Workflow(s3, tmp_path / "log")


def lines(path: str, count: int) -> dict[str, bytes]:
    return {f"{path}{n:03}.json": b'{"path": "%s", "n": %d}\n' % (path.encode(), n)
            for n in range(count)}  # fmt: skip


def test_one_report_covers_small_and_oversized_partitions(
    s3: EmbeddedS3, workflow: Workflow
) -> None:
    workflow.seed({**lines("small/", 3), **lines("large/", 40), **lines("larger/", 60)})

    result = workflow.run(s3.endpoint_url)

    assert result.status == "SUCCEEDED", (result.cause, workflow.log_of_the_job())
    found = workflow.report()
    assert found["status"] == "succeeded"
    objects = {one["path"]: one["counts"]["objects_in"] for one in found["partitions"]}
    assert objects == {"small/": 3, "large/": 40, "larger/": 60}
    assert (found["spark"], found["oversized"]) == (["large/", "larger/"], [])
    assert (found["totals"]["objects_in"], found["totals"]["objects_out"]) == (103, 3)
    settings = workflow.settings
    places = Places(settings.source.root, settings.destination, settings.state)
    proof = audit(places, make_client(s3.endpoint_url))
    assert proof.holds, proof.findings
    last = workflow.progress[-1]
    assert (last.partitions_done, last.partitions_total) == (3, 3)
    assert last.objects_done == 103
    assert any(one.spark for one in workflow.progress), "the job was never heard of"


def test_query_engines_see_what_spark_has_committed(s3: EmbeddedS3, workflow: Workflow) -> None:
    workflow.seed({**lines("small/", 2), **lines("large/", 8)})
    glue = s3.client("glue")
    glue.create_database(DatabaseInput={"Name": workflow.lake})
    table = {"DatabaseName": workflow.lake, "TableName": "logs"}

    result = workflow.run(
        s3.endpoint_url,
        {"AWS_ENDPOINT_URL_GLUE": s3.endpoint_url},
        reader_table=f"glue:{workflow.lake}.logs",
    )

    assert result.status == "SUCCEEDED", (result.cause, workflow.log_of_the_job())
    assert workflow.report()["spark"] == ["large/"]
    shown = {
        one["Values"][0]: one["StorageDescriptor"]["Location"]
        for one in glue.get_partitions(**table)["Partitions"]
    }
    assert shown == {name: f"s3://{workflow.lake}/compacted/{name}/" for name in ("small", "large")}


def test_a_failure_of_spark_fails_the_run_after_all_else_is_committed(
    workflow: Workflow, proxy: Gate
) -> None:
    denied = {"large/denied.json": b'{"n": 9}\n'}
    refused = {"half/refused.csv": b"id,n\n1,2\n"}
    small, large, half = lines("small/", 2), lines("large/", 5), lines("half/", 4)
    workflow.seed({**small, **large, **half, **denied, **refused})

    def deny(request: Request) -> None:
        written = request.method != "GET" and "/compacted/half/" in request.path
        if request.path.endswith("/denied.json") or (written and request.path.endswith(".csv")):
            raise Denied

    proxy.rules.append(deny)
    result = workflow.run(proxy.endpoint_url, spark_engine="emr_serverless")

    assert (result.status, result.error) == ("FAILED", "PartitionsFailed")
    cause = result.cause or ""
    assert cause.startswith("Spark: InvalidInput: half/: InvalidInput: "), workflow.log_of_the_job()
    assert "/compacted/half/" in cause
    assert "\n" not in cause
    found = workflow.report()
    status = {one["path"]: one["status"] for one in found["partitions"]}
    assert status == {"small/": "done", "large/": "done", "half/": "failed"}
    left = {one["path"]: one["counts"]["quarantined"] for one in found["partitions"]}
    assert left == {"small/": 0, "large/": 1, "half/": 0}, "what may not be read stops nothing"
    assert found["totals"]["objects_in"] == 2 + 5 + 4
    last = workflow.progress[-1]
    assert (last.partitions_done, last.partitions_failed) == (2, 1)
