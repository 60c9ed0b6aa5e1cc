"""Limits that AWS checks, by botocore's models: docs/aws.md cites them, templates keep them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.model import ServiceModel

from compactor.limits import USUAL
from compactor_local.definition import each_state
from tests.infrastructure.conftest import Synthesized

_CITED = re.compile(r"botocore: ([a-z0-9-]+), `(\w+)`")
_WEEK = 7 * 86_400
_THREADS = 1_024


def _model(service: str) -> ServiceModel:
    return botocore.session.get_session().get_service_model(service)


def _most(service: str, shape: str) -> int:
    most: int = _model(service).shape_for(shape).metadata["max"]
    return most


def _cited(repo_root: Path) -> list[tuple[str, str, str]]:
    """Row, service and name of everything that the page cites of a model."""
    lines = (repo_root / "docs" / "aws.md").read_text(encoding="utf-8").splitlines()
    return [(line, *match) for line in lines for match in _CITED.findall(line)]


def test_the_page_cites_models_for_what_is_in_them(repo_root: Path) -> None:
    cited = _cited(repo_root)

    assert len(cited) >= 12
    for row, service, name in cited:
        model = _model(service)
        if name in model.operation_names:
            continue
        most = model.shape_for(name).metadata.get("max")
        # Hours are said as hours.
        assert most is None or f"{most:,}" in row or f"{most // 3_600} hours" in row, (row, most)


@pytest.mark.parametrize(
    ("service", "operation", "said"),
    [
        ("s3", "ListObjectsV2", "up to 1,000"),
        ("s3", "DeleteObjects", "up to 1,000 keys"),
        ("emr", "AddJobFlowSteps", "maximum of 256 steps"),
        ("stepfunctions", "RedriveExecution", "less than 24,999"),
    ],
)
def test_the_models_say_what_the_page_says_of_them(service: str, operation: str, said: str) -> None:
    documentation = _model(service).operation_model(operation).documentation

    assert said in re.sub(r"\s+", " ", re.sub("<[^>]+>", "", documentation))


def test_every_row_has_a_source(repo_root: Path) -> None:
    text = (repo_root / "docs" / "aws.md").read_text(encoding="utf-8")
    tables = [part for part in text.split("\n\n") if part.startswith("|") and "Source |" in part]

    assert len(tables) == 7
    for table in tables:
        for row in table.splitlines()[2:]:
            source = row.rstrip(" |").rpartition(" | ")[2]
            named = "botocore: " in source or ".html`" in source or "/`" in source
            assert named or source == "the same page", row


def _definition(name: str, synthesized: Synthesized) -> tuple[str, Mapping[str, Any]]:
    (path,) = [
        one.path
        for one in synthesized(name).assets()
        if one.path.is_file() and b'"StartAt"' in one.path.read_bytes()[:2_000]
    ]
    text = path.read_text(encoding="utf-8")
    return text, json.loads(text)


def test_the_definition_and_its_command_lines_fit(synthesized: Synthesized) -> None:
    text, machine = _definition("default", synthesized)
    (job,) = [
        state["Parameters"]["JobDriver"]["SparkSubmit"]["SparkSubmitParameters"]
        for _, state in each_state(machine)
        if "JobDriver" in state.get("Parameters", {})
    ]

    assert len(text) < _most("stepfunctions", "Definition") / 10
    # Substitutions are URIs of a few hundred characters.
    assert len(job) + 2_000 < _most("emr-serverless", "SparkSubmitParameters")


def test_alarms_and_schedules_fit(configuration: str, synthesized: Synthesized) -> None:
    assembly = synthesized(configuration)

    for alarm in assembly.resources("AWS::CloudWatch::Alarm").values():
        assert len(alarm["AlarmName"]) <= _most("cloudwatch", "AlarmName")
        assert len(alarm["AlarmDescription"]) <= _most("cloudwatch", "AlarmDescription")
        # A metric with a label has its period beside it.
        stats = [one["MetricStat"] for one in alarm.get("Metrics", ())] or [alarm]
        assert max(one["Period"] for one in stats) * alarm["EvaluationPeriods"] <= _WEEK
    for schedule in assembly.resources("AWS::Scheduler::Schedule").values():
        retries = schedule["Target"]["RetryPolicy"]
        assert len(schedule["Name"]) <= _most("scheduler", "Name")
        most = _most("scheduler", "MaximumEventAgeInSeconds")
        assert retries["MaximumEventAgeInSeconds"] <= most


# References stand for names and ARNs of a length that is rather too long.
_NAME, _ARN = "n" * 63, "a" * 120
# "IAM and AWS STS quotas": characters without white space, all inline policies of a role together.
_POLICIES = {"AWS::IAM::Policy": 10_240, "AWS::IAM::ManagedPolicy": 6_144}


def _long(value: Any) -> Any:
    """A part of a template with its references filled in."""
    if isinstance(value, list):
        return [_long(one) for one in value]
    if not isinstance(value, Mapping):
        return value
    if "Fn::Join" in value:
        separator, parts = value["Fn::Join"]
        return str(separator).join(str(_long(part)) for part in parts)
    if value.keys() & {"Ref", "Fn::GetAtt"}:
        return _NAME if "Ref" in value else _ARN
    return {name: _long(one) for name, one in value.items()}


def test_policies_and_templates_fit(configuration: str, synthesized: Synthesized) -> None:
    assembly = synthesized(configuration)

    # "CloudFormation quotas", and what UpdateStack takes from a bucket.
    assert len(assembly.template["Resources"]) <= 500 / 5
    assert assembly.template_path.stat().st_size <= 1_000_000 / 5
    for kind, most in _POLICIES.items():
        for name, policy in assembly.resources(kind).items():
            document = json.dumps(_long(policy["PolicyDocument"]), separators=(",", ":"))
            assert len(document) <= most, name


def test_a_workers_readers_leave_threads_and_descriptors_to_the_rest() -> None:
    # A connection is kept while the next one opens: two descriptors a reader at worst.
    assert 2 * USUAL.reads <= _THREADS
