"""An existing bucket notifies EventBridge of its objects, and keeps its other notifications."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk
import pytest

from cdk.app import read_flags
from cdk.events import Notifications
from compactor_local.definition import ACCOUNT, REGION
from tests.infrastructure.cloud.assembly import Assembly
from tests.infrastructure.cloud.deployment import Deployment, deploy
from tests.infrastructure.cloud.iam import Role, refused
from tests.infrastructure.cloud.requests import calls_of
from tests.infrastructure.cloud.running import Cloud, cloud

_BUCKET = "app-logs"
_STACK = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/s3-compactor/1"
_RUN = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("index", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
class Context:
    log_stream_name = "stream"
module.handler(json.load(sys.stdin), Context())
"""
# Those of other applications: one by CloudFormation's hand, one by a person's, one that leads to
# nothing any more.
_OTHERS: Mapping[str, list[dict[str, Any]]] = {
    "QueueConfigurations": [
        {
            "Id": "arn:aws:cloudformation:us-east-1:123456789012:stack/other/2-5937",
            "QueueArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:theirs",
            "Events": ["s3:ObjectCreated:*"],
            "Filter": {"Key": {"FilterRules": [{"Name": "prefix", "Value": "raw/a b/"}]}},
        }
    ],
    "TopicConfigurations": [
        {
            "Id": "told by hand",
            "TopicArn": f"arn:aws:sns:{REGION}:{ACCOUNT}:theirs",
            "Events": ["s3:ObjectRemoved:Delete"],
        }
    ],
    "LambdaFunctionConfigurations": [
        {
            "Id": "gone",
            "LambdaFunctionArn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:gone",
            "Events": ["s3:ObjectRestore:Completed"],
        }
    ],
}


def _stack(bucket: str, outdir: Path) -> Assembly:
    app = aws_cdk.App(outdir=str(outdir), context=read_flags(), analytics_reporting=False)
    stack = aws_cdk.Stack(app, "s3-compactor")
    Notifications(stack, "s3-compactor", bucket)
    app.synth()
    return Assembly(outdir)


@dataclass(frozen=True)
class Program:
    """CDK's program, as the stack has it."""

    code: Path
    role: Role
    properties: Mapping[str, Any]
    deployment: Deployment
    cloud: Cloud

    def runs(self, request_type: str, **more: Any) -> Mapping[str, Any]:
        """Run it for one request of CloudFormation; what it answers."""
        with _Listener() as (url, answers):
            event = {
                "RequestType": request_type,
                "ResponseURL": url,
                "StackId": _STACK,
                "RequestId": "1",
                "LogicalResourceId": "Notifications",
                "ResourceProperties": {
                    # CloudFormation hands everything over as text.
                    name: str(value).lower() if isinstance(value, bool) else value
                    for name, value in self.properties.items()
                },
                **more,
            }
            subprocess.run(
                [sys.executable, "-c", _RUN, str(self.code)],
                input=json.dumps(event),
                text=True,
                check=True,
                timeout=60,
                env={
                    "AWS_ACCESS_KEY_ID": "program",
                    "AWS_SECRET_ACCESS_KEY": "program",
                    "AWS_DEFAULT_REGION": REGION,
                    "AWS_ENDPOINT_URL": self.cloud.endpoint_url,
                    "PATH": os.environ["PATH"],
                },
            )
        (answer,) = answers
        return answer

    @property
    def told(self) -> dict[str, Any]:
        """The bucket's notifications."""
        client = self.cloud.client("s3")
        found = client.get_bucket_notification_configuration(Bucket=_BUCKET)
        return {name: value for name, value in found.items() if name != "ResponseMetadata"}

    def tell(self, notifications: Mapping[str, Any]) -> None:
        """Give the bucket notifications, as other applications do."""
        self.cloud.client("s3").put_bucket_notification_configuration(
            Bucket=_BUCKET,
            NotificationConfiguration=notifications,
            SkipDestinationValidation=True,
        )


class _Listener:
    """Takes the answers that programs give to CloudFormation."""

    def __enter__(self) -> tuple[str, list[Mapping[str, Any]]]:
        answers: list[Mapping[str, Any]] = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                answers.append(json.loads(body))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}/", answers

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def _put_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    assembly = _stack(_BUCKET, tmp_path_factory.mktemp("assembly"))
    (function,) = assembly.resources("AWS::Lambda::Function").values()
    (resource,) = assembly.resources("Custom::S3BucketNotifications").values()
    code = tmp_path_factory.mktemp("program") / "index.py"
    code.write_text(function["Code"]["ZipFile"], encoding="utf-8")
    with cloud() as on:
        deployment = deploy(on, assembly, {_BUCKET}).read()
        (role,) = deployment.roles.values()
        # moto tries them, whatever it was asked.
        on.client("sqs").create_queue(QueueName="theirs")
        on.client("sns").create_topic(Name="theirs")
        yield Program(code, role, resource, deployment, on)


@pytest.fixture
def program(_put_up: Program) -> Program:
    """The program, and a bucket with the notifications of others."""
    _put_up.tell(_OTHERS)
    _put_up.cloud.requests()
    return _put_up


def test_other_notifications_stay_and_event_bridge_is_added(program: Program) -> None:
    before = program.told

    answer = program.runs("Create")

    assert answer["Status"] == "SUCCESS", answer
    assert len(before) == len(_OTHERS)
    assert program.told == {**before, "EventBridgeConfiguration": {}}


def test_a_bucket_without_any_notification_gets_this_one(program: Program) -> None:
    program.tell({})

    program.runs("Create")

    assert program.told == {"EventBridgeConfiguration": {}}


def test_when_the_deployment_goes_others_keep_theirs_and_event_bridge(program: Program) -> None:
    program.runs("Create")
    before = program.told

    answer = program.runs("Delete", PhysicalResourceId="Notifications")

    assert answer["Status"] == "SUCCESS", answer
    assert program.told == before


def test_it_may_do_this_to_the_one_bucket_and_nothing_else(program: Program) -> None:
    program.runs("Create")
    program.runs("Delete", PhysicalResourceId="Notifications")

    done = {call for one in program.cloud.requests() for call in calls_of(one, {})}

    assert {call.action for call in done} == {
        "s3:GetBucketNotification",
        "s3:PutBucketNotification",
    }
    assert refused(program.role, done) == []
    resources = {one["Resource"] for one in program.role.statements}
    assert f"arn:aws:s3:::{_BUCKET}" in resources
    assert all(one.startswith((f"arn:aws:s3:::{_BUCKET}", "arn:aws:logs:")) for one in resources)


def test_another_source_is_another_resource_and_never_an_update(tmp_path: Path) -> None:
    found = [
        {*_stack(bucket, tmp_path / bucket).resources("Custom::S3BucketNotifications")}
        for bucket in (_BUCKET, "other-logs")
    ]

    assert [len(one) for one in found] == [1, 1]
    assert found[0] != found[1]


def test_its_log_is_deleted_after_its_days(tmp_path: Path) -> None:
    assembly = _stack(_BUCKET, tmp_path)
    (function,) = assembly.resources("AWS::Lambda::Function").values()
    ((name, group),) = assembly.resources("AWS::Logs::LogGroup").items()

    assert function["LoggingConfig"] == {"LogGroup": {"Ref": name}}
    assert group["RetentionInDays"] == 30
