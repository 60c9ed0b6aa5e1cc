"""The state machine of maintenance for the local engine: its file, handlers and values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from compactor_cli.machine.installed import definition
from compactor_local.definition import VALUES, function_arn, function_substitution

TABLES_DEFINITION = definition("tables.asl.json")
TABLES_HANDLERS: Mapping[str, str] = {
    name: f"compactor_tables.handlers.{name}"
    for name in (
        "list_tables",
        "plan_table",
        "athena_step",
        "end_table",
        "report_tables",
    )
}
"""Function name -> module whose ``handler(event, context)`` it runs."""

TABLES_VALUES: Mapping[str, str] = {
    **{
        name: VALUES[name]
        for name in (
            "AwsPartition",
            "AwsRegion",
            "SparkAppZipUri",
            "SparkDepsZipUri",
            "SparkEncryption",
            "SparkLogUri",
            "EmrServerlessApplicationId",
            "EmrServerlessJobRoleArn",
        )
    },
    "MaintainScriptUri": "s3://local/spark/maintain_tables.py",
    "TableJars": "local",
    "EmrClusterId": "j-LOCAL",
    "AthenaWorkgroup": "local",
}
"""``${Substitution}`` of the definition -> placeholder that has no effect locally."""


def local_definition(directory: Path) -> Path:
    """Write the definition with its substitutions filled in, and return the file."""
    functions = {function_substitution(name): function_arn(name) for name in TABLES_HANDLERS}
    text = TABLES_DEFINITION.read_text(encoding="utf-8")
    for name, value in {**functions, **TABLES_VALUES}.items():
        text = text.replace(f"${{{name}}}", value)
    path = directory / TABLES_DEFINITION.name
    path.write_text(text, encoding="utf-8")
    return path
