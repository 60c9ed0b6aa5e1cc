"""What is deployed keeps data safe and cheap: buckets, lifecycle, functions, schedules, alarms."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cdk.compaction import scratch_mb
from cdk.monitoring import alarm_hours
from compactor.settings.encryption import ENCRYPTION_VARIABLE, Encryption, encryptions
from tests.infrastructure.configurations import CONFIGURATIONS, KEYS
from tests.infrastructure.conftest import Deployed, Synthesized
from tests.support.examples import settings

_NO_TLS = {"Bool": {"aws:SecureTransport": "false"}}


def _handled(function: Mapping[str, Any]) -> str:
    return str(function["Handler"]).split(".")[-2]


def test_every_made_bucket_is_private_encrypted_kept_and_takes_only_tls(
    configuration: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(configuration)
    buckets = assembly.resources("AWS::S3::Bucket")
    policies = assembly.resources("AWS::S3::BucketPolicy", "AWS::SQS::QueuePolicy")
    refusing = {
        name["Ref"]
        for policy in policies.values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny" and statement.get("Condition") == _NO_TLS
        for name in policy.get("Queues", [policy.get("Bucket")])
    }

    assert len(buckets) == 2 * (configuration in ("default", "archive"))
    assert refusing == {*buckets, *assembly.resources("AWS::SQS::Queue")}
    for name, bucket in buckets.items():
        assert {*bucket["PublicAccessBlockConfiguration"].values()} == {True}
        assert bucket["BucketEncryption"]
        resource = assembly.template["Resources"][name]
        assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Retain", "Retain")
        # Versions of the state are the only copies of its log.
        versioned = bucket.get("VersioningConfiguration") == {"Status": "Enabled"}
        assert versioned is name.startswith("StorageDestination")
    assert all(
        one["SqsManagedSseEnabled"] for one in assembly.resources("AWS::SQS::Queue").values()
    )


def _rules(name: str, synthesized: Synthesized) -> dict[str, Mapping[str, Any]]:
    (bucket,) = [
        bucket
        for logical_id, bucket in synthesized(name).resources("AWS::S3::Bucket").items()
        if logical_id.startswith("StorageDestination")
    ]
    return {one["Id"]: one for one in bucket["LifecycleConfiguration"]["Rules"]}


@pytest.mark.parametrize(
    ("name", "moves", "expires"),
    [
        # Reading costs nothing there: a table that is scanned 30 times a month costs as Standard.
        ("default", [("INTELLIGENT_TIERING", 30)], None),
        ("archive", [("STANDARD_IA", 45), ("DEEP_ARCHIVE", 120)], 3_650),
    ],
)
def test_only_outputs_move_or_expire_and_by_default_to_a_class_that_is_free_to_read(
    name: str, moves: list[tuple[str, int]], expires: int | None, synthesized: Synthesized
) -> None:
    rules = _rules(name, synthesized)

    moved = rules["cheaper-classes"]
    found = [(one["StorageClass"], one["TransitionInDays"]) for one in moved["Transitions"]]
    assert (found, int(moved["ObjectSizeGreaterThan"])) == (moves, 128 * 1024)
    assert rules.get("expired-outputs", {}).get("ExpirationInDays") == expires
    for rule in rules.values():
        if rule["Id"] in ("old-runs", "old-spark-logs"):
            assert rule["Prefix"].startswith("_compactor/compacted/")
        elif "Transitions" in rule or "ExpirationInDays" in rule:
            assert rule["Prefix"] == "compacted/"
    assert rules["old-runs"]["ExpirationInDays"] == 90
    assert rules["unfinished-uploads"]["AbortIncompleteMultipartUpload"]


def test_functions_have_time_memory_and_their_bundle(
    configuration: str, synthesized: Synthesized
) -> None:
    functions = synthesized(configuration).functions().values()
    by_name = {_handled(one): one for one in functions}
    codes = {name: json.dumps(one["Code"], sort_keys=True) for name, one in by_name.items()}
    knowing = {"publish_table", "clean_up", "discover"} if "publish_table" in codes else set()
    knowing |= {"plan_table", "athena_step"} & codes.keys()
    worker = by_name.get("compact_partition") or by_name.get("standalone")

    assert len({codes[name] for name in codes.keys() - knowing}) == 1
    assert len({*codes.values()}) == 1 + bool(knowing)
    for name, one in by_name.items():
        assert one["Architectures"] == ["arm64"]
        # The state machine waits for 920 seconds; a batch of events waits six times as long.
        assert one["Timeout"] == (60 if name == "register" else 900)
        # No tracer, and so no library of it, runs in a function.
        assert "TracingConfig" not in one
    if worker is not None:
        expected = CONFIGURATIONS[configuration].get("worker_memory_mb", 3_008)
        assert worker["MemorySize"] == expected
        assert worker["EphemeralStorage"] == {"Size": 640}


@pytest.mark.parametrize(
    ("target_bytes", "size"), [(None, 640), ("16MiB", 512), ("1GiB", 5_120), ("1TiB", 10_240)]
)
def test_a_worker_has_room_for_an_output_of_rows_that_does_not_compress(
    target_bytes: str | None, size: int
) -> None:
    assert scratch_mb(settings(target_bytes=target_bytes)) == size


def test_what_serves_clean_up_is_made_only_with_deletion(
    configuration: str, synthesized: Synthesized, deployed: Deployed
) -> None:
    names = {_handled(one) for one in synthesized(configuration).functions().values()}
    job = CONFIGURATIONS[configuration].get("job", {})
    deletes = "delete_after" in job and configuration != "standalone"

    assert ("clean_up" in names, "plan_clean_up" in names) == (deletes, deletes)
    if "discover" in names:
        (told,) = [
            one["Environment"]["Variables"]["COMPACTOR_HERE"]
            for one in deployed(configuration).functions.values()
            if _handled(one) == "discover"
        ]
        assert json.loads(told) == ["delete_after"] * deletes + ["table"] * ("table" in job)


def test_writes_name_the_key_of_their_bucket(synthesized: Synthesized) -> None:
    def of(name: str) -> Any:
        functions = synthesized(name).functions().values()
        (said,) = {
            json.dumps(one["Environment"]["Variables"][ENCRYPTION_VARIABLE]) for one in functions
        }
        return json.loads(said)

    named = encryptions({ENCRYPTION_VARIABLE: of("upserts")})
    assert named.of("lake") == Encryption("aws:kms", KEYS["lake"])
    assert named.of("tables") == named.others == Encryption("aws:kms", KEYS["tables"])
    assert of("archive") == "AES256"
    (machine,) = synthesized("maintenance").resources("AWS::StepFunctions::StateMachine").values()
    said = machine["DefinitionSubstitutions"]["SparkEncryption"]
    by_spark = encryptions({ENCRYPTION_VARIABLE: said})
    assert by_spark.of("lake") == Encryption("aws:kms", KEYS["lake"])
    assert by_spark.others == Encryption("aws:kms", KEYS["tables"])


def test_functions_and_emr_serverless_are_in_the_vpc_that_was_given_or_in_none(
    configuration: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(configuration)
    vpc = CONFIGURATIONS[configuration].get("vpc")
    names = {"SubnetIds": "subnet_ids", "SecurityGroupIds": "security_group_ids"}
    expected = {name: vpc[key] for name, key in names.items()} if vpc else None

    for function in assembly.functions().values():
        assert function.get("VpcConfig") == expected
    for application in assembly.resources("AWS::EMRServerless::Application").values():
        assert application.get("NetworkConfiguration") == expected


def test_schedules_run_in_utc_with_the_default_input_and_keep_failed_starts(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    document = CONFIGURATIONS[configuration]
    tables = document.get("maintenance", {})
    schedules = [
        one["properties"]
        for one in found.noted
        if one["type"] == "AWS::Scheduler::Schedule"
        and one["properties"]["Name"] == found.assembly.name
    ]
    wanted = document.get("schedule") or tables.get("schedule")

    assert [one["ScheduleExpression"] for one in schedules] == [wanted] * bool(wanted)
    for one in schedules:
        assert one.get("ScheduleExpressionTimezone", "UTC") in ("UTC", "Etc/UTC")
        output = "TablesInput" if tables else "DefaultInput"
        assert one["Target"]["Input"] == found.outputs[output]
        assert one["Target"]["RetryPolicy"]["MaximumRetryAttempts"] == 3
        assert "FailedStarts" in one["Target"]["DeadLetterConfig"]["Arn"]


def test_alarms_reach_the_topic_the_runbook_and_the_operator(
    configuration: str, synthesized: Synthesized, repo_root: Path
) -> None:
    assembly = synthesized(configuration)
    (topic,) = assembly.resources("AWS::SNS::Topic")
    alarms = assembly.resources("AWS::CloudWatch::Alarm").values()
    runbook = (repo_root / "docs" / "operations.md").read_text(encoding="utf-8")
    names = {one["AlarmName"].rpartition("-")[2] for one in alarms}
    email = CONFIGURATIONS[configuration].get("alarm_email")

    assert names & {"RunFailed", "TablesFailed"}
    assert {name for name in names if f"\n| `{name}`" not in runbook} == set()
    assert all(one["AlarmActions"] == [{"Ref": topic}] for one in alarms)
    subscribed = [one["Endpoint"] for one in assembly.resources("AWS::SNS::Subscription").values()]
    assert subscribed == ([email] if email else [])


def test_dashboard_and_alarms_look_at_what_the_functions_count(
    configuration: str, synthesized: Synthesized, repo_root: Path
) -> None:
    assembly = synthesized(configuration)
    watched = assembly.resources("AWS::CloudWatch::Dashboard", "AWS::CloudWatch::Alarm")
    # A dashboard is JSON within JSON: ["namespace", "name", "service", …].
    text = json.dumps(watched).replace('\\"', '"')
    shown = re.findall(r'"(\w+)","service","s3-compactor"', text)
    asked = re.findall(r'"Value": "s3-compactor"\}(?:, \{[^}]*\})?\], "MetricName": "(\w+)"', text)
    functions = repo_root / "functions"
    counted = {
        name
        for path in functions.rglob("*.py")
        for name in re.findall(r'"([A-Z]\w+)"', path.read_text(encoding="utf-8"))
    }

    assert {*shown, *asked}
    assert {*shown, *asked} - counted == set()


@pytest.mark.parametrize(
    ("schedule", "hours"),
    [
        ("rate(5 minutes)", 2),
        ("rate(6 hours)", 12),
        ("rate(7 days)", 168),
        ("rate(8 days)", None),
        ("cron(0 3 * * ? *)", 48),
        ("cron(0 3 ? * SUN *)", 168),
        ("cron(0 3 ? * 2#1 *)", None),
        ("cron(0 3 1 * ? *)", None),
    ],
)
def test_an_alarm_waits_for_two_periods_of_a_schedule(schedule: str, hours: int | None) -> None:
    assert alarm_hours(schedule) == hours


def test_no_run_is_reported_when_data_stops_and_not_before_the_first_run(
    synthesized: Synthesized,
) -> None:
    alarms = synthesized("archive").resources("AWS::CloudWatch::Alarm").values()
    (alarm,) = [one for one in alarms if one["AlarmName"].endswith("-NoRun")]

    assert alarm["EvaluationPeriods"] == alarm["DatapointsToAlarm"] == 12
    # A new alarm is INSUFFICIENT_DATA, and acts only when its state changes.
    assert alarm["TreatMissingData"] == "missing"
    assert alarm["InsufficientDataActions"] == alarm["AlarmActions"]
