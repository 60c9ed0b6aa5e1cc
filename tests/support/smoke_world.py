"""What stands in for an account in the smoke test: moto, the local engine, queries by hand.

Whatever has no stand-in raises NotRun, so that its line says so.
"""

from __future__ import annotations

import json
import re
import threading
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from compactor.s3.store import S3Store
from compactor_cli.stack import Stack
from compactor_local.definition import ACCOUNT, REGION
from compactor_local.engine import Engine, EngineOptions
from tests.aws.checks import NotRun
from tests.aws.session import Actions
from tests.aws.world import Names, World
from tests.infrastructure.cloud.running import Cloud

SUFFIX = "0a1b2c3d"
_MISSING = ("emr-serverless", "lambda")
_MACHINE = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:runs"
Answer = Callable[..., Any]


def refusal(code: str, operation: str) -> ClientError:
    """Return an error as AWS answers it, with an ARN in it."""
    message = f"arn:aws:iam::{ACCOUNT}:user/me may not {operation}"
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


class StandIn:
    """A client some of whose operations are replaced."""

    def __init__(self, client: Any, replaced: Mapping[str, Answer]) -> None:
        self._client, self._replaced = client, replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced.get(name) or getattr(self._client, name)


class NoPages:
    """The pages of an operation that finds nothing."""

    def paginate(self) -> list[dict[str, Any]]:
        """No page."""
        return []


class Executions:
    """Step Functions, as far as the local engine goes."""

    def __init__(self, engine: Engine) -> None:
        self._engine, self._lock = engine, threading.Lock()
        self._known: dict[str, dict[str, Any]] = {}

    def start_execution(self, **asked: str) -> Any:
        """Run it to its end before the answer."""
        arn = f"{_MACHINE.replace(':stateMachine:', ':execution:')}:{asked['name']}"
        given = json.loads(asked["input"])
        with self._lock:
            ended = self._engine.run(given, run_name=asked["name"], workers=1)
        self._known[arn] = {
            "status": ended.status,
            "error": ended.error,
            "cause": ended.cause,
        }
        return {"executionArn": arn, "startDate": datetime.now(UTC)}

    def describe_execution(self, **asked: str) -> Any:
        """Return how it ended."""
        return self._known[asked["executionArn"]]

    def stop_execution(self, **_: str) -> Any:
        """The engine can stop none."""
        raise NotRun("no stand-in stops and redrives an execution")

    def get_paginator(self, _: str) -> Any:
        """There is no list of machines."""
        return NoPages()


class Queries:
    """Athena, for ``SELECT count(*)``: asks Glue where a table's objects are, and reads them."""

    def __init__(self, s3: Any, glue: Any) -> None:
        self._id: str = ""
        self._s3, self._glue, self._asked = s3, glue, ""

    def start_query_execution(self, **asked: Any) -> Any:
        """Take a query."""
        self._asked = asked["QueryString"]
        return {"QueryExecutionId": "q"}

    def get_query_execution(self, **_: str) -> Any:
        """It has ended."""
        return {"QueryExecution": {"Status": {"State": "SUCCEEDED"}}}

    def get_query_results(self, **_: str) -> Any:
        """Count lines of all partitions."""
        words = self._asked.split('"')
        database, table, condition = words[1], words[3], words[4]
        like = re.search("LIKE '(.*)%'", condition)
        self._id = like[1] if like else ""
        shown = self._glue.get_partitions(DatabaseName=database, TableName=table)["Partitions"]
        count = sum(self._count(one["StorageDescriptor"]) for one in shown)
        rows = [{"Data": [{"VarCharValue": "_col0"}]}, {"Data": [{"VarCharValue": str(count)}]}]
        return {"ResultSet": {"Rows": rows}}

    def _count(self, shown: Mapping[str, Any]) -> int:
        keys = self._below(shown["Location"])
        if "Symlink" in shown["InputFormat"]:
            keys = [uri for key in keys for uri in self._body(key).decode().split()]
        lines = [line.decode() for key in keys for line in self._body(key).splitlines()]
        return sum(json.loads(line)["id"].startswith(self._id) for line in lines)

    def _below(self, uri: str) -> list[str]:
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return [f"s3://{bucket}/{one['Key']}" for page in pages for one in page.get("Contents", ())]

    def _body(self, uri: str) -> bytes:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        return bytes(self._s3.get_object(Bucket=bucket, Key=key)["Body"].read())


def _policed(s3: Any, policies: Mapping[str, str]) -> None:
    """Evaluate the bucket policies of the checks, by the headers that were really signed."""

    def check(request: Any, **_: Any) -> None:
        bucket = request.url.split("/")[3]
        if bucket not in policies:
            return
        (statement,) = json.loads(policies[bucket])["Statement"]
        operation = {"PUT": "PutObject", "GET": "GetObject"}[request.method]
        if statement["Action"] != f"s3:{operation}":
            return
        headers = {name.lower(): _text(value) for name, value in request.headers.items()}
        if any(_meets(kind, one, headers) for kind, one in statement["Condition"].items()):
            raise refusal("AccessDenied", operation)

    for operation in ("PutObject", "GetObject"):
        s3.meta.events.register(f"before-send.s3.{operation}", check)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _meets(kind: str, condition: Mapping[str, str], headers: Mapping[str, str]) -> bool:
    ((key, value),) = condition.items()
    # No request of a stand-in comes through an endpoint.
    found = headers.get(key.removeprefix("s3:").lower())
    if kind == "StringNotEquals":
        return found != value
    return found is None if kind == "Null" else found == value


@dataclass
class Account:
    """Stand-ins for one account.

    Attributes:
        cloud: moto with all its services.
        engine: runs the state machine.
        replaced: service -> operation -> what answers instead; tests break things by it.
        destroyed: stacks that were removed.
    """

    cloud: Cloud
    engine: Engine
    replaced: dict[str, dict[str, Answer]] = field(default_factory=dict)
    destroyed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._clients: dict[str, Any] = {}
        self._executions = Executions(self.engine)
        self._policies: dict[str, str] = {}
        self._sums: dict[str, int] = {}
        # S3Store changes how its client parses listings.
        self._stored_by = boto3.client(
            "s3",
            endpoint_url=self.cloud.endpoint_url,
            region_name=REGION,
            aws_access_key_id="runs",
            aws_secret_access_key="runs",
        )
        _policed(self.cloud.client("s3"), self._policies)
        _policed(self._stored_by, self._policies)

    def client(self, service: str) -> Any:
        """Return the client of a service.

        Raises:
            NotRun: nothing stands in for it.
        """
        if service in _MISSING:
            raise NotRun(f"no stand-in for {service}")
        made: Any
        if service == "stepfunctions":
            made = self._executions
        elif service == "athena":
            made = Queries(self.cloud.client("s3"), self.cloud.client("glue"))
        elif service == "s3":
            made = StandIn(
                self.cloud.client(service),
                {
                    # moto knows no conditions, and would deny every request.
                    "put_bucket_policy": self._keep_policy,
                    "delete_bucket_policy": self._drop_policy,
                    # moto accepts any CRC32 of a whole object.
                    "upload_part": self._upload_part,
                    "complete_multipart_upload": self._complete_multipart_upload,
                },
            )
        elif service == "cloudwatch":
            made = StandIn(self.cloud.client(service), {"describe_alarm_history": self._history})
        else:
            made = self.cloud.client(service)
        return StandIn(made, self.replaced.get(service, {}))

    def _keep_policy(self, **asked: str) -> None:
        self._policies[asked["Bucket"]] = asked["Policy"]

    def _drop_policy(self, **asked: str) -> None:
        self._policies.pop(asked["Bucket"], None)

    def _upload_part(self, **asked: Any) -> Any:
        sum_before = self._sums.get(asked["UploadId"], 0)
        self._sums[asked["UploadId"]] = zlib.crc32(asked["Body"], sum_before)
        return self.cloud.client("s3").upload_part(**asked)

    def _complete_multipart_upload(self, **asked: Any) -> Any:
        expected = b64encode(self._sums[asked["UploadId"]].to_bytes(4)).decode()
        if asked.get("ChecksumCRC32", expected) != expected:
            raise refusal("BadDigest", "CompleteMultipartUpload")
        return self.cloud.client("s3").complete_multipart_upload(**asked)

    def _history(self, **asked: str) -> Any:
        """CloudWatch runs an action when moto has the alarm in its state."""
        found = self.cloud.client("cloudwatch").describe_alarms(AlarmNames=[asked["AlarmName"]])
        (one,) = found["MetricAlarms"]
        said = [{"HistorySummary": "Successfully executed action"}] if one["AlarmActions"] else []
        return {"AlarmHistoryItems": said if one["StateValue"] == "ALARM" else []}

    def world(self, **more: Any) -> World:
        """Return a world with nothing in it yet."""
        store = S3Store(self._stored_by)
        given = {
            "per_day": 12,
            "wait_seconds": 1.0,
            "pause": lambda _: None,
            "endpoint": "vpce-0a1b2c3d",
            **more,
        }
        return World(self.client, store, Names(SUFFIX), stacks={}, **given)

    def actions(self, show: Callable[[str], None] = lambda _: None) -> Actions:
        """Return what deploys: outputs as a stack of these keys has them, and an alarm."""
        return Actions(self.deploy, self.destroy, show)

    def deploy(self, documents: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Stack]:
        """Make what checks need of the stacks."""
        return {what: self._deploy(document) for what, document in documents.items()}

    def _deploy(self, document: Mapping[str, Any]) -> Stack:
        name, given = document["name"], document["job"]
        outputs = {"DefaultInput": json.dumps(given), "StateMachineArn": _MACHINE}
        destination = given["s3_destination_uri"]
        bucket, _, prefix = destination.removeprefix("s3://").partition("/")
        outputs["StateUri"] = f"s3://{bucket}/_compactor/{prefix}"
        outputs["FunctionNames"] = json.dumps({"discover": f"{name}-discover"})
        self.cloud.client("cloudwatch").put_metric_alarm(
            AlarmName=f"{name}-RunFailed",
            Namespace=name,
            MetricName="RunFailed",
            Period=60,
            EvaluationPeriods=1,
            Threshold=0,
            ComparisonOperator="GreaterThanThreshold",
            Statistic="Sum",
            AlarmActions=[f"arn:aws:sns:{REGION}:{ACCOUNT}:topic"],
        )
        return Stack(name, "CREATE_COMPLETE", outputs)

    def destroy(self, stack: str) -> None:
        """Remove it."""
        self.destroyed.append(stack)
        self.cloud.client("cloudwatch").delete_alarms(AlarmNames=[f"{stack}-RunFailed"])


def engine_on(cloud: Cloud, scratch: Path) -> Engine:
    """Return an engine whose functions use the stand-ins."""
    glue = {"AWS_ENDPOINT_URL_GLUE": cloud.endpoint_url}
    environment = {**cloud.environment, **glue}
    options = EngineOptions(environment=environment, wait_scale=0, log=scratch / "engine.log")
    return Engine(options, endpoint_url=cloud.endpoint_url)
