"""What the type check may leave unread."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def followed() -> set[str]:
    """The modules of the CDK whose types mypy reads."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {
        name
        for override in project["tool"]["mypy"]["overrides"]
        for name in override["module"]
        if override.get("follow_imports") == "silent" and name.startswith("aws_cdk")
    }


def imported() -> Iterator[str]:
    """The modules of the CDK that are imported here; classes come from the package itself."""
    for directory in ("cdk", "tests/infrastructure"):
        for path in (ROOT / directory).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    yield from (one.name for one in node.names if one.name.startswith("aws_cdk"))
                elif isinstance(node, ast.ImportFrom) and node.module == "aws_cdk":
                    yield from (f"aws_cdk.{one.name}" for one in node.names if one.name.islower())
                elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aws_cdk"):
                    yield str(node.module)


def test_the_types_of_every_service_that_the_deployment_uses_are_checked() -> None:
    used = set(imported())
    assert {"aws_cdk", "aws_cdk.aws_iam", "aws_cdk.aws_stepfunctions"} <= used
    assert used - followed() == set()
