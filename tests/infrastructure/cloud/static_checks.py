"""Programs that read a template, a policy or a definition, and what they find."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import parliament  # type: ignore[import-untyped]  # has no annotations
from cfnlint.api import ManualArgs, lint  # type: ignore[import-untyped]  # no marker of types

from compactor_local.definition import REGION

# What cfn-lint says of every template of the CDK, and why that is no fault.
CFN_LINT_ACCEPTED: Mapping[str, str] = {
    "W3005": "the CDK writes DependsOn for whole constructs, also where a reference says the same",
}

# What parliament says that is no fault, by pattern, and why.
PARLIAMENT_ACCEPTED: Mapping[str, str] = {
    r"RESOURCE_MISMATCH .*'states:DescribeExecution'.*:express:": (
        "the action takes executions or express ones; parliament wants a resource of each kind"
    ),
}


def template_findings(template: str) -> list[str]:
    """What cfn-lint finds in a template, one line each."""
    found = lint(template, config=ManualArgs(regions=[REGION]))
    return [str(one) for one in found if one.rule.id not in CFN_LINT_ACCEPTED]


def policy_findings(document: Mapping[str, Any], name: str) -> Iterator[str]:
    """What parliament finds in a policy whose references are filled in, one line each."""
    # By itself each statement is judged as in its policy, and most are in many configurations.
    for statement in document["Statement"]:
        alone = json.dumps({**document, "Statement": [statement]}, sort_keys=True)
        yield from (f"{name}: {line}" for line in _findings(alone))


@cache
def _findings(policy: str) -> tuple[str, ...]:
    found = parliament.analyze_policy_string(policy).findings
    lines = (f"{one.issue} {one.detail}" for one in found)
    return tuple(
        line
        for line in lines
        if not any(re.match(pattern, line) for pattern in PARLIAMENT_ACCEPTED)
    )


def definition_findings(definition: str, validator: Path, scratch: Path) -> list[str]:
    """What the validator of Amazon States Language finds in a definition."""
    path = scratch / "definition.json"
    path.write_text(definition, encoding="utf-8")
    ended = subprocess.run(
        [str(validator), "--json-path", str(path)], capture_output=True, text=True, check=False
    )
    return [] if ended.returncode == 0 else (ended.stdout + ended.stderr).splitlines()
