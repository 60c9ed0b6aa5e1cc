"""A deployed stack maintains tables to the end, with the bundled code; every call is checked."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("pyiceberg")

import pyarrow as pa

from compactor.s3.store import S3Store, make_client
from compactor.settings.tables import parse_table
from compactor.table_formats.iceberg_catalogs import iceberg_catalog
from compactor_local.embedded import SeedObject, in_environment
from compactor_local.engine import BRIDGES, WorkflowResult
from tests.infrastructure.cloud import engine, maintaining
from tests.infrastructure.cloud.calls import refused_of
from tests.infrastructure.cloud.deployment import Deployment, deploy
from tests.infrastructure.cloud.running import Cloud, cloud
from tests.infrastructure.configurations import CONFIGURATIONS, expected_buckets
from tests.infrastructure.conftest import Synthesized
from tests.support.maintained_tables import DeltaLines, added
from tests.support.memory_store import MemoryStore

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux", reason="the bundle of a Lambda function is for Linux"
)
KIND = "maintenance"
_SPARK = "arn:aws:states:::emr-serverless:startJobRun.sync"
_BRIDGES = {
    **BRIDGES,
    _SPARK: f"{maintaining.__name__}:spark",
    "arn:aws:states:::athena:startQueryExecution.sync": f"{maintaining.__name__}:athena",
}
_DELTA, _ICEBERG = "delta:s3://tables/delta/orders/", "glue:bronze.events"
_FILES, _OLD_SECONDS = 6, 2 * 86_400


@dataclass(frozen=True)
class Ran:
    """A run of maintenance that ended.

    Attributes:
        report: as the state machine's last function wrote it.
        rows: of the Delta table, by what its log names.
    """

    deployment: Deployment
    result: WorkflowResult
    report: dict[str, Any]
    refused: list[str]
    senders: set[str]
    rows: list[bytes]


def _seed_delta(on: Cloud) -> None:
    """A table of two partitions, each of small files of text."""
    kept = MemoryStore()
    kept.add_bucket("lake")
    lines = DeltaLines(kept, "delta/orders/", ["day"])
    old = time.time() - _OLD_SECONDS
    for day in "ab":
        for number in range(_FILES):
            path, body = f"day={day}/{number}.txt", f"{day}{number}\n".encode()
            kept.seed("lake", f"delta/orders/{path}", body)
            lines.commit(added(path, len(body), 1, partitionValues={"day": day}))
    found = kept.contents("lake", "")
    on.seed("tables", [SeedObject(key, body, old) for key, body in found.items()])


def _seed_iceberg(on: Cloud) -> None:
    """A table in Glue, as another engine would leave it."""
    with in_environment({**on.environment, "AWS_ENDPOINT_URL": on.endpoint_url}):
        store = S3Store(make_client(on.endpoint_url))
        catalog = iceberg_catalog(parse_table(_ICEBERG), store)
        catalog.create_namespace("bronze")
        rows = pa.table({"id": [1, 2, 3]})
        where = "s3://tables/bronze/events"
        table = catalog.create_table("bronze.events", rows.schema, location=where)
        for _ in range(_FILES):
            table.append(rows)


@pytest.fixture(scope="module")
def ran(bundled: Synthesized, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with cloud() as on:
        buckets = expected_buckets(CONFIGURATIONS[KIND])
        deployment = deploy(on, bundled(KIND), buckets).read()
        _seed_delta(on)
        _seed_iceberg(on)
        on.requests()
        given = json.loads(deployment.outputs["TablesInput"])
        result = engine.run(
            deployment,
            given,
            tmp_path_factory.mktemp("run"),
            run_name="run-1",
            bridges=_BRIDGES,
        )
        assert result.status == "SUCCEEDED", f"{result.error}: {result.cause}"
        others = {maintaining.SPARK_JOB: deployment.spark}
        refused, senders = refused_of(deployment, on.requests(), others)
        client = on.client("s3")
        state = deployment.outputs["StateUri"].removeprefix("s3://").partition("/")
        key = f"{state[2]}runs/run-1/tables-report.json"
        report = json.load(client.get_object(Bucket=state[0], Key=key)["Body"])
        yield Ran(deployment, result, report, refused, senders, _rows(client))


def _rows(client: Any) -> list[bytes]:
    """Rows of the Delta table."""
    listed = client.list_objects_v2(Bucket="tables", Prefix="delta/orders/")["Contents"]
    bodies = {
        one["Key"]: client.get_object(Bucket="tables", Key=one["Key"])["Body"].read()
        for one in listed
    }
    alive: set[str] = set()
    for key in sorted(one for one in bodies if "_delta_log" in one):
        for action in map(json.loads, bodies[key].splitlines()):
            alive |= {action["add"]["path"]} if "add" in action else set()
            alive -= {action["remove"]["path"]} if "remove" in action else set()
    return sorted(row for path in alive for row in bodies[f"delta/orders/{path}"].splitlines())


def test_the_run_maintains_each_table_by_its_engine(ran: Ran) -> None:
    assert ran.result.status == "SUCCEEDED", ran.result.cause
    told = {one["table"]: one for one in ran.report["tables"]}
    assert set(told) == {_DELTA, _ICEBERG}
    delta, iceberg = told[_DELTA], told[_ICEBERG]
    assert (delta["engine"], delta["status"], delta["partitions"]) == ("spark", "done", 2)
    assert (delta["files"], delta["into"], delta["rows"]) == (2 * _FILES, 2, 2 * _FILES)
    assert (iceberg["engine"], iceberg["status"]) == ("athena", "done")
    assert ran.rows == sorted(f"{day}{n}".encode() for day in "ab" for n in range(_FILES))


def test_every_function_did_its_work_and_every_call_is_allowed_to_its_role(ran: Ran) -> None:
    senders = {*ran.deployment.functions, engine.STATE_MACHINE, maintaining.SPARK_JOB}

    assert ran.senders == senders
    assert ran.refused == []
