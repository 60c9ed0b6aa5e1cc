"""The stacks of a smoke test: synthesized from a configuration of its own, and no other."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cdk import REPOSITORY
from cdk.app import build
from cdk.config import read
from compactor_dev.applications import stop_application
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


def documents(
    names: Names, key: str, vpc: Mapping[str, Any] | None = None
) -> Mapping[str, Mapping[str, Any]]:
    """Return what deployment.toml would have, by what each deployment is for."""
    source, lake = names.source, names.lake
    keys = {"source": key, "destination": key}
    table = f"glue:{names.database}.people"
    return {
        "runs": {
            "name": names.stacks["runs"],
            "kms_key": keys,
            # No run but those of the list is to start.
            "events": {"seconds": 86_400},
            "job": {
                "s3_source_uri": f"s3://{source}/raw/",
                "s3_destination_uri": f"s3://{lake}/compacted/",
                "date_format": "%Y/%m/%d",
                "reader_table": f"glue:{names.database}.logs",
                "delete_after": "0d",
            },
            **({"vpc": vpc} if vpc else {}),
        },
        "tables": {
            "name": names.stacks["tables"],
            "kms_key": keys,
            "job": {
                "s3_source_uri": f"s3://{source}/people/",
                "s3_destination_uri": f"s3://{lake}/people/",
                "depth": 3,
                "table": table,
                "upsert_key": ["id"],
                "order_by": ["at"],
                "parquet_schema": "id BIGINT, at BIGINT, name STRING",
            },
            "maintenance": {
                "locations": [f"s3://{lake}/people.table/"],
                "kms_key": key,
                "job": {"s3_state_uri": f"s3://{lake}/_maintenance/", "tables": [table]},
            },
        },
    }


def synthesize(
    document: Mapping[str, Any],
    names: Names,
    directory: Path,
    region: str | None = None,
    context: Mapping[str, Any] = {},
) -> None:
    """Write the assembly of a deployment; no file of the checkout is read.

    Raises:
        ForeignPlace: a template names something that is not of the test.
        InvalidInput: a key or value is not accepted.
        RuntimeError: a check has findings.
    """
    deployment = read(document)
    deployment.require_region(region)
    build(deployment, directory, context).synth()
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


def deploy(assembly: Path, seconds: float) -> None:
    """Deploy an assembly as it is.

    Raises:
        RuntimeError: the CDK's command line failed.
        TimeoutExpired: it took longer than so many seconds.
    """
    words = [str(_CDK), "deploy", "--all", "--app", str(assembly), "--require-approval", "never"]
    # In its own session: a terminal's interrupt reaches this process, which then removes all.
    ended = subprocess.run(
        words, cwd=assembly, check=False, start_new_session=True, timeout=seconds
    )
    if ended.returncode:
        raise RuntimeError(f"cdk deploy ended with status {ended.returncode}")


def destroy(stack: str, clients: Callable[[str], Any]) -> None:
    """Remove a stack, by name; what its Spark application still runs is canceled.

    Raises:
        RuntimeError: a Spark job of it still runs after that.
        ClientError, WaiterError: CloudFormation did not delete it; or it is not there.
    """
    cloudformation = clients("cloudformation")
    # ValidationError, "does not exist": there is nothing to remove.
    cloudformation.describe_stacks(StackName=stack)
    if why := stop_application(stack, clients, cancel=True):
        raise RuntimeError(why)
    cloudformation.delete_stack(StackName=stack)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=stack)
