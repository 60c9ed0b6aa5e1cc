"""Synthesis: offline, the same bytes every time, and one clear line for a mistake."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cdk.config import Config
from cdk.config_checks import require_region
from compactor.errors import InvalidInput
from compactor_cli.machine.processes import python_environment
from compactor_dev import IMPORT_ROOTS
from tests.infrastructure.configurations import CONFIGURATIONS
from tests.infrastructure.conftest import Deployed, Synthesized

_OUTPUTS = {
    "TargetBucketName",
    "StateUri",
    "DefaultInput",
    "DashboardName",
    "SpecVersion",
    "FunctionNames",
}


def _command(
    repo_root: Path, outdir: Path, context: Mapping[str, Any], **more: str
) -> subprocess.CompletedProcess[str]:
    """Synthesize as the CDK's command line does, by the command in cdk.json."""
    settings = json.loads((repo_root / "cdk.json").read_text(encoding="utf-8"))
    program, *arguments = settings["app"].split()
    assert program == ".venv/bin/python"
    given = {**settings["context"], "aws:cdk:bundling-stacks": [], **context}
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
    ours = synthesized("nothing set").template_path

    ended = _command(repo_root, tmp_path, {})

    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / ours.name).read_bytes() == ours.read_bytes()


def test_a_mistake_is_one_line_and_no_template(repo_root: Path, tmp_path: Path) -> None:
    ended = _command(repo_root, tmp_path, {"lifecycle": {"standard_ia": 7}})

    assert ended.returncode != 0
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("s3-compactor")]
    assert "lifecycle" in line
    assert "at least 30" in line
    assert "Traceback" not in ended.stderr
    assert not list(tmp_path.glob("*.template.json"))


def test_a_region_without_the_release_is_named_with_the_way_on(
    repo_root: Path, tmp_path: Path
) -> None:
    # The CDK's command line says where it deploys to.
    ended = _command(repo_root, tmp_path, {}, CDK_DEFAULT_REGION="me-south-1")

    assert ended.returncode == 2
    (line,) = [line for line in ended.stderr.splitlines() if line.startswith("s3-compactor")]
    assert "spark_engine" in line
    assert '"none" in me-south-1, which has no emr-spark-8.1.0' in line
    assert not list(tmp_path.glob("*.template.json"))


@pytest.mark.parametrize(
    ("given", "region", "refused"),
    [
        ({}, "eu-central-1", False),
        ({}, None, False),
        ({}, "me-central-1", True),
        ({"emr_release_label": "emr-7.9.0"}, "me-central-1", False),
        ({"emr_release_label": "emr-7.9.0"}, "us-iso-west-1", True),
        ({"spark_engine": "none"}, "me-central-1", False),
        ({"spark_engine": "j-2AXXXXXXGAPLF"}, "me-central-1", False),
        ({"engine": "worker"}, "me-central-1", False),
        ({"mode": "standalone"}, "me-central-1", False),
    ],
)
def test_only_what_emr_serverless_is_made_for_needs_its_region(
    given: dict[str, Any], region: str | None, refused: bool
) -> None:
    config = Config.from_context(given)
    with pytest.raises(InvalidInput) if refused else contextlib.nullcontext():
        require_region(config, region)


def test_where_lambda_does_everything_nothing_is_made_of_emr_serverless(
    synthesized: Synthesized, deployed: Deployed
) -> None:
    assembly = synthesized("workers alone")

    assert not assembly.resources("AWS::EMRServerless::Application")
    assert not [name for name in assembly.template["Resources"] if name.startswith("Spark")]
    given = json.loads(deployed("workers alone").outputs["DefaultInput"])
    assert (given["engine"], given["spark_engine"]) == ("worker", "none")
    # Maintenance by Spark needs it anyhow.
    maintaining = {
        "engine": "worker",
        "maintenance": {"glue_tables": ["bronze.*"]},
        "maintenance_locations": ["s3://tables/bronze/"],
    }
    assert Config.from_context(maintaining).run.spark_engine == "emr_serverless"


def test_nothing_of_an_account_is_looked_up(
    every_configuration: str, synthesized: Synthesized
) -> None:
    directory = synthesized(every_configuration).directory

    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))

    assert "missing" not in manifest


def test_the_outputs_are_those_that_the_command_line_reads(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    standalone = CONFIGURATIONS[configuration].get("mode") == "standalone"

    assert {*found.outputs} >= _OUTPUTS
    assert ("StateMachineArn" in found.outputs) is not standalone
    assert {*json.loads(found.outputs["FunctionNames"]).values()} == {*found.functions}


def test_runs_start_by_themselves_only_with_a_schedule_and_with_the_default_input(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    schedules = [one for name, one in found.schedules.items() if name == found.assembly.name]

    assert len(schedules) == ("schedule" in CONFIGURATIONS[configuration])
    for one in schedules:
        assert one["Target"]["Input"] == found.outputs["DefaultInput"]
        assert one.get("State", "ENABLED") == "ENABLED"


def test_the_input_has_what_differs_from_the_defaults(deployed: Deployed) -> None:
    assert json.loads(deployed("two days").outputs["DefaultInput"]) == {
        "s3_source_uri": "s3://app-logs/raw/",
        "s3_destination_uri": "s3://lake/compacted/",
        "date_format": "%Y/%m/%d",
        "duration": 2,
        "spark_engine": "none",
    }


def _said(name: str, synthesized: Synthesized) -> list[str]:
    (path,) = synthesized(name).directory.glob("*.metadata.json")
    entries = json.loads(path.read_text(encoding="utf-8")).values()
    return [one["data"] for found in entries for one in found if one["type"] == "aws:cdk:info"]


def test_quotas_that_a_new_account_does_not_have_are_said_at_deploy(
    synthesized: Synthesized,
) -> None:
    (vcpus,) = (one for one in _said("nothing set", synthesized) if "vCPUs" in one)
    assert "16 vCPUs" in vcpus
    assert "emr_serverless_max_vcpus is 64" in vcpus
    assert any("worker_memory_mb is 3,538" in one for one in _said("everything set", synthesized))
    assert not _said("standalone", synthesized)
