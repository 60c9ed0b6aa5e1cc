"""A deployed stack on moto, in this process: its outputs, a state machine that runs, buckets, logs.

moto 5.2.5 interprets the definition including the Map Run, but its CloudFormation cannot create
state machines for the interpreter. So the tests' stack has only a bucket, and literal outputs.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import boto3
from moto import mock_aws
from moto.stepfunctions.parser.models import StepFunctionsParserBackend

from compactor.report.report import RunIdentity, report
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings

NAME, SOURCE, LAKE = "s3-compactor", "my-logs", "my-lake"
#: Wall time of the runs whose reports are left.
WALL_SECONDS = 4_321.0
INPUT: Mapping[str, Any] = {
    "s3_source_uri": f"s3://{SOURCE}/raw/",
    "s3_destination_uri": f"s3://{LAKE}/compacted/",
    "date_format": "%Y/%m/%d",
    "duration": 7,
}
FUNCTIONS: Mapping[str, str] = {
    "discover": "s3-compactor-discover",
    "compact_partition": "s3-compactor-compact-partition",
}
_ROLE = "arn:aws:iam::123456789012:role/workflow"


def definition(end: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workflow of the same shape: one child per partition on S3; ``bad/`` fails."""
    children = {
        "StartAt": "Which",
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        "States": {
            "Which": {
                "Type": "Choice",
                "Choices": [
                    {"Variable": "$.partition.path", "StringEquals": "bad/", "Next": "Bad"}
                ],
                "Default": "Good",
            },
            "Bad": {"Type": "Fail", "Error": "IntegrityError", "Cause": "a gap in the log"},
            "Good": {"Type": "Pass", "End": True},
        },
    }
    partitions = {
        "Type": "Map",
        "Label": "Partitions",
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "ReaderConfig": {"InputType": "JSON"},
            "Parameters": {"Bucket": LAKE, "Key": "items.json"},
        },
        "ItemSelector": {"partition.$": "$$.Map.Item.Value"},
        "ItemProcessor": children,
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Report"}],
        "Next": "Report",
    }
    return {"StartAt": "Partitions", "States": {"Partitions": partitions, "Report": dict(end)}}


@dataclass
class Deployed:
    """A stack and its services."""

    s3: Any
    stepfunctions: Any
    machine_arn: str

    def partitions(self, *paths: str) -> None:
        """Write the work list of partitions, as discovery would."""
        body = json.dumps([{"path": path} for path in paths])
        self.s3.put_object(Bucket=LAKE, Key="items.json", Body=body)

    def run(self, run_id: str, given: Mapping[str, Any] = INPUT) -> str:
        """Run the state machine to its end; return the execution's ARN."""
        started = self.stepfunctions.start_execution(
            stateMachineArn=self.machine_arn, name=run_id, input=json.dumps(given)
        )
        arn: str = started["executionArn"]
        while self.stepfunctions.describe_execution(executionArn=arn)["status"] == "RUNNING":
            time.sleep(0.05)
        return arn

    def given(self, run_id: str) -> dict[str, Any]:
        """Return the input of a run."""
        arn = f"{self.machine_arn.replace('stateMachine', 'execution')}:{run_id}"
        found = self.stepfunctions.describe_execution(executionArn=arn)
        given: dict[str, Any] = json.loads(found["input"])
        return given

    def leave_report(
        self, run_id: str, lost: Sequence[str] = (), given: Mapping[str, Any] = INPUT
    ) -> None:
        """Write the report of a run whose workers were lost before they wrote a receipt."""
        settings = Settings.from_input(given)
        items = [{"path": path, "bucket": SOURCE, "prefix": f"raw/{path}"} for path in lost]
        key = f"{settings.state.prefix}runs/{run_id}/items.json"
        self.s3.put_object(Bucket=settings.state.bucket, Key=key, Body=json.dumps(items))
        began = datetime(2026, 11, 20, tzinfo=UTC)
        ended_at = began.timestamp() + WALL_SECONDS
        identity = RunIdentity(run_id, began.isoformat(), ended_at=ended_at)
        report(identity, settings, S3Store(make_client()))


@contextmanager
def deployed(
    end: Mapping[str, Any], outputs: Mapping[str, str] | None = None
) -> Iterator[Deployed]:
    """Yield a deployment whose workflow ends with this state; ``outputs`` replaces the stack's."""
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}), _patient_moto():
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket=LAKE)
        machines = boto3.client("stepfunctions")
        made = machines.create_state_machine(
            name=NAME, definition=json.dumps(definition(end)), roleArn=_ROLE
        )
        told = {
            "StateMachineArn": made["stateMachineArn"],
            "StateUri": f"s3://{LAKE}/_compactor/compacted/",
            "DefaultInput": json.dumps(INPUT),
            "FunctionNames": json.dumps(FUNCTIONS),
        }
        template = {
            "Resources": {
                "Bucket": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": SOURCE}}
            },
            "Outputs": {
                name: {"Value": value}
                for name, value in (told if outputs is None else outputs).items()
            },
        }
        stacks = boto3.client("cloudformation")
        stacks.create_stack(StackName=NAME, TemplateBody=json.dumps(template))
        result = Deployed(s3, machines, made["stateMachineArn"])
        result.partitions("a/", "b/", "c/")
        yield result


@contextmanager
def _patient_moto() -> Iterator[None]:
    """Make moto list no Map Runs before an execution's thread has started; it would fail."""
    listed = StepFunctionsParserBackend.list_map_runs

    def list_map_runs(self: Any, execution_arn: str) -> Any:
        if self.describe_execution(execution_arn=execution_arn).exec_worker.env is None:
            return {"mapRuns": []}
        return listed(self, execution_arn)

    with patch.object(StepFunctionsParserBackend, "list_map_runs", list_map_runs):
        yield
