"""The table that query engines read: which roles switch its partitions, and which only ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from compactor.settings.settings import Settings
from compactor_cli.machine.spark_submit import SparkMissing, find_spark
from tests.infrastructure.cloud import merging
from tests.infrastructure.cloud.audit import Audit, uses
from tests.infrastructure.cloud.deployment import Deployment, account_arn, deploy
from tests.infrastructure.cloud.iam import Call, Policies, Statement
from tests.infrastructure.cloud.reading import rights_of_readers
from tests.infrastructure.cloud.running import Cloud, cloud
from tests.infrastructure.configurations import CONFIGURATIONS, expected_buckets
from tests.infrastructure.conftest import Deployed, Synthesized

_WITH_SPARK = "readers' table, made buckets, EMR Serverless"
_RESOURCES = ("catalog", "database/lake", "table/lake/logs")
_SWITCHING = ("BatchCreatePartition", "BatchUpdatePartition", "CreateTable", "GetTable")
_NEVER = (
    "BatchDeletePartition",
    "BatchDeleteTable",
    "CreateDatabase",
    "DeletePartition",
    "DeleteTable",
    "UpdateTable",
)


def _roles(found: Deployment) -> Iterator[tuple[str, Policies]]:
    """By function, ``spark`` for whatever runs the job; all others by what they are called."""
    names = {one["Role"]: one["Handler"].split(".")[1] for one in found.functions.values()}
    for role, policies in (*found.policies.items(), *found.managed_policies.items()):
        spark = any(name in role for name in ("SparkJobRole", "SparkNodesRole"))
        yield names.get(role, "spark" if spark else role), policies


def _who_may(found: Deployment, action: str, arn: str) -> set[str]:
    call = Call(action, arn)
    return {
        name
        for name, policies in _roles(found)
        if any(one.allows and one.covers(call) for one in policies.identity)
    }


def _job(found: Deployment) -> Policies:
    (policies,) = [one for name, one in _roles(found) if name == "spark"]
    return policies


def test_a_compacting_run_switches_partitions_and_clean_up_only_asks(
    configuration: str, deployed: Deployed
) -> None:
    found, context = deployed(configuration), CONFIGURATIONS[configuration]
    switches, asks = set[str](), set[str]()
    if "reader_table" in context:
        standalone = context.get("mode") == "standalone"
        switches = {"standalone"} if standalone else {"compact_partition"}
        switches |= {"spark"} if configuration == _WITH_SPARK else set()
        asks = switches if standalone else switches | {"clean_up"}

    for resource in _RESOURCES:
        arn = account_arn("glue", resource)
        may = _who_may(found, "glue:BatchGetPartition", arn)
        # The workflow of maintenance lets Athena look up the tables that it maintains.
        assert {name for name in may if "MaintenanceRole" not in name} == asks
        if "table" not in context and "maintenance" not in context:
            for action in _SWITCHING:
                assert _who_may(found, f"glue:{action}", arn) == switches, action
            for action in _NEVER:
                assert _who_may(found, f"glue:{action}", arn) == set(), action
    for other in ("database/other", "table/lake/logs2", "table/other/logs"):
        assert _who_may(found, "glue:BatchUpdatePartition", account_arn("glue", other)) == set()


def test_lists_are_written_by_who_switches_and_never_deleted(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    given = json.loads(found.outputs["DefaultInput"])
    bucket, _, prefix = given["s3_destination_uri"].removeprefix("s3://").partition("/")
    place = f"arn:aws:s3:::{bucket}/compactor-readers/{prefix}"
    one = f"{place}p-day-1/2/manifest"

    readers = _who_may(found, "glue:BatchGetPartition", account_arn("glue", "table/lake/logs"))
    assert _who_may(found, "s3:GetObject", one) == readers
    assert _who_may(found, "s3:PutObject", one) == readers - {"clean_up"}
    assert _who_may(found, "s3:PutObject", f"{place}other") == set()
    assert _who_may(found, "s3:DeleteObject", one) == set()
    assert _who_may(found, "s3:DeleteObject", f"{place}other") == set()


def test_the_spark_job_may_show_what_it_compacted_exactly_as_a_worker_may(
    deployed: Deployed,
) -> None:
    found = deployed(_WITH_SPARK)
    worker = dict(_roles(found))["compact_partition"]

    ours, theirs = ({*map(_right, rights_of_readers(one))} for one in (_job(found), worker))

    assert ours == theirs
    assert len(ours) >= 5 * len(_RESOURCES)


def _right(one: Statement) -> Statement:
    return replace(one, source="")


# What the job really asks.


@dataclass(frozen=True)
class Shown:
    """Two runs of the deployed job beside which an object arrived.

    Attributes:
        records: what a query reads of the table, by the list that its partition shows.
    """

    left: list[dict[str, Any]]
    records: list[bytes]
    audit: Audit


@pytest.fixture(scope="module")
def shown(synthesized: Synthesized) -> Iterator[Shown]:
    try:
        find_spark()
    except SparkMissing as reason:
        pytest.skip(str(reason))
    with cloud() as on, pytest.MonkeyPatch.context() as patch:
        for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(variable, "nobody")
        buckets = expected_buckets(CONFIGURATIONS[_WITH_SPARK])
        found = deploy(on, synthesized(_WITH_SPARK), buckets, with_code=False).read()
        on.client("glue").create_database(DatabaseInput={"Name": "lake"})
        settings = Settings.from_input(json.loads(found.outputs["DefaultInput"]))
        on.requests()
        left = [_run(on, settings, 1)]
        # Too young to be compacted.
        root = settings.source.root
        on.client("s3").put_object(
            Bucket=root.bucket, Key=f"{root.prefix}day/late.json", Body=b'{"id": 0}\n'
        )
        left.append(_run(on, settings, 2))
        audit = Audit(uses(on.requests(), {}), {merging.SPARK_JOB: _job(found)})
        yield Shown(left, _records(on), audit)


def _run(on: Cloud, settings: Settings, number: int) -> dict[str, Any]:
    return merging.merge(on, settings, f"run-{number}", [{"id": number}], {}, below="day/")


def _records(on: Cloud) -> list[bytes]:
    glue, s3 = on.client("glue"), on.client("s3")
    (one,) = glue.get_partitions(DatabaseName="lake", TableName="logs")["Partitions"]
    assert one["Parameters"]["compactor.shows"] == "listed"

    def body(uri: str) -> bytes:
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        return bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())

    named = body(f"{one['StorageDescriptor']['Location']}manifest").decode().splitlines()
    return sorted(line for uri in named for line in body(uri).splitlines())


@pytest.mark.slow
def test_the_spark_job_shows_each_record_once(shown: Shown) -> None:
    assert [one["partitions"]["done"] for one in shown.left] == [1, 1]
    assert shown.records == [b'{"id": 0}', b'{"id": 1}', b'{"id": 2}']


@pytest.mark.slow
def test_every_request_of_the_spark_job_is_allowed_to_its_role(shown: Shown) -> None:
    (done,) = shown.audit.done.values()

    assert {f"glue:{one}" for one in _SWITCHING} <= {call.action for call in done}
    assert shown.audit.refused() == []
