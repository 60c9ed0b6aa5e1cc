"""The state machine file, and what is filled in for its substitutions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from compactor_cli.machine.installed import definition
from compactor_local import EngineError

ACCOUNT = "123456789012"
REGION = "us-east-1"
DEFINITION = definition()

HANDLERS: Mapping[str, str] = {
    name: f"compactor_handlers.{name}"
    for name in (
        "discover",
        "compact_partition",
        "plan_clean_up",
        "clean_up",
        "publish_table",
        "report",
    )
}
"""Function name -> module whose ``handler(event, context)`` it runs."""

VALUES: Mapping[str, str] = {
    "AwsPartition": "aws",
    "AwsRegion": "us-east-1",
    # Its last segment names the script of this installation that is run instead.
    "SparkScriptUri": "s3://local/spark/compact_partitions.py",
    "SparkAppZipUri": "s3://local/spark/app.zip",
    "SparkDepsZipUri": "s3://local/spark/deps.zip",
    # For a cluster; local Spark is configured by the run's environment.
    "SparkTableConf": "spark.jars=s3://local/spark/table.jar",
    "SparkEncryption": "none",
    "SparkLogUri": "s3://local/logs/",
    "EmrServerlessApplicationId": "00local",
    "EmrServerlessJobRoleArn": "arn:aws:iam::123456789012:role/local-emr-serverless",
}
"""``${Substitution}`` of the definition -> placeholder that has no effect locally."""

_SUBSTITUTION = re.compile(r"\$\{([A-Za-z0-9_]+)\}")


def function_arn(name: str) -> str:
    """Return the ARN of a function on this machine."""
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"


def function_substitution(name: str) -> str:
    """Return the ``${Substitution}`` of a function's ARN, such as ``PlanCleanUpFunctionArn``."""
    return "".join(word.capitalize() for word in name.split("_")) + "FunctionArn"


def load_definition(path: Path) -> str:
    """Return the definition's text with its substitutions filled in.

    Raises:
        EngineError: it has an unknown substitution.
    """
    functions = {function_substitution(name): function_arn(name) for name in HANDLERS}
    substitutions = {**VALUES, **functions}

    def substitute(match: re.Match[str]) -> str:
        if match[1] not in substitutions:
            raise EngineError(f"the definition has an unknown substitution {match[0]}")
        return substitutions[match[1]]

    return _SUBSTITUTION.sub(substitute, path.read_text(encoding="utf-8"))


def each_state(machine: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every state of a definition with its name, including those in Map and Parallel."""
    for name, state in machine.get("States", {}).items():
        yield name, state
        processor = state.get("ItemProcessor") or state.get("Iterator") or {}
        for inner in (processor, *state.get("Branches", ())):
            yield from each_state(inner)
