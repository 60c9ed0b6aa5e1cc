"""The handlers of events as Lambda calls them: SQS in, DynamoDB and Step Functions on moto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import Any

import boto3
import pytest

from compactor.aws.executions import StateMachine
from compactor.aws.registry import DynamoRegistry
from compactor.aws.registry_rows import create_table
from compactor.errors import InvalidInput
from compactor.invocation import kept_store
from compactor.orchestration.reconcile import Reconciliation
from compactor.registry.registry_ports import ExecutionState
from compactor_handlers import compact_partition, discover, events, register, sweep
from tests.support.dynamodb import client_at
from tests.support.moto_server import moto_server
from tests.support.s3_events import TEST_EVENT, bridged, notification, queued
from tests.unit.test_handlers import Context

_numbers = count()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with moto_server() as url:
        yield url


class Deployed:
    """One stream, as a deployment has it."""

    def __init__(self, url: str, monkeypatch: pytest.MonkeyPatch, **thresholds: int) -> None:
        number = next(_numbers)
        self.url, self.table = url, f"registry-{number}"
        self.source, self.lake = f"raw-{number}", f"events-lake-{number}"
        self.s3 = boto3.client("s3", endpoint_url=url)
        for bucket in (self.source, self.lake):
            self.s3.create_bucket(Bucket=bucket)
        self.dynamodb = client_at(url)
        create_table(self.dynamodb, self.table)
        self.machines = boto3.client("stepfunctions", endpoint_url=url)
        self.arn = self.machines.create_state_machine(
            name=f"machine-{number}",
            definition=json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}}),
            roleArn="arn:aws:iam::123456789012:role/role",
        )["stateMachineArn"]
        document = {
            "s3_source_uri": f"s3://{self.source}/logs/",
            "s3_destination_uri": f"s3://{self.lake}/compacted/",
            "depth": 1,
            "settle_seconds": 0,
        }
        self.document = document
        streams = [{"name": "logs", "input": document, **thresholds}]
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        monkeypatch.setenv("REGISTRY_TABLE", self.table)
        monkeypatch.setenv("STREAMS", json.dumps(streams))
        monkeypatch.setenv("STATE_MACHINE_ARN", self.arn)

    def put(self, name: str, **given: Any) -> str:
        """Write a source; returns the message about it."""
        key, body = f"logs/{name}", b'{"id": 1}\n'
        etag = self.s3.put_object(Bucket=self.source, Key=key, Body=body)["ETag"].strip('"')
        told = {"bucket": self.source, "etag": etag, "size": len(body), **given}
        return notification(key, **told)

    def registered(self, *bodies: str) -> list[str]:
        answer = register.handler(queued(bodies), Context())
        return [one["itemIdentifier"] for one in answer["batchItemFailures"]]

    def swept(self, **event: Any) -> dict[str, Any]:
        found: list[dict[str, Any]] = sweep.handler(event, Context())["streams"]
        return found[0]

    def executions(self) -> list[dict[str, Any]]:
        found = self.machines.list_executions(stateMachineArn=self.arn)["executions"]
        return [self.machines.describe_execution(executionArn=e["executionArn"]) for e in found]

    def items(self) -> list[dict[str, str]]:
        found = self.dynamodb.scan(TableName=self.table)["Items"]
        plain = [{name: next(iter(v.values())) for name, v in one.items()} for one in found]
        return [one for one in plain if "etag" in one]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    events.forget()
    kept_store.cache_clear()
    yield
    events.forget()
    kept_store.cache_clear()


@pytest.fixture
def deployed(fresh: None, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Deployed:
    return Deployed(endpoint, monkeypatch, objects=3, seconds=10_000)


def test_a_batch_is_registered_and_only_what_is_not_from_s3_comes_again(deployed: Deployed) -> None:
    told = deployed.put("a/1.json")
    foreign = bridged("logs/elsewhere.json", bucket="another")
    assert deployed.registered(told, "poison", TEST_EVENT, foreign, told) == ["m1"]
    (item,) = deployed.items()
    assert (item["sk"], item["state"], item["pending"]) == ("/1.json", "PENDING", "/1.json")


def test_a_sweep_past_the_threshold_starts_one_run_with_the_streams_input(
    deployed: Deployed,
) -> None:
    told = [deployed.put(f"a/{n}.json") for n in range(3)]
    assert deployed.registered(*told[:2]) == []
    assert deployed.swept()["started"] is None
    assert deployed.registered(told[2]) == []
    assert deployed.executions() == []
    assert deployed.swept()["started"] is not None
    deployed.swept()
    (execution,) = deployed.executions()
    given = json.loads(execution["input"])
    assert given["listing"] == f"events:{deployed.table}/logs"
    assert execution["name"].startswith("logs-")
    assert execution["name"].endswith("-000001")


def test_a_sweep_starts_what_is_due_and_reports_what_waits(deployed: Deployed) -> None:
    deployed.registered(deployed.put("a/1.json"))
    found = deployed.swept()
    assert (found["pending_objects"], found["pending_bytes"], found["started"]) == (1, 10, None)


def test_a_run_takes_what_was_registered_and_marks_it(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    deployed.registered(*[deployed.put(f"a/{n}.json", time=1.0) for n in range(3)])
    deployed.swept()
    (execution,) = deployed.executions()
    event = {
        "input": json.loads(execution["input"]),
        "run_id": execution["name"],
        "started_at": "2026-01-03T00:00:00Z",
    }
    begun = discover.handler(event, Context())
    assert begun["item_count"] == 1
    key = begun["items"]
    body = deployed.s3.get_object(Bucket=key["bucket"], Key=key["key"])["Body"].read()
    (partition,) = json.loads(body)
    capsys.readouterr()
    answer = compact_partition.handler(
        {"run_id": event["run_id"], "settings": begun["settings"], "partition": partition},
        Context(),
    )
    assert (answer["status"], answer["counts"]["objects_in"], answer["counts"]["marked"]) == (
        "done",
        3,
        3,
    )
    assert {item["state"] for item in deployed.items()} == {"COMPACTED"}
    assert all("pending" not in item and int(item["expires_at"]) > 0 for item in deployed.items())
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    (metrics,) = [one for one in told if "MarkedObjects" in one]
    assert len(metrics["FreshnessSeconds"]) == 3
    assert deployed.swept()["pending_objects"] == 0


def test_a_daily_sweep_registers_what_no_event_named(deployed: Deployed) -> None:
    deployed.put("a/1.json")
    # The object is younger than its event may be late.
    found = deployed.swept(reconcile=True)
    assert found["reconciled"]["younger"] == 1
    assert found["pending_objects"] == 0


def test_sweeps_continue_a_round_that_the_daily_one_began(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        deployed.put(f"{name}/1.json")
    aged = partial(Reconciliation, grace_seconds=-60.0, workers=1)
    monkeypatch.setattr("compactor_handlers.sweep.Reconciliation", aged)
    assert deployed.swept()["reconciled"] is None
    # A minute is left: enough for the least that a call does.
    daily = sweep.handler({"reconcile": True}, Context(milliseconds=(59_000,)))["streams"][0]
    assert not daily["reconciled"]["complete"]
    assert daily["reconciled"]["registered"] == 1
    # What was found counts in what waits at once.
    assert daily["pending_objects"] == 1
    found = deployed.swept()
    assert (found["reconciled"]["registered"], found["reconciled"]["complete"]) == (2, True)
    assert found["pending_objects"] == 3
    assert found["started"] is not None
    assert deployed.swept()["reconciled"] is None
    again = deployed.swept(reconcile=True)["reconciled"]
    assert (again["known"], again["complete"]) == (3, True)


@pytest.mark.parametrize("missing", ["REGISTRY_TABLE", "STREAMS"])
def test_a_function_without_its_environment_says_which(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setenv(missing, "")
    with pytest.raises(InvalidInput, match=missing):
        deployed.registered(deployed.put("a/1.json"))


def test_a_sweep_without_a_state_machine_says_so(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STATE_MACHINE_ARN", "")
    with pytest.raises(InvalidInput, match="STATE_MACHINE_ARN"):
        deployed.swept()


def test_a_table_that_is_not_there_is_one_line(
    deployed: Deployed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_TABLE", "no-such-table")
    with pytest.raises(InvalidInput, match="no-such-table"):
        deployed.registered(deployed.put("a/1.json"))


def test_an_execution_that_is_over_is_not_started_by_its_name_again(deployed: Deployed) -> None:
    machine = StateMachine(deployed.arn)
    first = machine.start("logs-1", '{"a":1}')
    assert first.at is not None
    again = machine.start("logs-1", '{"a":1}')
    assert again.arn == first.arn
    other = machine.start("logs-1", '{"a":2}')
    assert other == (first.arn, None)
    assert machine.state_of(first.arn) in ExecutionState
    assert machine.state_of(f"{first.arn}-never") is ExecutionState.ENDED
    with pytest.raises(InvalidInput, match="STATE_MACHINE_ARN"):
        StateMachine(f"{deployed.arn}-other").start("x", "{}")


def test_the_registry_of_a_process_keeps_its_connections(deployed: Deployed) -> None:
    deployed.registered(deployed.put("a/1.json"))
    here = events.office(1.0)
    assert isinstance(here.registry, DynamoRegistry)
    assert events.office(2.0) is here
