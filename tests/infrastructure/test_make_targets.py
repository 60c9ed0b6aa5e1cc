"""What ``make synth`` and ``make diff`` say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdk.app import read_flags
from compactor_dev import credentials, written
from tests.infrastructure.conftest import Synthesized

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


def test_synth_names_its_template_and_counts_what_is_in_it(synthesized: Synthesized) -> None:
    assembly = synthesized("default")
    (line,) = written.lines(assembly.directory)
    resources = assembly.template["Resources"]
    assert line.startswith(f"{assembly.template_path}: {len(resources)} resources: ")
    counts = [int(one) for one in re.findall(r"(?:: |, )(\d+) (?!resources)", line)]
    assert sum(counts) == len(resources)
    assert re.search(r"\b3 Lambda::Function\b", line)


@pytest.mark.parametrize(
    ("words", "directory"),
    [([], "cdk.out"), (["-c", "a=b", "-o", "x"], "x"), (["--output=y", "--quiet"], "y")],
)
def test_synth_looks_where_it_wrote(words: list[str], directory: str) -> None:
    assert written.directory_of(words) == Path(directory)


def test_without_credentials_one_line_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    line = credentials.missing(["diff", "-c", "config=logs.toml"])
    assert line.startswith("make diff needs AWS: no AWS credentials found: log in (aws sso login")
    assert "\n" not in line
    # With a profile of its own the CDK finds others, and without AWS it needs none.
    assert credentials.missing(["diff", "--profile", "me"]) == ""
    assert credentials.missing(["diff", "--template=old.json"]) == ""


def test_a_profile_that_is_not_there_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "nope")
    assert "(nope) could not be found" in credentials.missing(["deploy"])


def test_with_credentials_nothing_is_said() -> None:
    assert credentials.missing(["deploy"]) == ""


def test_every_target_that_asks_aws_looks_for_credentials_first(repo_root: Path) -> None:
    makefile = (repo_root / "Makefile").read_text(encoding="utf-8")
    asking = re.findall(r"^\t@\$\(CDK\) (\w+) (?:--all )?\$\(ARGS\)$", makefile, re.MULTILINE)
    assert set(asking) == {"bootstrap", "deploy", "destroy", "diff"}
    before = r"-m compactor_dev\.credentials (\w+) \$\(ARGS\)\n(?:.*applications \1.*\n)?"
    looked = re.findall(before + r"\t@\$\(CDK\) \1 ", makefile)
    assert looked == asking


def test_what_changes_or_deletes_an_application_stops_it_first(repo_root: Path) -> None:
    makefile = (repo_root / "Makefile").read_text(encoding="utf-8")
    stopping = r"-m compactor_dev\.applications (\w+) \$\(ARGS\)\n\t@\$\(CDK\) \1 "
    assert re.findall(stopping, makefile) == ["deploy", "destroy"]


def test_the_flags_of_the_cdk_are_beside_the_keys_of_the_deployment_and_not_among_them(
    repo_root: Path,
) -> None:
    assert '"context": {}' in (repo_root / "cdk.json").read_text(encoding="utf-8")
    assert all(name.startswith("@aws-cdk") for name in read_flags())
    assert len(read_flags()) > 50
