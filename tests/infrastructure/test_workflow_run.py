"""Deployed stacks run to their end with the bundled code, and every call they made checked."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compactor.settings.settings import Settings
from compactor_local.definition import REGION
from compactor_local.embedded import SeedObject
from tests.infrastructure.cloud import adapter, engine
from tests.infrastructure.cloud.audit import Audit
from tests.infrastructure.cloud.deployment import Deployment, deploy
from tests.infrastructure.cloud.done import audit_of
from tests.infrastructure.cloud.iam import Call
from tests.infrastructure.cloud.reading import Readers, rights_of_readers
from tests.infrastructure.cloud.running import Cloud, cloud
from tests.infrastructure.configurations import CONFIGURATIONS, expected_buckets
from tests.infrastructure.conftest import Synthesized

pytestmark = pytest.mark.skipif(
    platform.system() != "Linux", reason="the bundle of a Lambda function is for Linux"
)
_DAY = 86_400
_NAMES = "abcdef"
Start = Callable[[Deployment, Mapping[str, Any], Path], tuple[str, str | None]]


@dataclass(frozen=True)
class Ran:
    """A run that ended.

    Attributes:
        status: as Step Functions says it.
        cause: of a failure.
        given: the input.
        audit: what was done, and what is allowed.
        left: source keys that are there afterwards.
        outputs: key -> content of what is in the destination afterwards.
    """

    deployment: Deployment
    status: str
    cause: str | None
    given: Mapping[str, Any]
    audit: Audit
    left: frozenset[str]
    outputs: Mapping[str, bytes]

    @property
    def records(self) -> list[bytes]:
        """Every record of every output, in order, as a line of JSON."""
        return sorted(line for body in self.outputs.values() for line in _records_of(body))


def _records_of(body: bytes) -> list[bytes]:
    if not body.startswith(b"PAR1"):
        return body.splitlines()
    return [json.dumps(row).encode() for row in pq.read_table(BytesIO(body)).to_pylist()]


def _lines(name: str) -> bytes:
    return "".join(f'{{"id": "{name}-{number}"}}\n' for number in range(3)).encode()


_RECORDS = sorted(line for name in _NAMES for line in _lines(name).splitlines())


def _seed(on: Cloud, uri: str, day: str) -> None:
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    old = time.time() - 2 * _DAY
    objects = [SeedObject(f"{prefix}{day}{name}.json", _lines(name), old) for name in _NAMES]
    on.seed(bucket, objects)


def _objects(on: Cloud, uri: str) -> dict[str, bytes]:
    client = on.client("s3")
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    listed = client.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
    return {
        one["Key"]: client.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()
        for one in listed
    }


def _scheduled_input(deployment: Deployment) -> dict[str, Any]:
    given: dict[str, Any] = json.loads(deployment.outputs["DefaultInput"])
    return given


def _workflow(
    deployment: Deployment, given: Mapping[str, Any], scratch: Path, run_name: str = "run-1"
) -> tuple[str, str | None]:
    result = engine.run(deployment, given, scratch, run_name=run_name)
    return result.status, result.cause


def _function(
    deployment: Deployment, given: Mapping[str, Any], scratch: Path, run_name: str = "run-1"
) -> tuple[str, str | None]:
    """The one function of standalone mode, started as the scheduler starts it."""
    (name,) = deployment.functions
    (scratch / "functions.json").write_text(
        json.dumps({name: engine.described(deployment, name, scratch)}), encoding="utf-8"
    )
    os.environ[adapter.FUNCTIONS] = str(scratch / "functions.json")
    try:
        answer = adapter.handler(given, engine.Context(name, run_name))
    except Exception as error:
        return "FAILED", str(error)
    finally:
        del os.environ[adapter.FUNCTIONS]
        adapter.end(name)
    return str(answer["status"]).upper(), None


def _with_readers(
    start: Callable[[Deployment, Mapping[str, Any], Path, str], tuple[str, str | None]],
    deployment: Deployment,
    given: Mapping[str, Any],
    scratch: Path,
) -> tuple[str, str | None]:
    """Runs beside which query engines read, late objects arrive and lists get lost."""
    readers = Readers(deployment.cloud, given)
    return readers.go_through(partial(start, deployment, given, scratch))


def _by_events(
    deployment: Deployment, given: Mapping[str, Any], scratch: Path
) -> tuple[str, str | None]:
    """What SQS, the scheduler and Step Functions do: events, a sweep that starts a run, a sweep."""
    name = deployment.assembly.name
    functions = [f"{name}-{one}" for one in ("register", "sweep")]
    described = {one: engine.described(deployment, one, scratch) for one in functions}
    for one in described.values():
        _start_at(5, one["environment"])
    (scratch / "functions.json").write_text(json.dumps(described), encoding="utf-8")
    os.environ[adapter.FUNCTIONS] = str(scratch / "functions.json")
    try:
        batch = {"Records": [*_messages(deployment.cloud, given["s3_source_uri"])]}
        answer = adapter.handler(batch, engine.Context(functions[0]))
        assert answer == {"batchItemFailures": []}
        adapter.handler({}, engine.Context(functions[1]))
        started = _started(deployment)
        ended = engine.run(deployment, started, scratch, run_name="run-1")
        swept = adapter.handler({}, engine.Context(functions[1]))
        # The sources are for the schedule's run to clean up.
        cleaned = engine.run(deployment, given, scratch, run_name="run-2")
        assert cleaned.status == "SUCCEEDED", cleaned.cause
        _reconcile(deployment, given["s3_source_uri"], functions[1])
    finally:
        adapter.end(*functions)
        del os.environ[adapter.FUNCTIONS]
    (stream,) = swept["streams"]
    assert (stream["stream"], stream["pending_objects"]) == (name, 0)
    assert Settings.from_input(started) == Settings.from_input({**given, "clean_up": "keep"})
    return ended.status, ended.cause


def _start_at(objects: int, environment: dict[str, str]) -> None:
    """Let the sweep start a run for so few objects at once."""
    (stream,) = json.loads(environment["STREAMS"])
    environment["STREAMS"] = json.dumps([{**stream, "objects": objects}])


def _reconcile(deployment: Deployment, uri: str, sweep: str) -> None:
    """The sweep of once a day finds an object of which nobody told."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
    untold = SeedObject(f"{prefix}untold.json", _lines("untold"), time.time() - _DAY)
    deployment.cloud.seed(bucket, [untold])
    (found,) = adapter.handler({"reconcile": True}, engine.Context(sweep))["streams"]
    assert (found["reconciled"]["registered"], found["pending_objects"]) == (1, 1)
    deployment.cloud.client("s3").delete_object(Bucket=bucket, Key=untold.key)


def _messages(on: Cloud, uri: str) -> Iterator[Mapping[str, Any]]:
    """What EventBridge has sent to the queue of the objects of a source."""
    bucket, _, prefix = uri.removeprefix("s3://").partition("/")
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


@dataclass(frozen=True)
class Plan:
    """What to run.

    Attributes:
        kind: a configuration.
        day: where below the source the objects lie.
        person: fields that a person gives as the input; None for the scheduler's input.
        start: what starts it.
    """

    kind: str
    day: str = ""
    person: Mapping[str, Any] | None = None
    start: Start = _workflow


_GIVEN_BY_HAND = {
    "s3_source_uri": "s3://app-logs/raw/",
    "s3_destination_uri": "s3://lake/compacted/",
    "date_format": "%Y/%m/%d",
    "duration": 2,
}
# As the standalone configuration has it.
_STANDALONE = {
    "s3_source_uri": "s3://app-logs/raw/",
    "s3_destination_uri": "s3://lake/compacted/",
    "clean_up": "delete",
    "retention_days": 0,
}
_YESTERDAY = (datetime.now(UTC) - timedelta(days=1)).strftime("%Y/%m/%d/")
_PLANS = {
    "the scheduler's input": Plan("nothing set"),
    "an input given by hand": Plan("two days", day=_YESTERDAY, person=_GIVEN_BY_HAND),
    "rows, by workers": Plan(
        "two days", day=_YESTERDAY, person={**_GIVEN_BY_HAND, "output_format": "parquet"}
    ),
    "rows, standalone": Plan(
        "standalone, clean-up, imported buckets",
        person={**_STANDALONE, "output_format": "parquet"},
        start=_function,
    ),
    "KMS and clean-up": Plan("KMS, clean-up, imported buckets"),
    "standalone": Plan("standalone, clean-up, imported buckets", start=_function),
    "readers' table, KMS and clean-up": Plan(
        "readers' table, KMS, clean-up, imported buckets",
        day="day/",
        start=partial(_with_readers, _workflow),
    ),
    "readers' table, standalone": Plan(
        "standalone, readers' table, clean-up, imported buckets",
        day="day/",
        start=partial(_with_readers, _function),
    ),
    "events, KMS and clean-up": Plan("events, KMS, imported buckets", start=_by_events),
}


@pytest.fixture(scope="module", params=list(_PLANS))
def ran(
    request: pytest.FixtureRequest,
    bundled: Synthesized,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ran]:
    """Each plan, carried out once."""
    plan = _PLANS[request.param]
    with cloud() as on:
        buckets = expected_buckets(CONFIGURATIONS[plan.kind])
        deployment = deploy(on, bundled(plan.kind), buckets).read()
        given = plan.person or _scheduled_input(deployment)
        _seed(on, given["s3_source_uri"], plan.day)
        on.requests()
        status, cause = plan.start(deployment, given, tmp_path_factory.mktemp("run"))
        yield Ran(
            deployment=deployment,
            status=status,
            cause=cause,
            given=given,
            audit=audit_of(deployment, plan.kind),
            left=frozenset(_objects(on, given["s3_source_uri"])),
            outputs=_objects(on, given["s3_destination_uri"]),
        )


def test_the_run_succeeds_and_every_record_is_in_one_output(ran: Ran) -> None:
    assert ran.status == "SUCCEEDED", ran.cause
    assert len(ran.outputs) == 1
    assert ran.records == _RECORDS


def test_sources_are_deleted_only_where_the_deployment_cleans_up(ran: Ran) -> None:
    assert len(ran.left) == (0 if ran.given.get("clean_up") == "delete" else len(_NAMES))


def test_every_function_that_has_work_did_it_under_its_own_name(ran: Ran) -> None:
    # Two functions: the one that plans a clean-up, and the one that does it.
    idle = {name for name in ran.deployment.functions if name.endswith("-clean-up")}
    if ran.given.get("clean_up") == "delete":
        idle = set()

    senders = {
        sender
        for sender, calls in ran.audit.done.items()
        if any(call.action.startswith(("s3:", "dynamodb:")) for call in calls)
    }

    machine = {engine.STATE_MACHINE} if ran.deployment.machines else set()
    assert senders == {*ran.deployment.functions} - idle | machine


def test_every_call_is_allowed_to_the_role_that_made_it(ran: Ran) -> None:
    assert ran.audit.refused() == []


def test_taking_one_statement_out_refuses_exactly_the_calls_that_only_it_allows(ran: Ran) -> None:
    shown = 0
    for refused, only in ran.audit.taken_out():
        assert refused == only
        shown += bool(only)
    assert shown >= 2 * len(ran.deployment.functions)


def test_each_right_to_what_query_engines_are_shown_is_used(ran: Ran) -> None:
    rights = [
        (sender, one)
        for sender, policies in ran.audit.policies.items()
        for one in rights_of_readers(policies)
    ]

    spare = [
        f"{sender}: {one.actions} on {one.resources}"
        for sender, one in rights
        if not any(one.covers(call) for call in ran.audit.done[sender])
    ]

    assert spare == []
    assert {sender for sender, _ in rights} == {
        name
        for name in ran.deployment.functions
        if "reader_table" in ran.given
        and name.endswith(("-compact-partition", "-clean-up", "-standalone"))
        and not name.endswith("-plan-clean-up")
    }


def test_what_only_a_crash_makes_necessary_is_allowed_as_well(ran: Ran) -> None:
    worker = "standalone" if not ran.deployment.machines else "compact-partition"
    (name,) = [name for name in ran.deployment.functions if name.endswith(worker)]
    bucket, _, prefix = ran.given["s3_destination_uri"].removeprefix("s3://").partition("/")
    output = f"arn:aws:s3:::{bucket}/{prefix}compacted-0.json"
    repairs = {
        Call("s3:AbortMultipartUpload", output),
        Call("s3:GetObject", output),
        # HEAD of an output that is not there must be 404, not 403.
        Call(
            "s3:ListBucket",
            f"arn:aws:s3:::{bucket}",
            (("s3:prefix", f"{prefix}compacted-0.json"),),
        ),
    }

    assert [str(call) for call in repairs if not ran.audit.policies[name].allow(call)] == []
