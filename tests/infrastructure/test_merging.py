"""A table whose rows have a key: Spark's MERGE into Glue's catalog, by the rights of its role.

The real Iceberg, with its own GlueCatalog and S3FileIO, and Spark's own reads of S3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from cdk.spark_jars import PINNED
from compactor.settings.settings import Settings
from compactor_cli.machine.spark_submit import SparkMissing, find_spark
from tests.infrastructure.cloud import merging
from tests.infrastructure.cloud.audit import Audit, uses
from tests.infrastructure.cloud.deployment import Deployment, account_arn, deploy
from tests.infrastructure.cloud.done import policies_of_keys
from tests.infrastructure.cloud.iam import Call, Policies
from tests.infrastructure.cloud.running import Cloud, cloud
from tests.infrastructure.configurations import CONFIGURATIONS, KMS_KEYS, expected_buckets
from tests.infrastructure.conftest import Deployed, Synthesized
from tests.support.server_builds import Unavailable, table_jars

_OWN = "table with a key"
_IMPORTED = "table with a key, KMS, imported buckets, running cluster"
_RELEASE = "table with a key, EMR on EC2, the release's archives"
_KEYED = sorted(name for name, one in CONFIGURATIONS.items() if "upsert_key" in one)
_RESOURCES = ("catalog", "database/lake", "table/lake/people", "table/lake/people__keys")


def _job(found: Deployment) -> Policies:
    """Of whatever runs the job: a role of its own, nodes of a cluster, or others' nodes."""
    for name in found.assembly.resources("AWS::IAM::Role"):
        if name.startswith(("SparkJobRole", "SparkNodesRole")):
            (role,) = [arn for arn in found.policies if arn.endswith(found.physical_ids[name])]
            return found.policies[role]
    managed = [*found.managed_policies.values()]
    return Policies(managed[0].role, tuple(one for each in managed for one in each.identity))


def _function(found: Deployment, handler: str) -> Policies:
    (role,) = [
        one["Role"]
        for one in found.functions.values()
        if one["Handler"] == f"compactor_handlers.{handler}.handler"
    ]
    return found.policies[role]


def _may(policies: Policies, action: str, resource: str) -> bool:
    call = Call(action, resource)
    return any(one.allows and one.covers(call) for one in policies.identity)


def _place(found: Deployment, configuration: str) -> str:
    """Where the table of rows lies."""
    given = json.loads(found.outputs["DefaultInput"])
    beside = f"{given['s3_destination_uri'].removesuffix('/')}.table/lake.db/people"
    return "s3://tables/lake/people" if configuration == _IMPORTED else beside


@pytest.fixture(params=_KEYED)
def keyed(request: pytest.FixtureRequest) -> str:
    """The name of each configuration whose table has a key."""
    name: str = request.param
    return name


def test_spark_alone_changes_tables_with_a_key_and_three_functions_look_at_both(
    keyed: str, deployed: Deployed
) -> None:
    found = deployed(keyed)
    lookers = [_function(found, one) for one in ("discover", "publish_table", "clean_up")]

    for arn in (account_arn("glue", one) for one in _RESOURCES):
        for action in ("GetTable", "GetDatabase", "CreateTable", "UpdateTable"):
            assert _may(_job(found), f"glue:{action}", arn)
            for looker in lookers:
                assert _may(looker, f"glue:{action}", arn) == (action == "GetTable")
        for action in ("DeleteTable", "BatchDeleteTable", "CreateDatabase", "UpdateDatabase"):
            assert not _may(_job(found), f"glue:{action}", arn)
    for other in ("database/other", "table/lake/people2", "table/other/people__keys"):
        assert not _may(_job(found), "glue:UpdateTable", account_arn("glue", other))


def test_of_both_places_spark_writes_data_and_metadata_and_deletes_nothing(
    keyed: str, deployed: Deployed
) -> None:
    found = deployed(keyed)
    rows = f"arn:aws:s3:::{_place(found, keyed).removeprefix('s3://')}"
    roles = [*found.policies.values(), *found.managed_policies.values()]

    for place in (rows, f"{rows}__keys"):
        for name in ("data/1.parquet", "metadata/1.metadata.json"):
            one = f"{place}/{name}"
            assert _may(_job(found), "s3:PutObject", one)
            for handler in ("publish_table", "clean_up"):
                assert _may(_function(found, handler), "s3:GetObject", one)
                assert not _may(_function(found, handler), "s3:PutObject", one)
            assert not any(_may(role, "s3:DeleteObject", one) for role in roles)
    for other in (f"{rows}2/data/1.parquet", f"{rows}/other/1.parquet"):
        assert not _may(_job(found), "s3:PutObject", other)


def test_the_job_is_given_the_jars_that_the_configuration_names(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    told: list[str] = []

    for machine in found.machines:
        definition = machine["definition"]
        told = [part for part in definition.split("'") if part.startswith("spark.jars=")]
        # As an argument of the step, and within those of EMR Serverless.
        assert definition.count("--conf spark.jars=") == len(told) == (configuration in _KEYED)
        for one in (told[0].removeprefix("spark.jars=").split(",")) if told else ():
            assert one.startswith("/") or _may(_job(found), "s3:GetObject", _arn(one))
    if configuration == _RELEASE:
        assert told == ["spark.jars=/usr/share/aws/iceberg/lib/iceberg-spark*runtime*.jar"]
    if configuration == _OWN:
        assert told[0].count("s3://cdk-") == len(PINNED)


def _arn(uri: str) -> str:
    return f"arn:aws:s3:::{uri.removeprefix('s3://')}"


# What Spark really asks.


@dataclass(frozen=True)
class Merged:
    """Runs of the job of a deployment that merged into its table.

    Attributes:
        left: what each run left of its result.
        rows: of the table, in the order of their keys.
        places: URIs of the table and of that of its keys.
    """

    configuration: str
    deployment: Deployment
    left: list[dict[str, Any]]
    rows: list[dict[str, Any]]
    places: tuple[str, str]
    audit: Audit


def _change(key: int, at: int, name: str, op: str = "U") -> Mapping[str, Any]:
    return {"id": key, "at": at, "op": op, "name": name}


_RUNS = (
    (_change(1, 1, "Ann"), _change(2, 1, "Bob"), _change(3, 5, "Cid")),
    # An update, a delete, a late record.
    (_change(1, 2, "Anna"), _change(2, 2, "", "D"), _change(3, 4, "late")),
)
# What there is already is merged with in one of them; the other shows its own rights.
_RUNS_OF = {_OWN: _RUNS, _IMPORTED: (sum(_RUNS, ()),)}


@pytest.fixture
def with_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever needs Spark and its archives is skipped without."""
    try:
        find_spark()
        table_jars()
    except (SparkMissing, Unavailable) as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module", params=[_OWN, _IMPORTED])
def merged(request: pytest.FixtureRequest, synthesized: Synthesized) -> Iterator[Merged]:
    """Runs; the database of imported buckets has a location, the other has none."""
    try:
        find_spark()
        table_jars()
    except (SparkMissing, Unavailable) as reason:
        pytest.skip(str(reason))
    configuration: str = request.param
    with cloud() as on, pytest.MonkeyPatch.context() as patch:
        for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(variable, "nobody")
        buckets = expected_buckets(CONFIGURATIONS[configuration])
        found = deploy(on, synthesized(configuration), buckets, with_code=False).read()
        location = {"LocationUri": "s3://tables/lake"} if configuration == _IMPORTED else {}
        on.client("glue").create_database(DatabaseInput={"Name": "lake", **location})
        given = json.loads(found.outputs["DefaultInput"])
        settings = Settings.from_input(given | _KEY)
        on.requests()
        left = [
            merging.merge(on, settings, f"run-{number}", records)
            for number, records in enumerate(_RUNS_OF[configuration], 1)
        ]
        audit = _audit(found, on, KMS_KEYS if configuration == _IMPORTED else {})
        rows = sorted(merging.rows_of(on, "lake.people"), key=lambda row: int(row["id"]))
        tables = ("lake.people", "lake.people__keys")
        rows_at, keys_at = (merging.location_of(on, one) for one in tables)
        yield Merged(configuration, found, left, rows, (rows_at, keys_at), audit)


# Whatever else the configuration says.
_KEY: Mapping[str, Any] = {
    "order_by": ["at"],
    "delete_when": {"op": ["D"]},
    "parquet_schema": "id BIGINT, at BIGINT, op STRING, name STRING",
}


def _audit(found: Deployment, on: Cloud, keys: Mapping[str, str]) -> Audit:
    policies = _job(found).with_others(policies_of_keys(keys.values()))
    return Audit(uses(on.requests(), keys), {merging.SPARK_JOB: policies})


@pytest.mark.slow
def test_spark_merges_into_the_catalog_of_glue(merged: Merged) -> None:
    assert merged.rows == [_change(1, 2, "Anna"), _change(3, 5, "Cid")]
    assert {one["partitions"]["done"] for one in merged.left} == {1}
    rows = _place(merged.deployment, merged.configuration)
    assert merged.places == (rows, f"{rows}__keys")


@pytest.mark.slow
def test_every_request_of_the_merge_is_allowed_to_the_role_of_the_job(merged: Merged) -> None:
    (done,) = merged.audit.done.values()
    made = {call.action for call in done}

    assert {"glue:CreateTable", "glue:UpdateTable", "s3:PutObject", "s3:GetObject"} <= made
    assert merged.audit.refused() == []


@pytest.mark.slow
def test_each_right_to_the_table_is_needed(merged: Merged) -> None:
    own = merged.audit.policies[merging.SPARK_JOB].identity
    about = [
        one
        for one in own
        for resource in one.resources
        if ":glue:" in resource or resource.startswith(_arn(merged.places[0]))
    ]

    spare = [one for one in about if not merged.audit.without(merging.SPARK_JOB, one).refused()]

    # The catalog, what is read and what is written: CDK puts alike statements together.
    assert len({one.source for one in about}) == 1 + 2
    assert spare == []


@pytest.mark.slow
@pytest.mark.usefixtures("with_spark")
def test_a_release_without_these_jars_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "nobody")
    given = {"s3_source_uri": "s3://logs/raw/", "s3_destination_uri": "s3://lake/compacted/"}
    settings = Settings.from_input({**given, "table": "glue:lake.people", "upsert_key": ["id"]})
    with cloud() as on:
        for bucket in ("logs", "lake"):
            on.create_bucket(bucket)
        nowhere = {"spark.jars": "/usr/share/aws/iceberg/no/such/iceberg-spark*runtime*.jar"}
        left = merging.merge(on, settings, "run-1", _RUNS[0], nowhere)

    assert left["error"] == "InvalidInput"
    assert "spark.jars" in left["cause"]
    assert "of a deployment the key spark_jars does" in left["cause"]
