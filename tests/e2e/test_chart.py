"""The chart and the manifest of docs/kubernetes.md, checked by Helm and by Kubernetes' schemas."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.conftest import REPO_ROOT
from tests.support.server_builds import Unavailable, helm
from tests.support.typed_commands import accepted

CHART = REPO_ROOT / "deploy" / "helm"
PAGE = REPO_ROOT / "docs" / "kubernetes.md"
KUBERNETES = "1.34"
ALL_VALUES = """
image: {repository: "example.com/a/b", tag: "1.0"}
schedule: "@daily"
args: [scan, "s3://a/b/", "s3://c/d/"]
serviceAccount: {annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::111122223333:role/a"}}
env: {AWS_ENDPOINT_URL_S3: "http://minio:9000", NUMBER: 1}
credentialsSecret: keys
deadlineSeconds: 600
"""


def run_helm(*words: str) -> subprocess.CompletedProcess[str]:
    try:
        program = helm()
    except Unavailable as reason:
        pytest.skip(str(reason))
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def rendered(*words: str) -> dict[str, dict[str, Any]]:
    """The manifests by kind; each is valid and has no field that Kubernetes does not know."""
    done = run_helm("template", "nightly", str(CHART), *words)
    assert (done.returncode, done.stderr) == (0, "")
    return valid(done.stdout)


def valid(text: str) -> dict[str, dict[str, Any]]:
    found = {one["kind"]: one for one in yaml.safe_load_all(text)}
    for manifest in found.values():
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)
    return found


def container(manifests: dict[str, dict[str, Any]]) -> dict[str, Any]:
    pod = manifests["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    only: dict[str, Any]
    (only,) = pod["containers"]
    return only


def test_the_chart_passes_lint() -> None:
    done = run_helm("lint", "--strict", str(CHART))
    assert done.returncode == 0, done.stdout


def test_the_manifests_are_valid_and_run_what_the_command_line_takes() -> None:
    manifests = rendered()
    assert set(manifests) == {"CronJob", "ServiceAccount"}
    assert accepted(container(manifests)["args"])
    assert container(manifests)["securityContext"]["readOnlyRootFilesystem"]


def test_every_value_is_rendered(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(ALL_VALUES)
    manifests = rendered("--values", str(values))
    given = yaml.safe_load(ALL_VALUES)
    assert set(given) | {"resources"} == set(yaml.safe_load((CHART / "values.yaml").read_text()))
    assert (
        manifests["ServiceAccount"]["metadata"]["annotations"]
        == (given["serviceAccount"]["annotations"])
    )
    job = manifests["CronJob"]["spec"]["jobTemplate"]["spec"]
    assert (manifests["CronJob"]["spec"]["schedule"], job["activeDeadlineSeconds"]) == (
        "@daily",
        600,
    )
    one = container(manifests)
    assert (one["image"], one["args"]) == ("example.com/a/b:1.0", given["args"])
    assert {entry["name"]: entry["value"] for entry in one["env"]} == {
        "AWS_ENDPOINT_URL_S3": "http://minio:9000",
        "AWS_REGION": "us-east-1",
        "NUMBER": "1",
    }
    assert one["envFrom"] == [{"secretRef": {"name": "keys"}}]


@pytest.mark.parametrize("wrong", ["cron=x", "args=run", "deadlineSeconds=1", "image.tag=null"])
def test_a_wrong_value_is_refused(wrong: str) -> None:
    done = run_helm("template", "nightly", str(CHART), "--set", wrong)
    assert done.returncode != 0
    assert wrong.partition("=")[0].partition(".")[0] in done.stderr


def test_the_manifest_of_the_page_is_the_chart_with_less() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    documented, charted = container(valid(text)), container(rendered())
    assert documented.items() <= charted.items()
    misspelt = text.replace("concurrencyPolicy", "concurencyPolicy")
    with pytest.raises(kubernetes_validate.ValidationError, match="concurencyPolicy"):
        valid(misspelt)
