"""Deployed stacks run to their end with the bundled code, and every call they made is checked."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compactor_local.definition import REGION
from compactor_local.embedded import SeedObject
from tests.infrastructure.cloud import adapter, engine
from tests.infrastructure.cloud.calls import refused_of
from tests.infrastructure.cloud.deployment import Deployment, deploy
from tests.infrastructure.cloud.running import Cloud, cloud
from tests.infrastructure.configurations import CONFIGURATIONS, expected_buckets
from tests.infrastructure.conftest import Synthesized

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux", reason="the bundle of a Lambda function is for Linux"
)
_DAY = 86_400
_NAMES = "abcdef"
Ended = tuple[str, str | None]
Start = Callable[[Deployment, Mapping[str, Any], Path], Ended]


@dataclass(frozen=True)
class Ran:
    """A run that ended.

    Attributes:
        status: as Step Functions says it.
        refused: calls that their senders' roles do not allow.
        senders: who sent requests to S3 or DynamoDB.
        sources: keys that are there afterwards.
        outputs: content of what is in the destination afterwards.
    """

    deployment: Deployment
    status: str
    cause: str | None
    given: Mapping[str, Any]
    refused: list[str]
    senders: set[str]
    sources: list[str]
    outputs: list[bytes]


def _lines(name: str) -> bytes:
    return "".join(f'{{"id": "{name}-{number}"}}\n' for number in range(3)).encode()


def _records_of(body: bytes) -> list[bytes]:
    if not body.startswith(b"PAR1"):
        return body.splitlines()
    return [json.dumps(row).encode() for row in pq.read_table(BytesIO(body)).to_pylist()]


def _split(uri: str) -> tuple[str, str]:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    return bucket, prefix


def _objects(on: Cloud, uri: str) -> dict[str, bytes]:
    client, (bucket, prefix) = on.client("s3"), _split(uri)
    listed = client.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
    return {
        one["Key"]: client.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()
        for one in listed
    }


def _workflow(deployment: Deployment, given: Mapping[str, Any], scratch: Path) -> Ended:
    result = engine.run(deployment, given, scratch, run_name="run-1")
    return result.status, result.cause


def _function(deployment: Deployment, given: Mapping[str, Any], scratch: Path) -> Ended:
    """The one function of standalone mode, started as the scheduler starts it."""
    on = deployment.cloud.client("glue")
    on.create_database(DatabaseInput={"Name": "lake"})
    (name,) = deployment.functions
    with _Adapted(deployment, [name], scratch):
        answer = adapter.handler(given, engine.Context(name, "run-1"))
    (partition,) = on.get_partitions(DatabaseName="lake", TableName="logs")["Partitions"]
    assert partition["Values"] == ["day"]
    return str(answer["status"]).upper(), None


class _Adapted:
    """Functions that the adapter runs in this process' place, in the block."""

    def __init__(self, deployment: Deployment, names: list[str], scratch: Path) -> None:
        self._names = names
        described = {one: engine.described(deployment, one, scratch) for one in names}
        (scratch / "functions.json").write_text(json.dumps(described), encoding="utf-8")
        os.environ[adapter.FUNCTIONS] = str(scratch / "functions.json")

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        adapter.end(*self._names)
        del os.environ[adapter.FUNCTIONS]


def _by_events(deployment: Deployment, given: Mapping[str, Any], scratch: Path) -> Ended:
    """What SQS, the scheduler and Step Functions do: events, a sweep that starts a run, a run."""
    name = deployment.assembly.name
    register, sweep = (f"{name}-{one}" for one in ("register", "sweep"))
    with _Adapted(deployment, [register, sweep], scratch):
        described = json.loads(Path(os.environ[adapter.FUNCTIONS]).read_text(encoding="utf-8"))
        (stream,) = json.loads(described[sweep]["environment"]["STREAMS"])
        # The sweep starts a run for so few objects at once.
        for one in described.values():
            one["environment"]["STREAMS"] = json.dumps([{**stream, "objects": 5}])
        Path(os.environ[adapter.FUNCTIONS]).write_text(json.dumps(described), encoding="utf-8")
        batch = {"Records": [*_messages(deployment.cloud, given["s3_source_uri"])]}
        assert adapter.handler(batch, engine.Context(register)) == {"batchItemFailures": []}
        adapter.handler({}, engine.Context(sweep))
        ended = engine.run(deployment, _started(deployment), scratch, run_name="run-1")
        assert ended.status == "SUCCEEDED", ended.cause
        (swept,) = adapter.handler({}, engine.Context(sweep))["streams"]
        assert swept["pending_objects"] == 0
        # The sources are for the schedule's run to clean up.
        cleaned = engine.run(deployment, given, scratch, run_name="run-2")
        untold = SeedObject("raw/untold.json", _lines("untold"), time.time() - _DAY)
        deployment.cloud.seed("app-logs", [untold])
        (found,) = adapter.handler({"reconcile": True}, engine.Context(sweep))["streams"]
        assert found["reconciled"]["registered"] == 1
        deployment.cloud.client("s3").delete_object(Bucket="app-logs", Key=untold.key)
    return cleaned.status, cleaned.cause


def _messages(on: Cloud, uri: str) -> Iterator[Mapping[str, Any]]:
    """What EventBridge has sent to the queue of the objects of a source."""
    bucket, prefix = _split(uri)
    listed = on.client("s3").list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]
    for number, one in enumerate(listed):
        about = {
            "key": one["Key"],
            "size": one["Size"],
            "etag": one["ETag"].strip('"'),
            "sequencer": f"{number:018X}",
        }
        event = {
            "version": "0",
            "id": str(number),
            "detail-type": "Object Created",
            "source": "aws.s3",
            "time": one["LastModified"].strftime("%Y-%m-%dT%H:%M:%SZ"),
            "region": REGION,
            "detail": {"version": "0", "bucket": {"name": bucket}, "object": about},
        }
        yield {"messageId": str(number), "body": json.dumps(event), "eventSource": "aws:sqs"}


def _started(deployment: Deployment) -> dict[str, Any]:
    """The input of the one execution that was started."""
    client = deployment.cloud.client("stepfunctions")
    arn = deployment.machine["stateMachineArn"]
    (execution,) = client.list_executions(stateMachineArn=arn)["executions"]
    found = client.describe_execution(executionArn=execution["executionArn"])
    given: dict[str, Any] = json.loads(found["input"])
    return given


_PLANS: Mapping[str, tuple[str, str, Mapping[str, Any], Start]] = {
    "the scheduler's input": ("default", "", {}, _workflow),
    "rows": ("default", "", {"output_format": "parquet"}, _workflow),
    "events, KMS and clean-up": ("events", "", {}, _by_events),
    "standalone, with a readers' table": ("standalone", "day/", {}, _function),
}


@pytest.fixture(scope="module", params=list(_PLANS))
def ran(
    request: pytest.FixtureRequest,
    bundled: Synthesized,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ran]:
    """Each plan, carried out once."""
    kind, day, more, start = _PLANS[request.param]
    with cloud() as on:
        deployment = deploy(on, bundled(kind), expected_buckets(CONFIGURATIONS[kind])).read()
        given = {**json.loads(deployment.outputs["DefaultInput"]), **more}
        bucket, prefix = _split(given["s3_source_uri"])
        old = time.time() - 2 * _DAY
        objects = [SeedObject(f"{prefix}{day}{one}.json", _lines(one), old) for one in _NAMES]
        on.seed(bucket, objects)
        on.requests()
        status, cause = start(deployment, given, tmp_path_factory.mktemp("run"))
        refused, senders = refused_of(deployment, on.requests())
        yield Ran(
            deployment=deployment,
            status=status,
            cause=cause,
            given=given,
            refused=refused,
            senders=senders,
            sources=[*_objects(on, given["s3_source_uri"])],
            outputs=[*_objects(on, given["s3_destination_uri"]).values()],
        )


def test_the_run_succeeds_and_every_record_is_in_one_output(ran: Ran) -> None:
    assert ran.status == "SUCCEEDED", ran.cause
    (output,) = ran.outputs
    assert sorted(_records_of(output)) == sorted(
        line for name in _NAMES for line in _lines(name).splitlines()
    )


def test_sources_are_deleted_only_where_the_deployment_cleans_up(ran: Ran) -> None:
    # A readers' table may still show them for an hour.
    cleaned = "delete_after" in ran.given and "reader_table" not in ran.given
    assert len(ran.sources) == (0 if cleaned else len(_NAMES))


def test_every_function_did_its_work_and_every_call_is_allowed_to_its_role(ran: Ran) -> None:
    machine = {engine.STATE_MACHINE} if ran.deployment.machines else set()

    assert ran.senders == {*ran.deployment.functions} | machine
    assert ran.refused == []
