"""The stacks of a smoke test: synthesized from a configuration of its own, and no other."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import aws_cdk

from cdk import REPOSITORY, checks
from cdk.app import read_flags
from cdk.config import Config
from cdk.config_checks import require_region
from cdk.emr_serverless import stop_application
from cdk.stack import CompactorStack
from tests.aws.world import Names

_CDK = REPOSITORY / "node_modules" / ".bin" / "cdk"
# A bucket, database or table that a template names, in a URI, an ARN or a setting.
_PLACES = re.compile(
    r"s3a?://(?P<uri>[^/\"'\\$]+)|:s3:::(?P<bucket>[^/\"'\\*]+)"
    r"|glue:(?P<table>[\w-]+)\.|:(?:database|table)/(?P<resource>[\w-]+)"
)


# The bucket of the CDK itself, in which a deployment's code is.
_ASSETS = "cdk-hnb659fds-assets-"
# Athena looks it up whatever database a statement names.
_LOOKED_UP = "default"


class ForeignPlace(Exception):
    """A template names a bucket, database or table that is not of the test."""


def contexts(
    names: Names, key: str, vpc: Mapping[str, Any] | None = None
) -> Mapping[str, Mapping[str, Any]]:
    """Return the keys of the two deployments, by what they are for."""
    source, lake = names.source, names.lake
    keys = {"source": key, "destination": key}
    return {
        "runs": {
            "name": names.stacks["runs"],
            "s3_source_uri": f"s3://{source}/raw/",
            "s3_destination_uri": f"s3://{lake}/compacted/",
            "date_format": "%Y/%m/%d",
            "reader_table": f"glue:{names.database}.logs",
            "ingest": "events",
            # No run but those of the list is to start.
            "events_seconds": 86_400,
            "clean_up": "delete",
            "retention_days": 0,
            "kms_keys": keys,
            **({"vpc": vpc} if vpc else {}),
        },
        "tables": {
            "name": names.stacks["tables"],
            "s3_source_uri": f"s3://{source}/people/",
            "s3_destination_uri": f"s3://{lake}/people/",
            "depth": 3,
            "table": f"glue:{names.database}.people",
            "upsert_key": ["id"],
            "order_by": ["at"],
            "parquet_schema": "id BIGINT, at BIGINT, name STRING",
            "maintenance": {"tables": [f"glue:{names.database}.people"]},
            "maintenance_locations": [f"s3://{lake}/people.table/"],
            "kms_keys": {**keys, "maintenance": key},
        },
    }


def synthesize(
    context: Mapping[str, Any], names: Names, directory: Path, region: str | None = None
) -> None:
    """Write the assembly of a deployment; cdk.json and its keys are not read.

    Raises:
        ForeignPlace: its template names something that is not of the test.
        InvalidInput: a key or value is not accepted.
        RuntimeError: a check has findings.
    """
    app = aws_cdk.App(
        context={**read_flags(), **context}, outdir=str(directory), analytics_reporting=False
    )
    config = Config.from_context(app.node.get_all_context())
    require_region(config, region)
    CompactorStack(app, config)
    checks.attach(app, config)
    app.synth()
    for template in directory.glob("*.template.json"):
        if foreign := sorted(foreign_places(template.read_text("utf-8"), names)):
            raise ForeignPlace(f"{template.name} names {', '.join(foreign)}")


def foreign_places(template: str, names: Names) -> Iterator[str]:
    """Yield the buckets, databases and tables in a template that are not of the test."""
    for match in _PLACES.finditer(template):
        place = match["uri"] or match["bucket"] or match["table"] or match["resource"]
        if place.startswith((names.base, names.database, _ASSETS)):
            continue
        if match["resource"] != _LOOKED_UP:
            yield place


def deploy(assembly: Path) -> None:
    """Deploy an assembly as it is.

    Raises:
        RuntimeError: the CDK's command line failed.
    """
    words = [str(_CDK), "deploy", "--app", str(assembly), "--require-approval", "never"]
    # In its own session: a terminal's interrupt reaches this process, which then removes all.
    ended = subprocess.run(words, cwd=assembly, check=False, start_new_session=True)
    if ended.returncode:
        raise RuntimeError(f"cdk deploy ended with status {ended.returncode}")


def destroy(stack: str, clients: Callable[[str], Any]) -> None:
    """Remove a stack, by name.

    Raises:
        RuntimeError: a Spark job of it still runs.
        ClientError, WaiterError: CloudFormation did not delete it; or it is not there.
    """
    cloudformation = clients("cloudformation")
    # ValidationError, "does not exist": there is nothing to remove.
    cloudformation.describe_stacks(StackName=stack)
    if why := stop_application(stack, clients):
        raise RuntimeError(why)
    cloudformation.delete_stack(StackName=stack)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack)
