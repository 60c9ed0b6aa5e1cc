"""Synthesis: offline, the same bytes every time, checked by others, in every partition."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk
import pytest
from aws_cdk import aws_iam as iam
from cfnlint.api import ManualArgs, lint  # type: ignore[import-untyped]  # no marker of types
from cfnlint.schema.manager import ProviderSchemaManager  # type: ignore[import-untyped]  # no marker of types

from cdk import app as cdk_app
from cdk.config import read
from cdk.regions import optimizers_missing_in
from compactor.errors import InvalidInput
from compactor_cli.machine.processes import python_environment
from compactor_dev import IMPORT_ROOTS
from compactor_local.definition import REGION
from tests.infrastructure.cloud.assembly import Assembly
from tests.infrastructure.configurations import CONFIGURATIONS
from tests.infrastructure.conftest import Deployed, Synthesized

# The CDK writes DependsOn for whole constructs, also where a reference says the same.
_CFN_LINT_ACCEPTED = {"W3005"}
_OUTPUTS = {"StateUri", "DashboardName", "SpecVersion", "FunctionNames"}
_PSEUDO = {
    "aws-us-gov": {"AWS::Region": "us-gov-west-1", "AWS::URLSuffix": "amazonaws.com"},
    "aws-cn": {"AWS::Region": "cn-north-1", "AWS::URLSuffix": "amazonaws.com.cn"},
}


def _command(
    repo_root: Path, outdir: Path, context: Mapping[str, Any], **more: str
) -> subprocess.CompletedProcess[str]:
    """Synthesize as the CDK's command line does, by the command in cdk.json."""
    settings = json.loads((repo_root / "cdk.json").read_text(encoding="utf-8"))
    program, *arguments = settings["app"].split()
    assert program == ".venv/bin/python"
    given = {**cdk_app.NO_BUNDLING, **context}
    known = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    environment = {
        **known,
        "CDK_OUTDIR": str(outdir),
        "CDK_CONTEXT_JSON": json.dumps(given),
        "PYTHONHASHSEED": "11",
        **more,
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=repo_root,
        env=python_environment(environment, *IMPORT_ROOTS),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


def test_another_process_without_any_aws_variable_synthesizes_the_same_bytes(
    repo_root: Path, synthesized: Synthesized, tmp_path: Path
) -> None:
    ours = synthesized("default").template_path

    ended = _command(repo_root, tmp_path, {})

    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / ours.name).read_bytes() == ours.read_bytes()


@pytest.mark.parametrize(
    ("text", "region", "says"),
    [
        ("lifecycle = {standard_ia = 7}", "", ("lifecycle", "at least 30")),
        ("", "me-south-1", ("spark.kind", "no emr-spark-8.1.0")),
        ("name = ", "", ("config", "a TOML file")),
    ],
)
def test_a_mistake_is_one_line_and_no_template(
    repo_root: Path, tmp_path: Path, text: str, region: str, says: tuple[str, str]
) -> None:
    path = tmp_path / "deployment.toml"
    path.write_text(text, encoding="utf-8")
    # The CDK's command line says where it deploys to.
    more = {"CDK_DEFAULT_REGION": region} if region else {}

    ended = _command(repo_root, tmp_path / "out", {"config": str(path)}, **more)

    assert ended.returncode == 2
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("s3-compactor")]
    assert all(one in line for one in says)
    assert not list(tmp_path.rglob("*.template.json"))


def test_a_key_that_is_given_as_context_belongs_into_the_file() -> None:
    with pytest.raises(InvalidInput, match=r"deployment\.toml"):
        cdk_app.config_path({"s3_source_uri": "s3://a/b/", "aws:cdk:bundling-stacks": []})
    assert cdk_app.config_path({"@aws-cdk/core:x": True}) is None


def test_the_outputs_are_those_that_the_command_line_reads(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    machine = {"standalone": None, "maintenance": "TablesStateMachineArn"}

    assert {*found.outputs} >= _OUTPUTS
    expected = machine.get(configuration, "StateMachineArn")
    assert {one for one in found.outputs if one.endswith("MachineArn")} == {expected} - {None}
    assert {*json.loads(found.outputs["FunctionNames"]).values()} == {*found.functions}


def test_one_file_may_describe_both_stacks(tmp_path: Path) -> None:
    document = {**CONFIGURATIONS["maintenance"], "job": {}}

    stacks = cdk_app.build(read(document), tmp_path).synth().stacks

    assert [one.stack_name for one in stacks] == ["s3-compactor", "s3-compactor-tables"]


def test_a_permissions_boundary_and_tags_reach_every_role(tmp_path: Path) -> None:
    boundary = {"@aws-cdk/core:permissionsBoundary": {"name": "boundary"}}
    app = cdk_app.build(read({}), tmp_path, {**cdk_app.NO_BUNDLING, **boundary})
    # What `--tags team=logs` does.
    aws_cdk.Tags.of(app).add("team", "logs")

    (stack,) = app.synth().stacks

    roles = [one for one in stack.template["Resources"].values() if one["Type"] == "AWS::IAM::Role"]
    assert len(roles) == 5
    for role in roles:
        assert "policy/boundary" in json.dumps(role["Properties"]["PermissionsBoundary"])
        assert {"Key": "team", "Value": "logs"} in role["Properties"]["Tags"]


# What others say.


def test_cfn_lint_finds_nothing(configuration: str, synthesized: Synthesized) -> None:
    template = synthesized(configuration).template_path.read_text(encoding="utf-8")

    assert _lint(template) == []


def _lint(template: str) -> list[str]:
    found = lint(template, config=ManualArgs(regions=[REGION]))
    return [str(one) for one in found if one.rule.id not in _CFN_LINT_ACCEPTED]


def test_cfn_lint_would_find_something(synthesized: Synthesized) -> None:
    template = json.loads(synthesized("default").template_path.read_text(encoding="utf-8"))
    topic = next(one for one in template["Resources"].values() if one["Type"] == "AWS::SNS::Topic")
    topic["Properties"] = {"FifoTopic": "soon"}

    assert "'soon' is not of type 'boolean'" in _lint(json.dumps(template))[0]


def test_cdk_nag_stops_a_synth(tmp_path: Path) -> None:
    app = cdk_app.build(read({}), tmp_path)
    stack = aws_cdk.Stack(app, "wide")
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    role.add_to_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=["*"]))

    with pytest.raises(RuntimeError):
        app.synth()
    report = (tmp_path / "validation-report.json").read_text(encoding="utf-8")
    assert "AwsSolutions-IAM5[Resource::*]" in report


def test_every_finding_that_is_let_pass_has_its_reason_and_its_own_name(
    configuration: str, synthesized: Synthesized
) -> None:
    (path,) = synthesized(configuration).directory.glob("*.metadata.json")
    let_pass = [
        (construct, rule, reason)
        for construct, entries in json.loads(path.read_text(encoding="utf-8")).items()
        for entry in entries
        if entry["type"] == "aws:cdk:acknowledged-rules"
        for rule, reason in entry["data"].items()
    ]

    assert let_pass
    assert [one for one in let_pass if len(one[2].split()) < 4] == []
    # IAM5 without a name in brackets would let every wildcard of a role pass.
    assert [one for one in let_pass if one[1].endswith("-IAM5")] == []


def test_the_asl_validator_finds_nothing_and_would_find_a_state_that_leads_nowhere(
    configuration: str, deployed: Deployed, repo_root: Path, tmp_path: Path
) -> None:
    for machine in deployed(configuration).machines:
        definition = json.loads(machine["definition"])
        assert _validated(definition, repo_root, tmp_path) == 0
        definition["States"]["Lost"] = {"Type": "Pass", "Next": "Nowhere"}
        assert _validated(definition, repo_root, tmp_path) != 0


def _validated(definition: Mapping[str, Any], repo_root: Path, scratch: Path) -> int:
    path = scratch / "definition.json"
    path.write_text(json.dumps(definition), encoding="utf-8")
    program = repo_root / "node_modules" / ".bin" / "asl-validator"
    return subprocess.run(
        [str(program), "--json-path", str(path)], capture_output=True, check=False
    ).returncode


def test_glues_optimizers_are_refused_where_cloudformation_does_not_have_them() -> None:
    # What cfn-lint knows of CloudFormation's registry.
    manager = ProviderSchemaManager()
    lacking = {
        region
        for region in ("cn-north-1", "eu-south-2", "us-gov-west-1", "us-east-1", "eu-central-1")
        if "AWS::Glue::TableOptimizer" not in manager.get_resource_types(region)
    }
    assert lacking == {one for one in lacking if optimizers_missing_in(one)}
    assert {"cn-north-1", "us-gov-west-1"} <= lacking
    spark = {"spark": {"kind": "none"}}
    for region in ("cn-north-1", "us-east-1"):
        deployment = read({**CONFIGURATIONS["maintenance"], **spark})
        if region in lacking:
            with pytest.raises(InvalidInput, match=r"glue_optimizers.*cn-north-1"):
                deployment.require_region(region)
        else:
            deployment.require_region(region)


@pytest.mark.parametrize(
    ("document", "region", "refused"),
    [
        ({}, "eu-central-1", False),
        ({}, None, False),
        ({}, "me-central-1", True),
        ({"spark": {"release": "emr-7.9.0"}}, "me-central-1", False),
        ({"spark": {"release": "emr-7.9.0"}}, "us-iso-west-1", True),
        ({"spark": {"kind": "none"}}, "me-central-1", False),
        ({"job": {"engine": "worker"}}, "me-central-1", False),
        ({"standalone": True}, "me-central-1", False),
    ],
)
def test_only_what_emr_serverless_is_made_for_needs_its_region(
    document: dict[str, Any], region: str | None, refused: bool
) -> None:
    deployment = read(document)
    if not refused:
        deployment.require_region(region)
        return
    with pytest.raises(InvalidInput, match=r"^spark.kind: "):
        deployment.require_region(region)


# Partitions: GovCloud's and China's ARNs begin otherwise.


def _filled(value: Any, known: Mapping[str, str]) -> Any:
    """A part of a template with its pseudo parameters; other references by their names."""
    if isinstance(value, list):
        return [_filled(one, known) for one in value]
    if not isinstance(value, Mapping):
        return value
    if value.keys() == {"Ref"}:
        return known.get(value["Ref"], value["Ref"])
    if value.keys() == {"Fn::Join"} and isinstance(value["Fn::Join"][1], list):
        return value["Fn::Join"][0].join(str(_filled(part, known)) for part in value["Fn::Join"][1])
    if value.keys() == {"Fn::Sub"}:
        return re.sub(r"\$\{([^}]+)\}", lambda m: known.get(m[1], m[1]), str(value["Fn::Sub"]))
    return {name: _filled(one, known) for name, one in value.items()}


def _definitions(assembly: Assembly, known: Mapping[str, str]) -> Iterator[str]:
    for machine in assembly.resources("AWS::StepFunctions::StateMachine").values():
        substitutions = _filled(machine["DefinitionSubstitutions"], known)
        (text,) = [
            text
            for asset in assembly.assets()
            if asset.path.is_file()
            and '"StartAt"' in (text := asset.path.read_text(encoding="utf-8"))[:2_000]
        ]
        for name, value in substitutions.items():
            text = text.replace(f"${{{name}}}", str(value))
        yield text


@pytest.mark.parametrize("partition", sorted(_PSEUDO))
def test_every_arn_is_of_the_partition_that_is_deployed_to(
    configuration: str, partition: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(configuration)
    known = {**_PSEUDO[partition], "AWS::Partition": partition, "AWS::AccountId": "123456789012"}
    texts = [json.dumps(_filled(assembly.template, known)), *_definitions(assembly, known)]
    given = re.findall(r"arn:aws:kms:[\w:/-]+", json.dumps(CONFIGURATIONS[configuration]))

    for text in texts:
        ours = re.sub("|".join(map(re.escape, given)) or "^$", "", text)
        assert {*re.findall(r"arn:([a-z-]*):", ours)} == {partition}


# Figures.


def test_quotas_that_a_new_account_does_not_have_are_said_at_deploy(
    synthesized: Synthesized,
) -> None:
    def said(name: str) -> list[str]:
        (path,) = synthesized(name).directory.glob("*.metadata.json")
        entries = json.loads(path.read_text(encoding="utf-8")).values()
        return [one["data"] for each in entries for one in each if one["type"] == "aws:cdk:info"]

    (vcpus,) = (one for one in said("default") if "vCPUs" in one)
    assert "16 vCPUs" in vcpus
    assert "spark.max_vcpus is 64" in vcpus
    assert any("worker_memory_mb is 3,538" in one for one in said("archive"))
    assert not said("standalone")


def test_the_manual_lists_the_resources_of_the_default_template(
    synthesized: Synthesized, repo_root: Path
) -> None:
    assembly = synthesized("default")
    counted = Counter(one["Type"] for one in assembly.template["Resources"].values())
    text = (repo_root / "docs" / "deployment.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| `(AWS::\w+::\w+)` \| (.+) \|$", text, re.MULTILINE)

    assert {kind: int(number) for number, kind, _ in rows} == counted
    assert all(len(reason.split()) > 4 for _, _, reason in rows)
    limits = (repo_root / "docs" / "aws.md").read_text(encoding="utf-8")
    size = assembly.template_path.stat().st_size
    assert f"{sum(counted.values())} resources, {round(size / 1_000)} KB" in limits
