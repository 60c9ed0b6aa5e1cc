"""A table: its deployment reaches the one table, and what was committed comes into it."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from compactor.model import Partition, SourceObject
from compactor.s3.store import S3Store, make_client
from compactor.settings.settings import Settings
from compactor_local.embedded import SeedObject
from tests.infrastructure.cloud import engine
from tests.infrastructure.cloud.audit import Audit
from tests.infrastructure.cloud.deployment import Deployment, account_arn, deploy
from tests.infrastructure.cloud.done import audit_of
from tests.infrastructure.cloud.iam import Call, Policies
from tests.infrastructure.cloud.running import Cloud, cloud
from tests.infrastructure.configurations import CONFIGURATIONS, expected_buckets
from tests.infrastructure.conftest import Deployed, Synthesized
from tests.support.parquet_outputs import commit_rows

_GLUE = "table in Glue, KMS, imported buckets"
_WITH_TABLE = [name for name, one in CONFIGURATIONS.items() if "table" in one]
# Those with a key are Spark's (test_merging.py).
_PUBLISHED = [name for name in _WITH_TABLE if "upsert_key" not in CONFIGURATIONS[name]]


@pytest.fixture(params=_PUBLISHED)
def with_table(request: pytest.FixtureRequest) -> str:
    """The name of each configuration with a table that a function publishes to."""
    name: str = request.param
    return name


def _policies(found: Deployment, handler: str) -> Policies:
    (role,) = [
        one["Role"]
        for one in found.functions.values()
        if one["Handler"] == f"compactor_handlers.{handler}.handler"
    ]
    return found.policies[role]


def _others(found: Deployment, *handlers: str) -> list[Policies]:
    return [
        found.policies[one["Role"]]
        for one in found.functions.values()
        if one["Handler"].split(".")[1] not in handlers
    ]


def test_without_a_table_no_function_publishes_and_the_state_has_another_one(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    publishes = [name for name in found.functions if name.endswith("-publish-table")]

    assert len(publishes) == (configuration in _WITH_TABLE)
    for machine in found.machines:
        state = json.loads(machine["definition"])["States"]["PublishTable"]
        called = state["Parameters"]["FunctionName"].rpartition(":")[2]
        assert called in (publishes or found.functions)


def test_only_who_publishes_changes_the_table_and_discovery_and_clean_up_look_at_it(
    with_table: str, deployed: Deployed
) -> None:
    found = deployed(with_table)
    kinds = ("catalog", "database/lake", "table/lake/events")

    for resource in kinds:
        arn = account_arn("glue", resource)
        for action in ("GetTable", "CreateTable", "UpdateTable", "GetDatabase"):
            call = Call(f"glue:{action}", arn)
            assert _policies(found, "publish_table").allow(call)
            for looks in ("discover", "clean_up"):
                assert _policies(found, looks).allow(call) is (action == "GetTable")
            others = _others(found, "publish_table", "discover", "clean_up")
            assert not any(one.allow(call) for one in others)
    for policies in found.policies.values():
        for action in ("DeleteTable", "BatchDeleteTable", "CreateDatabase"):
            assert not any(
                policies.allow(Call(f"glue:{action}", account_arn("glue", one))) for one in kinds
            )
        for other in ("database/other", "table/lake/events2", "table/other/events"):
            assert not policies.allow(Call("glue:UpdateTable", account_arn("glue", other)))


_PLACES = {
    "table in Glue": "compacted.table/",
    _GLUE: "lake/events/",
    "table in Glue, by events": "compacted.table/",
}


def test_of_where_the_table_lies_metadata_alone_is_written_and_nothing_deleted(
    with_table: str, deployed: Deployed
) -> None:
    found = deployed(with_table)
    given = json.loads(found.outputs["DefaultInput"])
    bucket = "tables" if with_table == _GLUE else given["s3_destination_uri"].split("/")[2]
    place = f"arn:aws:s3:::{bucket}/{_PLACES[with_table]}"
    written = Call("s3:PutObject", f"{place}metadata/1.json")
    listed = Call(
        "s3:ListBucket",
        f"arn:aws:s3:::{bucket}",
        (("s3:prefix", _PLACES[with_table] + "metadata/"),),
    )

    publishing, cleaning = (_policies(found, one) for one in ("publish_table", "clean_up"))

    assert _allows(publishing, written)
    assert not _allows(publishing, Call("s3:PutObject", f"{place}data/1.parquet"))
    assert not _allows(cleaning, written)
    for policies in (publishing, cleaning):
        assert _allows(policies, Call("s3:GetObject", f"{place}metadata/1.json"))
        assert _allows(policies, listed)
    for policies in found.policies.values():
        assert not _allows(policies, Call("s3:DeleteObject", f"{place}metadata/1.json"))


def _allows(policies: Policies, call: Call) -> bool:
    return any(one.allows and one.covers(call) for one in policies.identity)


def test_outputs_of_a_table_stay_where_engines_can_read_them(synthesized: Synthesized) -> None:
    buckets = synthesized("table in Glue").resources("AWS::S3::Bucket").values()
    rules = [one for bucket in buckets for one in bucket["LifecycleConfiguration"]["Rules"]]

    moves = [to["StorageClass"] for one in rules for to in one.get("Transitions", ())]

    assert moves == ["STANDARD_IA", "GLACIER_IR"]
    assert [one["Prefix"] for one in rules if "Transitions" in one] == ["compacted/"]


# What was committed comes into the table, by the function's own libraries and rights.


@dataclass(frozen=True)
class Published:
    """A run that had nothing to compact, and an output that was in no table yet."""

    deployment: Deployment
    status: str
    cause: str | None
    report: dict[str, Any]
    audit: Audit
    sources: int


def _commit(on: Cloud, settings: Settings) -> None:
    """An output of one source, as the Spark job leaves it."""
    root = settings.source.root
    partition = Partition(root.bucket, root.prefix + _DAY, _DAY)
    key = f"{partition.prefix}1.json"
    on.seed(root.bucket, [SeedObject(key, b'{"id": 1}\n', time.time() - 2 * 86_400)])
    found = on.client("s3").head_object(Bucket=root.bucket, Key=key)
    source = SourceObject(root.bucket, key, found["ETag"].strip('"'), found["ContentLength"], 0.0)
    store = S3Store(make_client(on.endpoint_url))
    commit_rows(store, settings, partition, pa.table({"id": [1]}), source)


# No server stands for Spark here: the run lists another day than the one that was compacted.
_DAY = "2024/02/03/"
_ANOTHER_DAY = {"date_format": "%Y/%m/%d", "duration": 1}


@pytest.fixture(scope="module")
def published(
    bundled: Synthesized,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Published]:
    """A run of the workflow with the bundled functions."""
    if platform.system() != "Linux":
        pytest.skip("the bundle of a Lambda function is for Linux")
    with cloud() as on, pytest.MonkeyPatch.context() as patch:
        for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(variable, "nobody")
        assembly = bundled(_GLUE)
        buckets = expected_buckets(CONFIGURATIONS[_GLUE])
        deployment = deploy(on, assembly, buckets, with_code=False).read()
        on.client("glue").create_database(
            DatabaseInput={"Name": "lake", "LocationUri": "s3://tables/lake"}
        )
        given = json.loads(deployment.outputs["DefaultInput"]) | _ANOTHER_DAY
        settings = Settings.from_input(given)
        _commit(on, settings)
        on.requests()
        result = engine.run(deployment, given, tmp_path_factory.mktemp("run"), run_name="run-1")
        client = on.client("s3")
        body = client.get_object(
            Bucket=settings.state.bucket, Key=f"{settings.state.prefix}runs/run-1/report.json"
        )["Body"].read()
        root = settings.source.root
        left = client.list_objects_v2(Bucket=root.bucket, Prefix=root.prefix)
        yield Published(
            deployment=deployment,
            status=result.status,
            cause=result.cause,
            report=json.loads(body),
            audit=audit_of(deployment, _GLUE),
            sources=left["KeyCount"],
        )


def test_what_was_committed_comes_into_the_table_and_then_its_source_goes(
    published: Published,
) -> None:
    assert published.status == "SUCCEEDED", published.cause
    table = published.report["table"]
    assert (table["outputs"], table["rows"]) == (1, 1)
    assert published.sources == 0


def test_every_call_is_allowed_to_the_role_that_made_it(published: Published) -> None:
    name = published.deployment.assembly.name

    done = {call.action.split(":")[0] for call in published.audit.done[f"{name}-publish-table"]}

    assert {"s3", "glue"} <= done
    assert published.audit.refused() == []


def test_taking_one_statement_from_who_publishes_refuses_calls(published: Published) -> None:
    sender = f"{published.deployment.assembly.name}-publish-table"
    policies = published.audit.policies[sender]

    needed = [
        one for one in policies.identity if published.audit.without(sender, one).refused() != []
    ]

    # Its log and traces, the destination, the state, and the table.
    assert len(needed) >= 6
