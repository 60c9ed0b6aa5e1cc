"""Checks that need runs of a deployed state machine."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from compactor.settings.uris import S3Uri
from tests.aws.checks import CheckFailed, NotRun
from tests.aws.objects import (
    FEW,
    FIRST,
    REDRIVEN,
    SPARK,
    VERSIONED,
    WITHIN,
    body,
    key_of,
    put_day,
)
from tests.aws.world import World

_OVERWRITTEN = b'{"id": "overwritten"}\n'
_LONG = 86_400


def given(world: World, day: str, **fields: Any) -> dict[str, Any]:
    """Return the input of a run over one day's prefix, whatever the age of its objects."""
    own = {"s3_source_uri", "s3_destination_uri", "s3_state_uri"}
    kept = {name: one for name, one in world.runs.default_input.items() if name in own}
    window = {"date_format": "%Y/%m/%d", "window": f"{day}..{day}"}
    young = {"settle_seconds": 0}
    return {**kept, **window, **young, "delete_after": None, **fields}


def missing_state(world: World) -> None:
    """The first run finds no state, which must be 404 to roles that may list some prefixes."""
    state = S3Uri.parse("StateUri", world.runs.state_uri)
    if any(_keys(world, state.bucket, f"{state.prefix}partitions/")):
        raise NotRun("the state is not empty")
    world.run("first", world.runs.state_machine_arn, given(world, FIRST, engine="worker"))
    _require_records(world, FIRST, world.per_day)


def map_run(world: World) -> None:
    """The Map Run read its list and left its results below the state."""
    state = S3Uri.parse("StateUri", world.runs.state_uri)
    run = world.executions["first"].rpartition(":")[2]
    found = [*_keys(world, state.bucket, f"{state.prefix}runs/{run}/")]
    if not any(key.endswith("/manifest.json") for key in found):
        raise CheckFailed(f"no manifest.json of the Map Run among {len(found)} objects of the run")


def demands_an_endpoint(world: World) -> None:
    """Where a policy denies reads from outside of a VPC, functions inside of it are let in."""
    if not world.endpoint:
        raise NotRun("it needs --vpc and --endpoint of make smoke, in ARGS")
    bucket = world.names.source
    put_day(world, WITHIN, FEW)
    get = partial(world.client("s3").get_object, Bucket=bucket, Key=key_of(WITHIN, 0))
    condition = {"StringNotEquals": {"aws:SourceVpce": world.endpoint}}
    with world.denied(bucket, "s3:GetObject", condition):
        world.refused("a GetObject from outside of the VPC", get)
        world.run("within", world.runs.state_machine_arn, given(world, WITHIN, engine="worker"))
    _require_records(world, WITHIN, FEW)


def redrive(world: World) -> None:
    """A stopped execution is redriven to its end."""
    client = world.client("stepfunctions")
    arn = world.start("redriven", world.runs.state_machine_arn, given(world, REDRIVEN))
    client.stop_execution(executionArn=arn)
    stopped = world.ended(arn)["status"]
    if stopped == "SUCCEEDED":
        raise NotRun("the run ended before it was stopped")
    client.redrive_execution(executionArn=arn)
    found = world.ended(arn)
    if found["status"] != "SUCCEEDED":
        raise CheckFailed(f"{found['status']}: {found.get('error', '')} {found.get('cause')}")
    _require_records(world, REDRIVEN, world.per_day)


def oversized(world: World) -> None:
    """Spark compacts a partition on EMR Serverless, and leaves its logs below the state."""
    world.client("emr-serverless")
    put_day(world, SPARK, FEW)
    world.run("spark", world.runs.state_machine_arn, given(world, SPARK, engine="spark"))
    _require_records(world, SPARK, FEW)
    state = S3Uri.parse("StateUri", world.runs.state_uri)
    if not any(_keys(world, state.bucket, f"{state.prefix}spark-logs/")):
        raise CheckFailed("the job left no logs below spark-logs/ of the state")


def clean_up(world: World) -> None:
    """Clean-up deletes what was compacted, and leaves an overwritten source."""
    _clean_up(world, FIRST, "clean")


def clean_up_versioned(world: World) -> None:
    """The same in a versioned bucket, where deleted sources remain as older versions."""
    s3, bucket = world.client("s3"), world.names.source
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    put_day(world, VERSIONED, FEW)
    world.run("versioned", world.runs.state_machine_arn, given(world, VERSIONED, engine="worker"))
    _clean_up(world, VERSIONED, "versions")
    answer = s3.list_object_versions(Bucket=bucket, Prefix=key_of(VERSIONED, 1))
    if not (answer.get("DeleteMarkers") and answer.get("Versions")):
        raise CheckFailed("a deleted source has no delete marker over its version")


def _clean_up(world: World, day: str, name: str) -> None:
    s3, bucket, key = world.client("s3"), world.names.source, key_of(day, 0)
    before = len([*_keys(world, bucket, _prefix(day))])
    s3.put_object(Bucket=bucket, Key=key, Body=_OVERWRITTEN)
    # So young that this run does not compact it.
    fields = {"settle_seconds": _LONG, "delete_after": "0d"}
    world.run(name, world.runs.state_machine_arn, given(world, day, **fields))
    left = [*_keys(world, bucket, _prefix(day))]
    if left != [key]:
        raise CheckFailed(f"{len(left)} of {before} sources are there, not the overwritten alone")
    if s3.get_object(Bucket=bucket, Key=key)["Body"].read() != _OVERWRITTEN:
        raise CheckFailed("the overwritten source has other content")


def events(world: World) -> None:
    """Events of objects under a customer's key reach the registry under it."""
    table = world.runs.outputs.get("RegistryTable")
    if table is None:
        raise NotRun("the stack has no events")
    client = world.client("dynamodb")

    def registered() -> bool:
        pages = client.get_paginator("scan").paginate(TableName=table, Select="COUNT")
        return any(page["Count"] for page in pages)

    world.until("the first registered object", registered)


def alarm(world: World) -> None:
    """An alarm that is set by force notifies its topic."""
    client = world.client("cloudwatch")
    found = client.describe_alarms(AlarmNamePrefix=f"{world.runs.name}-", MaxRecords=1)
    names = [one["AlarmName"] for one in found["MetricAlarms"]]
    if not names:
        raise CheckFailed("DescribeAlarms names no alarm of the stack")
    client.set_alarm_state(AlarmName=names[0], StateValue="ALARM", StateReason="smoke test")

    def notified() -> bool:
        history = client.describe_alarm_history(AlarmName=names[0], HistoryItemType="Action")
        items = [one["HistorySummary"] for one in history["AlarmHistoryItems"]]
        if any("Failed" in one for one in items):
            raise CheckFailed("; ".join(items))
        return any("Successfully" in one for one in items)

    world.until("the alarm's action", notified)


def _require_records(world: World, day: str, objects: int) -> None:
    """Compare the records of a day's outputs with those of its sources."""
    place = S3Uri.parse("s3_destination_uri", str(given(world, day)["s3_destination_uri"]))
    s3 = world.client("s3")
    keys = [*_keys(world, place.bucket, f"{place.prefix}{day.replace('-', '/')}/")]
    lines = [
        line
        for key in keys
        for line in s3.get_object(Bucket=place.bucket, Key=key)["Body"].read().splitlines()
    ]
    expected = sorted(body(day, number).strip() for number in range(objects))
    if sorted(lines) != expected:
        what = f"{len(lines):,} records in {len(keys)} outputs"
        raise CheckFailed(f"{what}, and {objects:,} were put, or their content differs")


def _keys(world: World, bucket: str, prefix: str) -> Iterator[str]:
    pages = world.client("s3").get_paginator("list_objects_v2")
    for page in pages.paginate(Bucket=bucket, Prefix=prefix):
        yield from (one["Key"] for one in page.get("Contents", ()))


def _prefix(day: str) -> str:
    return key_of(day, 0).rpartition("/")[0] + "/"


def spent(world: World) -> float:
    """Return the dollars that the reports of the runs name."""
    dollars = 0.0
    state = S3Uri.parse("StateUri", world.runs.state_uri)
    s3 = world.client("s3")
    for arn in world.executions.values():
        key = f"{state.prefix}runs/{arn.rpartition(':')[2]}/report.json"
        if key in _keys(world, state.bucket, key):
            document: Mapping[str, Any] = json.loads(
                s3.get_object(Bucket=state.bucket, Key=key)["Body"].read()
            )
            dollars += (document.get("cost") or {}).get("dollars", 0.0)
    return dollars
