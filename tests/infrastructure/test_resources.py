"""What is deployed keeps data safe and cheap: buckets, lifecycle, logs, schedule, alarms."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cdk.functions import _scratch_mb
from tests.infrastructure.cloud import shims
from tests.infrastructure.configurations import CONFIGURATIONS, EVERY, key_of
from tests.infrastructure.conftest import Deployed, Synthesized
from tests.support.examples import settings

_NO_TLS = {"Bool": {"aws:SecureTransport": "false"}}


def _made(name: str, synthesized: Synthesized) -> dict[str, Mapping[str, Any]]:
    return synthesized(name).resources("AWS::S3::Bucket")


def test_every_made_bucket_is_private_encrypted_and_kept(
    configuration: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(configuration)
    key = key_of(CONFIGURATIONS[configuration], "destination")

    for name, bucket in _made(configuration, synthesized).items():
        assert {*bucket["PublicAccessBlockConfiguration"].values()} == {True}
        (rule,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        default = rule["ServerSideEncryptionByDefault"]
        uses_key = key is not None and name.startswith("StorageDestination")
        assert default["SSEAlgorithm"] == ("aws:kms" if uses_key else "AES256")
        assert default.get("KMSMasterKeyID") == (key if uses_key else None)
        assert assembly.template["Resources"][name]["DeletionPolicy"] == "Retain"
        assert assembly.template["Resources"][name]["UpdateReplacePolicy"] == "Retain"


def test_every_made_bucket_refuses_requests_without_tls(
    configuration: str, synthesized: Synthesized
) -> None:
    policies = synthesized(configuration).resources("AWS::S3::BucketPolicy")
    made = _made(configuration, synthesized)

    refusing = {
        policy["Bucket"]["Ref"]
        for policy in policies.values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny" and statement.get("Condition") == _NO_TLS
    }

    assert refusing == {*made}


def test_buckets_that_are_there_are_not_made(synthesized: Synthesized) -> None:
    assert _made("KMS, clean-up, imported buckets", synthesized) == {}
    assert len(_made("nothing set", synthesized)) == 2
    named = {one["BucketName"] for one in _made("named bucket made", synthesized).values()}
    assert named == {"lake"}


def _rules(name: str, synthesized: Synthesized) -> dict[str, Mapping[str, Any]]:
    (bucket,) = [
        bucket
        for logical_id, bucket in _made(name, synthesized).items()
        if logical_id.startswith("StorageDestination")
    ]
    return {one["Id"]: one for one in bucket["LifecycleConfiguration"]["Rules"]}


def test_outputs_above_128_kib_move_to_cheaper_classes_by_default(
    synthesized: Synthesized,
) -> None:
    rules = _rules("nothing set", synthesized)

    moves = rules["cheaper-classes"]
    assert moves["Prefix"] == "compacted/"
    assert int(moves["ObjectSizeGreaterThan"]) == 128 * 1024
    assert [(one["StorageClass"], one["TransitionInDays"]) for one in moves["Transitions"]] == [
        ("STANDARD_IA", 30),
        ("GLACIER_IR", 90),
    ]
    dropped = rules["unfinished-uploads"]["AbortIncompleteMultipartUpload"]
    assert dropped == {"DaysAfterInitiation": 3}
    assert "expired-outputs" not in rules


def test_every_lifecycle_day_is_settable(synthesized: Synthesized) -> None:
    rules = _rules("everything set", synthesized)

    moves = rules["cheaper-classes"]["Transitions"]
    assert [(one["StorageClass"], one["TransitionInDays"]) for one in moves] == [
        ("STANDARD_IA", 45),
        ("DEEP_ARCHIVE", 120),
    ]
    assert rules["expired-outputs"]["ExpirationInDays"] == 3_650
    assert rules["expired-outputs"]["Prefix"] == "compacted/"
    earlier = rules["earlier-versions"]["NoncurrentVersionExpiration"]
    assert earlier == {"NoncurrentDays": 30}


_RECORDS = {
    "old-runs": "runs/",
    "old-spark-logs": "spark-logs/",
    "old-athena-results": "athena-results/",
}


def test_of_the_state_nothing_moves_and_only_files_of_runs_expire(
    configuration: str, synthesized: Synthesized
) -> None:
    for bucket in _made(configuration, synthesized).values():
        for rule in bucket["LifecycleConfiguration"]["Rules"]:
            if rule["Id"] in _RECORDS:
                assert rule["Prefix"] == f"_compactor/compacted/{_RECORDS[rule['Id']]}"
                assert "Transitions" not in rule
            elif "Transitions" in rule or "ExpirationInDays" in rule:
                assert rule["Prefix"] == "compacted/"


def test_files_of_runs_expire_in_the_bucket_that_was_made_for_them(
    synthesized: Synthesized,
) -> None:
    rule = _rules("nothing set", synthesized)["old-runs"]

    assert (rule["Prefix"], rule["ExpirationInDays"]) == ("_compactor/compacted/runs/", 90)


def test_logs_of_spark_and_results_of_athena_expire_after_the_days_of_the_other_logs(
    synthesized: Synthesized,
) -> None:
    logs = _rules("nothing set", synthesized)["old-spark-logs"]
    assert (logs["Prefix"], logs["ExpirationInDays"]) == ("_compactor/compacted/spark-logs/", 30)
    assert "old-athena-results" not in _rules("nothing set", synthesized)
    rules = _rules("tables maintained, made bucket", synthesized)
    assert {one: rules[one]["ExpirationInDays"] for one in rules if one.startswith("old-")} == {
        "old-runs": 90,
        "old-spark-logs": 7,
        "old-athena-results": 7,
    }
    places = synthesized("tables maintained, made bucket")
    (group,) = places.resources("AWS::Athena::WorkGroup").values()
    results = group["WorkGroupConfiguration"]["ResultConfiguration"]["OutputLocation"]
    assert results["Fn::Join"][1][-1].endswith(f"/{rules['old-athena-results']['Prefix']}")


def test_functions_run_one_bundle_with_room_and_time(
    configuration: str, synthesized: Synthesized
) -> None:
    functions = synthesized(configuration).functions()

    assert functions
    codes = {_handled(one): json.dumps(one["Code"], sort_keys=True) for one in functions.values()}
    maintains = {
        _handled(one)
        for one in functions.values()
        if one["Handler"].startswith("compactor_tables.")
    }
    # What knows a table has more libraries than all others.
    knowing = {"publish_table", "clean_up", "discover"} if "publish_table" in codes else set()
    context = CONFIGURATIONS[configuration]
    if "maintenance" in context:
        knowing |= {"plan_table", "athena_step"}
    for names in (codes.keys() - maintains, maintains):
        plain = {codes[name] for name in names - knowing}
        assert len(plain) == bool(names)
        assert len({codes[name] for name in names}) == len(plain) + bool(names & knowing)
    assert len({*codes.values()}) == len({(name in maintains, name in knowing) for name in codes})
    for one in functions.values():
        assert one["Architectures"] == ["arm64"]
        # The state machine waits for 920 seconds; a batch of events waits six times as long.
        assert one["Timeout"] == (60 if _handled(one) == "register" else 900)
        # Who lists or takes tables holds nothing of them.
        least = 512 if _handled(one) in {"list_tables", "begin_table", "end_table"} else 1_024
        assert one["MemorySize"] >= least
        assert one["Handler"].startswith(("compactor_handlers.", "compactor_tables.handlers."))


def _handled(function: Mapping[str, Any]) -> str:
    return str(function["Handler"]).split(".")[-2]


def test_a_worker_has_no_more_memory_than_new_accounts_give_unless_asked_for(
    configuration: str, synthesized: Synthesized
) -> None:
    functions = synthesized(configuration).functions().values()
    wanted = CONFIGURATIONS[configuration].get("worker_memory_mb", 3_008)
    by_handler = {_handled(one): one for one in functions}
    worker = by_handler.get("compact_partition") or by_handler["standalone"]

    assert worker["MemorySize"] == wanted
    assert max(one["MemorySize"] for one in functions) <= max(wanted, 3_008)
    if "discover" in by_handler:
        # What a partition takes a worker is reckoned by the memory that it has.
        told = by_handler["discover"]["Environment"]["Variables"]["COMPACTOR_WORKER_MB"]
        assert told == str(wanted)


@pytest.mark.parametrize(
    ("target_bytes", "size"), [(None, 640), ("16MiB", 512), ("1GiB", 5_120), ("1TiB", 10_240)]
)
def test_a_worker_has_room_for_an_output_of_rows_that_does_not_compress(
    target_bytes: str | None, size: int
) -> None:
    assert _scratch_mb(settings(target_bytes=target_bytes)) == size


def test_only_workers_have_more_ephemeral_storage_than_lambda_gives(
    configuration: str, synthesized: Synthesized
) -> None:
    functions = synthesized(configuration).functions().values()
    sizes = {_handled(one): one.get("EphemeralStorage") for one in functions}
    (worker,) = {"compact_partition", "standalone"} & sizes.keys()
    given = settings(target_bytes=CONFIGURATIONS[configuration].get("target_bytes"))
    assert sizes.pop(worker) == {"Size": _scratch_mb(given)}
    assert set(sizes.values()) <= {None}


def test_functions_and_emr_serverless_are_in_the_vpc_that_was_given_or_in_none(
    every_configuration: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(every_configuration)
    vpc = EVERY[every_configuration].get("vpc")
    names = {"SubnetIds": "subnet_ids", "SecurityGroupIds": "security_group_ids"}
    wanted = {name: vpc[key] for name, key in names.items()} if vpc else None

    assert assembly.functions()
    for function in assembly.functions().values():
        assert function.get("VpcConfig") == wanted
    for application in assembly.resources("AWS::EMRServerless::Application").values():
        assert application.get("NetworkConfiguration") == wanted


def test_every_log_is_deleted_after_its_days(
    every_configuration: str, synthesized: Synthesized
) -> None:
    groups = synthesized(every_configuration).resources("AWS::Logs::LogGroup")
    days = EVERY[every_configuration].get("log_retention_days", 30)

    assert groups
    assert {one["RetentionInDays"] for one in groups.values()} == {days}


def test_a_start_that_failed_is_tried_again_and_then_kept(
    configuration: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(configuration)
    schedules = assembly.resources("AWS::Scheduler::Schedule").values()
    runs = [one for one in schedules if one["Name"] == assembly.name]

    assert len(runs) == ("schedule" in CONFIGURATIONS[configuration])
    for schedule in runs:
        assert schedule["Target"]["RetryPolicy"]["MaximumRetryAttempts"] > 0
        assert schedule["Target"]["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0].startswith("Schedule")


def test_the_schedule_is_the_one_that_was_set(synthesized: Synthesized) -> None:
    (schedule,) = synthesized("everything set").resources("AWS::Scheduler::Schedule").values()

    assert schedule["ScheduleExpression"] == "rate(6 hours)"
    assert schedule["ScheduleExpressionTimezone"] == "Europe/Berlin"
    assert schedule["State"] == "ENABLED"


def test_alarms_reach_the_topic_and_the_topic_the_operator(
    every_configuration: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(every_configuration)
    (topic,) = assembly.resources("AWS::SNS::Topic")
    alarms = assembly.resources("AWS::CloudWatch::Alarm")
    email = EVERY[every_configuration].get("alarm_email")

    assert alarms
    for name, alarm in alarms.items():
        assert alarm["AlarmActions"] == [{"Ref": topic}], name
    subscribed = [one["Endpoint"] for one in assembly.resources("AWS::SNS::Subscription").values()]
    assert subscribed == ([email] if email else [])


def test_the_runbook_has_a_row_for_every_alarm(
    every_configuration: str, synthesized: Synthesized, repo_root: Path
) -> None:
    alarms = synthesized(every_configuration).resources("AWS::CloudWatch::Alarm").values()
    runbook = (repo_root / "docs" / "operations.md").read_text(encoding="utf-8")

    names = {one["AlarmName"].rpartition("-")[2] for one in alarms}

    assert names & {"RunFailed", "TablesFailed"}
    assert {name for name in names if f"\n| `{name}`" not in runbook} == set()


def _watched(template: Mapping[str, Any], kind: str) -> set[str]:
    """Names of the functions' own metrics that all resources of a type look at."""
    found = [one["Properties"] for one in template["Resources"].values() if one["Type"] == kind]
    # A dashboard is JSON within JSON: ["namespace", "name", "service", …].
    text = json.dumps(found).replace('\\"', '"')
    shown = re.findall(r'"(\w+)","service","s3-compactor"', text)
    asked = re.findall(r'"Value": "s3-compactor"}], "MetricName": "(\w+)"', text)
    return {*shown, *asked}


def test_dashboard_and_alarms_look_at_what_the_functions_count(
    configuration: str, synthesized: Synthesized, repo_root: Path
) -> None:
    template = synthesized(configuration).template
    functions = repo_root / "functions"
    handlers = [
        *(functions / "compactor_handlers").glob("*.py"),
        *(functions / "compactor_tables" / "handlers").glob("*.py"),
    ]
    counted = {
        name
        for path in handlers
        for name in re.findall(r'"([A-Z]\w+)"', path.read_text(encoding="utf-8"))
    }

    shown = _watched(template, "AWS::CloudWatch::Dashboard")
    alarming = _watched(template, "AWS::CloudWatch::Alarm")

    assert shown >= {"ObjectsIn", "DuePartitions", "DeletedSources", *alarming}
    readers = {"UnshownPartitions"} if "reader_table" in CONFIGURATIONS[configuration] else set()
    assert alarming == {"QuarantinedObjects", "UnsafeCommits", "RefusedSources", *readers}
    assert shown - counted == set()


def test_the_estimate_of_a_run_includes_what_spark_used(synthesized: Synthesized) -> None:
    name = next(iter(CONFIGURATIONS))
    shown = json.dumps(synthesized(name).resources("AWS::CloudWatch::Dashboard"))
    assert "FILL(spark_vcpu_hours, 0) * 0.042099 + FILL(spark_gb_hours, 0) * 0.0046228" in shown


def test_there_is_a_dashboard(every_configuration: str, deployed: Deployed) -> None:
    found = deployed(every_configuration)

    (dashboard,) = found.assembly.resources("AWS::CloudWatch::Dashboard").values()

    assert dashboard["DashboardName"] == found.outputs["DashboardName"]


@pytest.mark.parametrize("engine", ["EMR on EC2", "EMR on EC2, KMS"])
def test_a_cluster_gets_its_roles_profile_and_security_configuration(
    engine: str, deployed: Deployed
) -> None:
    found = deployed(engine)
    states = json.loads(found.machine["definition"])["States"]
    (branch,) = [
        one["States"]
        for one in states["ProcessPartitions"]["Branches"]
        if "CreateCluster" in one["States"]
    ]

    asked = branch["CreateCluster"]["Parameters"]

    roles = {arn.rpartition("/")[2] for arn in found.policies}
    assert asked["ServiceRole"].rpartition("/")[2] in roles
    # EMR knows no profile that is called otherwise than its role.
    role = found.profiles[asked["JobFlowRole"]].rpartition("/")[2]
    assert role == asked["JobFlowRole"]
    assert role in roles
    ((name, security),) = found.assembly.resources("AWS::EMR::SecurityConfiguration").items()
    # CloudFormation names it, since a change replaces it and the old one goes last.
    assert "Name" not in security
    assert asked["SecurityConfiguration"] == found.physical_ids[name]
    encryption = security["SecurityConfiguration"]["EncryptionConfiguration"]
    assert encryption["EnableAtRestEncryption"] is True


def test_every_type_of_resource_is_known_to_moto_or_to_the_shims(
    every_configuration: str, synthesized: Synthesized
) -> None:
    from moto.cloudformation.parsing import get_model_map

    types = {one["Type"] for one in synthesized(every_configuration).template["Resources"].values()}

    assert types - get_model_map().keys() - shims.TYPES - shims.IGNORED == set()
