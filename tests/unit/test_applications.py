"""Applications of EMR Serverless are stopped before they change; botocore checks the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import NoCredentialsError
from botocore.stub import ANY, Stubber

from cdk.regions import missing_in
from compactor_dev import applications
from compactor_dev.applications import main, stacks_of, stop_application

_ID = "00f1abcdefgh0000"
_ARN = f"arn:aws:emr-serverless:us-east-1:123456789012:/applications/{_ID}"
_MACHINE = {"type": "AWS::StepFunctions::StateMachine", "id": "arn:machine"}
_APPLICATION = {"type": "AWS::EMRServerless::Application", "id": _ID}
Answers = list[tuple[str, dict[str, Any]]]
_MAINTENANCE = """
[maintenance]
locations = ["s3://lake/bronze/"]
[maintenance.job]
s3_state_uri = "s3://lake/_maintenance/"
glue_tables = ["bronze.*"]
"""


@pytest.mark.parametrize(
    ("region", "release", "missing"),
    [
        ("us-east-1", "emr-spark-8.1.0", ""),
        ("cn-north-1", "emr-spark-8.1.0", ""),
        ("me-south-1", "emr-spark-8.1.0", "emr-spark-8.1.0"),
        ("me-central-1", "emr-spark-8.0.0", "emr-spark-8.0.0"),
        ("me-central-1", "emr-7.9.0", ""),
        ("us-iso-west-1", "emr-7.9.0", "EMR Serverless"),
        # Newer than botocore, or no region at all: nothing is known against it.
        ("eu-north-9", "emr-spark-8.1.0", ""),
        ("nowhere", "emr-spark-8.1.0", ""),
    ],
)
def test_regions_without_the_service_or_the_release_are_known(
    region: str, release: str, missing: str
) -> None:
    assert missing_in(region, release) == missing


def _client(service: str) -> Any:
    make: Any = boto3.client
    return make(
        service,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


Clients = Callable[..., Callable[[str], Any]]


@pytest.fixture
def clients() -> Iterator[Clients]:
    """``clients(resources, answers)``: clients whose answers are scripted, all to be asked for."""
    stubbers = []

    def make(resources: list[dict[str, str]], answers: Answers) -> Callable[[str], Any]:
        found: dict[str, Any] = {}
        for service in ("cloudformation", "emr-serverless"):
            client = _client(service)
            stubber = Stubber(client)
            found[service] = client
            stubbers.append(stubber)
            if service == "cloudformation":
                described = [
                    {
                        "LogicalResourceId": "Any",
                        "ResourceType": one["type"],
                        "PhysicalResourceId": one["id"],
                        "ResourceStatus": "CREATE_COMPLETE",
                        "Timestamp": "2026-11-26T00:00:00Z",
                    }
                    for one in resources
                ]
                stubber.add_response(
                    "describe_stack_resources", {"StackResources": described}, {"StackName": "logs"}
                )
            for name, answer in answers if service == "emr-serverless" else ():
                asked: dict[str, Any] = {"applicationId": _ID}
                if name == "list_job_runs":
                    asked["states"] = ANY
                if name == "cancel_job_run":
                    asked["jobRunId"] = ANY
                stubber.add_response(name, answer, asked)
            stubber.activate()
        return found.__getitem__

    yield make
    for stubber in stubbers:
        stubber.assert_no_pending_responses()


def _in_state(state: str) -> tuple[str, dict[str, Any]]:
    about = {
        "applicationId": _ID,
        "arn": _ARN,
    }
    times = {"createdAt": "2026-11-26T00:00:00Z", "updatedAt": "2026-11-26T00:00:00Z"}
    more = {"releaseLabel": "emr-spark-8.1.0", "type": "Spark", "state": state}
    return "get_application", {"application": {**about, **times, **more}}


def _jobs(*ids: str) -> tuple[str, dict[str, Any]]:
    run = {
        "applicationId": _ID,
        "arn": f"{_ARN}/jobruns/1",
        "createdBy": "arn:aws:iam::123456789012:role/any",
        "createdAt": "2026-11-26T00:00:00Z",
        "updatedAt": "2026-11-26T00:00:00Z",
        "executionRole": "arn:aws:iam::123456789012:role/any",
        "state": "RUNNING",
        "stateDetails": "-",
        "releaseLabel": "emr-spark-8.1.0",
    }
    return "list_job_runs", {"jobRuns": [{**run, "id": one} for one in ids]}


@pytest.mark.parametrize("state", ["CREATED", "STOPPED"])
def test_an_application_at_rest_is_left_alone(clients: Clients, state: str) -> None:
    assert stop_application("logs", clients([_APPLICATION], [_jobs(), _in_state(state)])) == ""


def test_an_idle_application_is_stopped_and_waited_for(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applications, "_POLL_SECONDS", 0.0)
    states = [_in_state("STARTING"), _in_state("STARTED"), ("stop_application", {})]
    states += [_in_state("STOPPING"), _in_state("STOPPED")]

    assert stop_application("logs", clients([_MACHINE, _APPLICATION], [_jobs(), *states])) == ""


def test_an_application_that_does_not_stop_in_time_is_reported(clients: Clients) -> None:
    asked = clients([_APPLICATION], [_jobs(), _in_state("STOPPING")])

    assert "is still STOPPING" in stop_application("logs", asked, wait_seconds=0)


def test_a_running_job_is_left_alone_and_named(clients: Clients) -> None:
    why = stop_application("logs", clients([_APPLICATION], [_jobs("00f1job")]))

    assert why == "a Spark job of logs is running (job run 00f1job)"


def test_jobs_of_a_smoke_test_are_canceled(
    clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applications, "_POLL_SECONDS", 0.0)
    canceled = "cancel_job_run", {"applicationId": _ID, "jobRunId": "00f1job"}
    answers = [_jobs("00f1job"), canceled, _jobs(), _in_state("STOPPED")]

    assert stop_application("logs", clients([_APPLICATION], answers), cancel=True) == ""


def test_a_stack_without_an_application_needs_nothing(clients: Clients) -> None:
    assert stop_application("logs", clients([_MACHINE], [])) == ""


def test_a_stack_that_is_not_there_yet_needs_nothing() -> None:
    client = _client("cloudformation")
    with Stubber(client) as stubber:
        stubber.add_client_error("describe_stack_resources", "ValidationError", "does not exist")

        assert stop_application("logs", {"cloudformation": client}.__getitem__) == ""


@pytest.mark.parametrize(
    ("text", "stacks"),
    [
        ("", ["s3-compactor"]),
        ('name = "logs"', ["logs"]),
        (_MAINTENANCE, ["s3-compactor-tables"]),
        (f"{_MAINTENANCE}\n[job]", ["s3-compactor", "s3-compactor-tables"]),
    ],
)
def test_the_stacks_are_those_that_the_cdk_gets(
    text: str, stacks: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "deployment.toml"
    path.write_text(text, encoding="utf-8")

    assert stacks_of(["-c", f"config={path}", "--profile", "me"]) == (stacks, "me")


@pytest.mark.parametrize(
    ("command", "why", "code"),
    [
        ("deploy", "", 0),
        ("deploy", "a Spark job of s3-compactor is running (job run 1)", 0),
        ("destroy", "a Spark job of s3-compactor is running (job run 1)", 1),
        ("destroy", "the EMR Serverless application 1 is still STARTING", 0),
    ],
)
def test_only_what_cannot_succeed_ends_a_command(
    command: str,
    why: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(applications, "stop_application", lambda *_: why)

    assert main([command]) == code
    assert capsys.readouterr().err.startswith(f"s3-compactor: {why}\n" if why else "")


def test_missing_rights_end_no_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: Any) -> str:
        raise NoCredentialsError

    monkeypatch.setattr(applications, "stop_application", refuse)

    assert main(["destroy"]) == 0
    said = capsys.readouterr().err
    assert "could not be stopped" in said
    assert "wait for it" not in said
    assert main(["destroy", "--help"]) == 0
    assert capsys.readouterr().err == ""
