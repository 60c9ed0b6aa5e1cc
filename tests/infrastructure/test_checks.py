"""What other programs say of every configuration's template, policies and state machine."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sqs as sqs

from cdk import checks
from cdk.app import read_context
from cdk.config import Config
from tests.infrastructure.cloud.static_checks import (
    definition_findings,
    policy_findings,
    template_findings,
)
from tests.infrastructure.configurations import EVERY
from tests.infrastructure.conftest import Deployed, Synthesized

_WORDS_OF_A_REASON = 4


def test_cfn_lint_finds_nothing(every_configuration: str, synthesized: Synthesized) -> None:
    template = synthesized(every_configuration).template_path.read_text(encoding="utf-8")

    assert template_findings(template) == []


def test_cfn_lint_would_find_something(synthesized: Synthesized) -> None:
    template = json.loads(synthesized("nothing set").template_path.read_text(encoding="utf-8"))
    queue = next(one for one in template["Resources"].values() if one["Type"] == "AWS::SQS::Queue")
    queue["Properties"]["DelaySeconds"] = "soon"

    (found,) = template_findings(json.dumps(template))

    assert "'soon' is not of type 'integer'" in found


def test_parliament_finds_nothing_in_any_policy(
    every_configuration: str, deployed: Deployed
) -> None:
    documents = deployed(every_configuration).documents

    assert documents
    found = [line for name, one in documents.items() for line in policy_findings(one, name)]
    assert found == []


def test_parliament_would_find_an_action_that_does_not_fit_its_resource() -> None:
    statement = {"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::b/*"}
    document = {"Version": "2012-10-17", "Statement": [statement]}

    (found,) = policy_findings(document, "a policy")

    assert "RESOURCE_MISMATCH" in found


@pytest.fixture(scope="session")
def asl_validator(
    repo_root: Path,
    tmp_path_factory: pytest.TempPathFactory,
    registry_environment: dict[str, str],
) -> Path:
    """The validator of package-lock.json, set up apart where `make synth` has not done so."""
    program = Path("node_modules", ".bin", "asl-validator")
    if (repo_root / program).exists():
        return repo_root / program
    directory = tmp_path_factory.mktemp("npm")
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(repo_root / name, directory)
    with pytest.MonkeyPatch.context() as patch:
        for variable, value in registry_environment.items():
            patch.setenv(variable, value)
        npm = Path(sys.executable).with_name("npm")
        subprocess.run([str(npm), "ci", "--silent"], cwd=directory, check=True, timeout=600)
    return directory / program


def test_the_asl_validator_finds_nothing(
    every_configuration: str, deployed: Deployed, asl_validator: Path, tmp_path: Path
) -> None:
    machines = deployed(every_configuration).every_machine

    context = EVERY[every_configuration]
    compacts = context.get("mode", "workflow") == "workflow"
    assert len(machines) == compacts + ("maintenance" in context)
    for machine in machines:
        assert definition_findings(machine["definition"], asl_validator, tmp_path) == []


def test_the_asl_validator_would_find_a_state_that_nothing_leads_to(
    deployed: Deployed, asl_validator: Path, tmp_path: Path
) -> None:
    definition = json.loads(deployed("nothing set").machine["definition"])
    definition["States"]["Lost"] = {"Type": "Pass", "Next": "Nowhere"}

    assert definition_findings(json.dumps(definition), asl_validator, tmp_path)


def test_every_finding_that_is_let_pass_has_its_reason_and_its_own_name(
    every_configuration: str, synthesized: Synthesized
) -> None:
    directory = synthesized(every_configuration).directory
    (path,) = directory.glob("*.metadata.json")

    let_pass = [
        (construct, rule, reason)
        for construct, entries in json.loads(path.read_text(encoding="utf-8")).items()
        for entry in entries
        if entry["type"] == "aws:cdk:acknowledged-rules"
        for rule, reason in entry["data"].items()
    ]

    assert let_pass
    assert [one for one in let_pass if len(one[2].split()) < _WORDS_OF_A_REASON] == []
    # IAM5 without a name in brackets would let every wildcard of a role pass.
    assert [one for one in let_pass if one[1].endswith("-IAM5")] == []
    assert not any(one["violations"] for one in _report(directory)["pluginReports"])


def _report(directory: Path) -> dict[str, Any]:
    text = (directory / "validation-report.json").read_text(encoding="utf-8")
    report: dict[str, Any] = json.loads(text)
    return report


def _allowing(action: str | list[str], resource: str) -> Callable[[aws_cdk.Stack], None]:
    def add(stack: aws_cdk.Stack) -> None:
        role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        actions = [action] if isinstance(action, str) else action
        role.add_to_policy(iam.PolicyStatement(actions=actions, resources=[resource]))

    return add


def _bucket(**given: Any) -> Callable[[aws_cdk.Stack], None]:
    def add(stack: aws_cdk.Stack) -> None:
        good: dict[str, Any] = {
            "encryption": s3.BucketEncryption.S3_MANAGED,
            "enforce_ssl": True,
            "block_public_access": s3.BlockPublicAccess.BLOCK_ALL,
            "removal_policy": aws_cdk.RemovalPolicy.RETAIN,
            "lifecycle_rules": [
                s3.LifecycleRule(abort_incomplete_multipart_upload_after=aws_cdk.Duration.days(3))
            ],
        }
        s3.Bucket(stack, "Bucket", **{**good, **given})

    return add


def _plain_bucket(stack: aws_cdk.Stack) -> None:
    s3.CfnBucket(stack, "Bucket")


def _open_queue(stack: aws_cdk.Stack) -> None:
    sqs.Queue(stack, "Queue", encryption=sqs.QueueEncryption.UNENCRYPTED, enforce_ssl=True)


def _bucket_without_tls(stack: aws_cdk.Stack) -> None:
    bucket = s3.Bucket(stack, "Bucket", encryption=s3.BucketEncryption.S3_MANAGED)
    bucket.add_to_resource_policy(
        iam.PolicyStatement(
            actions=["s3:GetObject"],
            resources=[bucket.arn_for_objects("a")],
            principals=[iam.AccountRootPrincipal()],
        )
    )


def _inline_policy(stack: aws_cdk.Stack) -> None:
    statement = iam.PolicyStatement(actions=["s3:GetObject"], resources=[_OBJECTS])
    iam.Role(
        stack,
        "Role",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        inline_policies={"own": iam.PolicyDocument(statements=[statement])},
    )


_OBJECTS = f"arn:{aws_cdk.Aws.PARTITION}:s3:::bucket/raw/*"
_OTHERS = f"arn:{aws_cdk.Aws.PARTITION}:s3:::bucket/other/*"


@pytest.mark.parametrize(
    ("add", "rule"),
    [
        (_allowing("s3:*", _OBJECTS), "actions_are_named"),
        (_allowing(["s3:GetObject", "s3:Put*"], _OBJECTS), "actions_are_named"),
        (_allowing("s3:DeleteObject", _OBJECTS), "only_what_clean_up_may_delete"),
        (_allowing(["s3:GetObject", "s3:DeleteObject"], _OBJECTS), "only_what_clean_up_may_delete"),
        (_allowing("s3:DeleteObjectVersion", _OBJECTS), "only_what_clean_up_may_delete"),
        (_inline_policy, "roles_have_no_policy_of_their_own"),
        (_bucket_without_tls, "only_tls"),
        (_plain_bucket, "buckets_are_encrypted"),
        (_plain_bucket, "buckets_are_private"),
        (_plain_bucket, "uploads_that_end_nowhere_are_dropped"),
        (_bucket(removal_policy=aws_cdk.RemovalPolicy.DESTROY), "buckets_outlive_the_stack"),
        (_open_queue, "queues_are_encrypted"),
    ],
)
def test_our_own_rules_stop_a_synth(
    add: Callable[[aws_cdk.Stack], None], rule: str, tmp_path: Path
) -> None:
    assert any(rule in found for found in _violations(add, {}, tmp_path))


def test_our_own_rules_let_a_good_bucket_pass(tmp_path: Path) -> None:
    found = _violations(_bucket(), {}, tmp_path)

    assert [one for one in found if not one.startswith("AwsSolutions")] == []


@pytest.mark.parametrize(
    ("objects", "refused"), [(_OBJECTS, False), (_OTHERS, True)], ids=["below it", "elsewhere"]
)
def test_with_clean_up_objects_may_be_deleted_below_the_source_alone(
    objects: str, refused: bool, tmp_path: Path
) -> None:
    context = {"clean_up": "delete", "s3_source_uri": "s3://bucket/raw/"}

    found = _violations(_allowing("s3:DeleteObject", objects), context, tmp_path)

    assert ("only_what_clean_up_may_delete" in found) is refused


def test_cdk_nag_stops_a_synth(tmp_path: Path) -> None:
    found = _violations(_allowing("s3:GetObject", "*"), {}, tmp_path)

    assert "AwsSolutions-IAM5[Resource::*]" in found


def _violations(
    add: Callable[[aws_cdk.Stack], None], context: dict[str, Any], outdir: Path
) -> list[str]:
    """The rules that a stack breaks when it is checked as the deployment is."""
    app = aws_cdk.App(outdir=str(outdir), context=read_context(), analytics_reporting=False)
    add(aws_cdk.Stack(app, "stack"))
    checks.attach(app, Config.from_context(context))
    stopped = True
    with contextlib.suppress(RuntimeError):
        app.synth()
        stopped = False
    found = [
        (one["ruleName"], plugin["conclusion"])
        for plugin in _report(outdir)["pluginReports"]
        for one in plugin["violations"]
    ]
    assert stopped is any(conclusion == "failure" for _, conclusion in found)
    return [rule for rule, conclusion in found if conclusion == "failure"]
