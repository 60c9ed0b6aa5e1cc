"""Events: what S3 notifies gets into the queue, and functions are told of what to start."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from moto.events.models import EventPattern

from cdk.app import build
from cdk.config import read
from compactor.aws.registry_rows import create_table
from compactor.errors import InvalidInput
from compactor.registry.events import Happened, decode
from compactor.registry.streams import parse_streams
from compactor.settings.settings import Settings
from tests.infrastructure.configurations import KEYS
from tests.infrastructure.conftest import Deployed, Synthesized


def _one(found: Mapping[str, Any]) -> Any:
    (only,) = found.values()
    return only


def test_without_events_there_is_nothing_of_it(
    configuration: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(configuration)
    kinds = ("AWS::DynamoDB::Table", "AWS::Events::Rule", "AWS::Lambda::EventSourceMapping")

    found = [len(assembly.resources(kind)) for kind in kinds]

    assert found == [configuration in ("events", "archive")] * 3


def test_the_registry_is_the_table_that_the_application_knows_kept_and_encrypted(
    synthesized: Synthesized,
) -> None:
    assembly = synthesized("events")
    ((name, table),) = assembly.resources("AWS::DynamoDB::Table").items()
    wanted: dict[str, Any] = {}

    class Client:
        def create_table(self, **given: Any) -> None:
            wanted.update(given)

    create_table(Client(), "any")

    for part in ("KeySchema", "LocalSecondaryIndexes", "BillingMode"):
        assert table[part] == wanted[part], part
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert table["DeletionProtectionEnabled"] is True
    assert assembly.template["Resources"][name]["DeletionPolicy"] == "Retain"
    key = {"KMSMasterKeyId": KEYS["lake"], "SSEEnabled": True, "SSEType": "KMS"}
    assert table["SSESpecification"] == key


def _event(kind: str, bucket: str, key: str) -> Any:
    about = {"key": key, "size": 7, "etag": "0" * 32, "sequencer": "00617F08299329D189"}
    return {
        "version": "0",
        "id": "1",
        "detail-type": kind,
        "source": "aws.s3",
        "account": "123456789012",
        "time": "2026-11-22T12:00:00Z",
        "region": "us-east-1",
        "resources": [f"arn:aws:s3:::{bucket}"],
        "detail": {"version": "0", "bucket": {"name": bucket}, "object": about},
    }


def test_the_rule_lets_through_what_happens_below_the_source_and_nothing_else(
    synthesized: Synthesized,
) -> None:
    rule = _one(synthesized("events").resources("AWS::Events::Rule"))
    # moto's annotation wants fields that it does not look at.
    pattern: Any = EventPattern.load(json.dumps(rule["EventPattern"]))

    for kind in rule["EventPattern"]["detail-type"]:
        assert pattern.matches_event(_event(kind, "app-logs", "raw/a b+ü.json")), kind
        assert not pattern.matches_event(_event(kind, "app-logs", "other/a.json"))
        assert not pattern.matches_event(_event(kind, "app-logs-2", "raw/a.json"))
    assert not pattern.matches_event(_event("Object Tags Added", "app-logs", "raw/a.json"))
    happened = {
        one.happened
        for kind in rule["EventPattern"]["detail-type"]
        for one in decode(json.dumps(_event(kind, "b", "raw/a.json")))
    }
    assert happened == {*Happened}


def test_the_queue_waits_for_the_function_and_keeps_what_could_not_be_read(
    synthesized: Synthesized,
) -> None:
    assembly = synthesized("events")
    queues = assembly.resources("AWS::SQS::Queue")
    (events,) = [one for name, one in queues.items() if name.startswith("EventsQueue")]
    ((dead, letters),) = [
        (name, one) for name, one in queues.items() if name.startswith("EventsDeadLetters")
    ]
    feed = _one(assembly.resources("AWS::Lambda::EventSourceMapping"))
    (target,) = _one(assembly.resources("AWS::Events::Rule"))["Targets"]

    assert events["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": [dead, "Arn"]},
        "maxReceiveCount": 5,
    }
    # "At least six times the configuration timeout of the function".
    assert events["VisibilityTimeout"] == 6 * 60
    # The age of a dead letter counts from when it was an event.
    assert letters["MessageRetentionPeriod"] == 2 * events["MessageRetentionPeriod"] == 14 * 86_400
    assert feed["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [dead, "Arn"]}}


def test_a_made_source_notifies_event_bridge_and_one_that_is_there_is_set_to(
    synthesized: Synthesized,
) -> None:
    told = {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}

    def found(name: str) -> tuple[list[str], list[str]]:
        assembly = synthesized(name)
        made = [
            logical_id[:13]
            for logical_id, bucket in assembly.resources("AWS::S3::Bucket").items()
            if bucket.get("NotificationConfiguration") == told
        ]
        added = assembly.resources("Custom::S3BucketNotifications").values()
        return made, [one["BucketName"] for one in added]

    assert found("archive") == (["StorageSource"], [])
    assert found("events") == ([], ["app-logs"])
    assert found("default") == ([], [])


def test_the_functions_get_the_stream_whose_runs_are_those_of_the_schedule(
    deployed: Deployed,
) -> None:
    found = deployed("events")
    for handler in ("register", "sweep"):
        (told,) = [
            one["Environment"]["Variables"]
            for one in found.functions.values()
            if f".{handler}." in one["Handler"]
        ]

        (stream,) = parse_streams(told["STREAMS"], told["REGISTRY_TABLE"])

        # A clean-up goes through all commit logs: the schedule's runs do it.
        scheduled = json.loads(found.outputs["DefaultInput"])
        assert stream.settings == Settings.from_input({**scheduled, "delete_after": None})
        assert (stream.name, stream.seconds) == (found.assembly.name, 900)
        machine = found.machine["stateMachineArn"] if handler == "sweep" else None
        assert told.get("STATE_MACHINE_ARN") == machine
        # "4 KB, for all environment variables associated with the function" (Lambda quotas).
        assert sum(len(name) + len(value) for name, value in told.items()) < 4_096
    rates = {
        one["properties"]["Name"]: one["properties"]["ScheduleExpression"]
        for one in found.noted
        if one["type"] == "AWS::Scheduler::Schedule"
    }
    assert rates == {
        "s3-compactor-sweep": "rate(5 minutes)",
        "s3-compactor-reconcile": "rate(1 day)",
    }


def test_fields_of_a_run_that_no_variable_takes_are_refused_before_anything_is_made() -> None:
    globs = [f"{number:03d}-{'x' * 40}/*" for number in range(80)]

    with pytest.raises(InvalidInput, match="3,000 characters"):
        build(read({"events": {}, "job": {"include": globs}}))


def test_an_object_that_waits_too_long_is_reported_and_so_is_a_sweep_that_is_gone(
    synthesized: Synthesized,
) -> None:
    alarms = synthesized("archive").resources("AWS::CloudWatch::Alarm").values()
    (alarm,) = [one for one in alarms if one["AlarmName"].endswith("-OldestPending")]

    (watched,) = (one["MetricStat"] for one in alarm["Metrics"])
    assert (alarm["Threshold"], watched["Period"]) == (2 * 60 + 60, 60)
    assert alarm["TreatMissingData"] == "breaching"
    stream = {"Name": "stream", "Value": "compactor-two"}
    assert stream in watched["Metric"]["Dimensions"]
