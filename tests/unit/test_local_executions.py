"""Executions started on this machine: a name counts once, as Step Functions has it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from compactor_local.executions import MACHINE_ARN, Executions


class _Work:
    """Carries executions out once it is told to go on."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.done: list[tuple[str, Mapping[str, Any]]] = []

    def __call__(self, name: str, given: Mapping[str, Any]) -> None:
        self.go_on.wait(60)
        if name == "fails":
            raise ValueError("for a reason")
        self.done.append((name, given))


@pytest.fixture
def work() -> _Work:
    return _Work()


@pytest.fixture
def executions(work: _Work) -> Iterator[Executions]:
    with Executions(work) as running:
        yield running
        work.go_on.set()


@pytest.fixture
def client(executions: Executions) -> Any:
    return boto3.client(
        "stepfunctions",
        endpoint_url=executions.endpoint_url,
        region_name="us-east-1",
        aws_access_key_id="a",
        aws_secret_access_key="b",
    )


def _start(client: Any, name: str, given: str = "{}") -> str:
    started = client.start_execution(stateMachineArn=MACHINE_ARN, name=name, input=given)
    return str(started["executionArn"])


def test_a_name_that_runs_is_started_once_and_answered_twice(
    executions: Executions, client: Any, work: _Work
) -> None:
    assert _start(client, "one", '{"a": 1}') == _start(client, "one", '{"a": 1}')
    work.go_on.set()
    executions.wait_until_idle()
    assert work.done == [("one", {"a": 1})]


@pytest.mark.parametrize("ended", [False, True])
def test_a_name_with_another_input_or_one_that_has_ended_is_refused(
    executions: Executions, client: Any, work: _Work, ended: bool
) -> None:
    _start(client, "one", '{"a": 1}')
    if ended:
        work.go_on.set()
        executions.wait_until_idle()
    with pytest.raises(ClientError) as refused:
        _start(client, "one", '{"a": 1}' if ended else '{"a": 2}')
    assert refused.value.response["Error"]["Code"] == "ExecutionAlreadyExists"


def test_an_execution_that_fails_says_why_and_the_next_one_runs(
    executions: Executions, client: Any, work: _Work
) -> None:
    arn = _start(client, "fails")
    _start(client, "after")
    work.go_on.set()
    executions.wait_until_idle()
    described = client.describe_execution(executionArn=arn)
    assert (described["status"], described["cause"]) == ("FAILED", "ValueError: for a reason")
    assert [name for name, _ in work.done] == ["after"]
    assert [one.status for one in executions.all()] == ["FAILED", "SUCCEEDED"]


def test_one_that_is_not_there_and_a_name_too_long_are_refused(client: Any) -> None:
    with pytest.raises(client.exceptions.ExecutionDoesNotExist):
        client.describe_execution(executionArn=MACHINE_ARN.replace("stateMachine", "execution"))
    client.meta.config.parameter_validation = False
    with pytest.raises(ClientError):
        _start(client, "x" * 81)
