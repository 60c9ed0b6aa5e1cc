"""A deployment of maintenance alone has nothing of compaction, and the other way round."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cdk import function_set
from cdk.app import build
from cdk.assets import Bundle, functions_bundle
from cdk.bundles import Machine
from cdk.config import Config
from compactor.errors import InvalidInput
from tests.infrastructure.cloud import expected
from tests.infrastructure.cloud.assembly import Assembly
from tests.infrastructure.cloud.iam import Call
from tests.infrastructure.configurations import CONFIGURATIONS, EVERY, MAINTENANCE_ALONE, engine_of
from tests.infrastructure.conftest import Deployed, Synthesized
from tests.infrastructure.test_least_privilege import spark_roles
from tests.infrastructure.test_tables_stack import of_type, text_of
from tests.support.tables_model import TABLES_HANDLERS

_COMPACTION_ALONE = sorted(n for n, one in CONFIGURATIONS.items() if "maintenance" not in one)
_ALONE: Mapping[str, Any] = MAINTENANCE_ALONE["maintenance alone"]
_STATE = "lake/_maintenance/"


@pytest.fixture(params=sorted(MAINTENANCE_ALONE))
def alone(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def _handlers(assembly: Assembly) -> set[str]:
    return {one["Handler"].removesuffix(".handler") for one in assembly.functions().values()}


def test_maintenance_alone_has_its_functions_and_no_others(
    alone: str, synthesized: Synthesized
) -> None:
    assert _handlers(synthesized(alone)) == {*TABLES_HANDLERS.values()}


def test_maintenance_alone_has_one_state_machine(alone: str, deployed: Deployed) -> None:
    found = deployed(alone)

    assert found.machines == []
    (machine,) = found.every_machine
    assert machine["name"] == f"{found.assembly.name}-tables"
    text = machine["definition"]
    for state in ("CompactPartitions", "CleanUpPartitions", "PublishTable", "RunServerlessJob"):
        assert f'"{state}"' not in text
    assert "not-deployed" not in json.loads(text)["States"]


def test_maintenance_alone_makes_nothing_of_compaction(
    alone: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(alone)
    template = assembly.template
    kinds = {one["Type"] for one in template["Resources"].values()}

    assert not kinds & {
        "AWS::S3::Bucket",
        "AWS::DynamoDB::Table",
        "AWS::Events::Rule",
        "AWS::Lambda::EventSourceMapping",
        "AWS::EMR::SecurityConfiguration",
    }
    names = {one["AlarmName"].rpartition("-")[2] for one in of_type(template, _ALARM).values()}
    own = {"FailedStart", "IntegrityError", "TablesFailed", "TablesTimedOut", "TablesAborted"}
    scheduled = "maintenance_schedule" in MAINTENANCE_ALONE[alone]
    assert names == own | ({"NoTablesRun"} if scheduled else set())
    assert {*template["Outputs"]} == {
        "StateUri",
        "DashboardName",
        "SpecVersion",
        "FunctionNames",
        "TablesStateMachineArn",
        "TablesInput",
    }
    # Neither the placeholders of made buckets nor the job of compaction are named anywhere.
    text = json.dumps(template)
    assert "made-by-the-stack" not in text
    assert "compact_partitions" not in text


_ALARM = "AWS::CloudWatch::Alarm"


def test_no_role_of_maintenance_alone_reaches_anything_but_tables_and_state(
    alone: str, synthesized: Synthesized
) -> None:
    """Every object that any policy names, by what it begins with."""
    template = synthesized(alone).template
    locations = [
        one.removeprefix("s3://") for one in MAINTENANCE_ALONE[alone]["maintenance_locations"]
    ]
    policies = [
        *of_type(template, "AWS::IAM::Policy").values(),
        *of_type(template, "AWS::IAM::ManagedPolicy").values(),
    ]
    assert policies
    seen = set()
    for policy in policies:
        for statement in policy["PolicyDocument"]["Statement"]:
            resources = statement["Resource"]
            for one in resources if isinstance(resources, list) else [resources]:
                text = text_of(one)
                _, is_s3, path = text.partition(":s3:::")
                if not is_s3 or path.startswith("cdk-"):
                    continue
                bucket, slash, _ = path.partition("/")
                seen.add(path)
                within = any(path.startswith(where) for where in (_STATE, *locations))
                # A bucket alone is listed, or asked for its region.
                assert within or (not slash and bucket in {"lake", "tables"}), (path, statement)
    assert any(one.startswith(_STATE) for one in seen)


@pytest.mark.parametrize(
    ("name", "maintenance"),
    [("maintenance alone", {True}), ("two days", {False}), ("tables maintained", {True, False})],
)
def test_functions_have_the_bundle_of_their_product(
    name: str, maintenance: set[bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in each, tests/unit/test_bundling.py says."""
    asked: set[bool] = set()

    def bundle(machine: Machine, *, table: bool, maintenance: bool) -> Bundle:
        asked.add(maintenance)
        return functions_bundle(machine, table=table, maintenance=maintenance)

    monkeypatch.setattr(function_set, "functions_bundle", bundle)
    build({"aws:cdk:bundling-stacks": [], **EVERY[name]}, tmp_path).synth()

    assert asked == maintenance


def test_the_spark_job_of_maintenance_alone_may_do_its_work(alone: str, deployed: Deployed) -> None:
    found, context = deployed(alone), MAINTENANCE_ALONE[alone]
    jobs = [*spark_roles(found)]

    assert len(jobs) == (engine_of(context) != "none")
    for policies in jobs:
        calls = expected.of_rewriting(context["maintenance_locations"], [])
        for key in (
            "runs/1/tables/1.order.json",
            "runs/1/tables/1.receipt.json",
            "tables/1/lease.json",
        ):
            calls.add(Call("s3:GetObject", f"arn:aws:s3:::{_STATE}{key}"))
        for key in ("runs/1/tables/1.receipt.json", "spark-logs/driver/stderr.gz"):
            calls.add(Call("s3:PutObject", f"arn:aws:s3:::{_STATE}{key}"))
        assert sorted(str(one) for one in calls if not policies.allow(one)) == []
        for key in ("tables/1/lease.json", "runs/1/tables.json", "partitions/a"):
            assert not policies.allow(Call("s3:PutObject", f"arn:aws:s3:::{_STATE}{key}"))


@pytest.mark.parametrize("compacts", _COMPACTION_ALONE)
def test_a_deployment_without_maintenance_has_nothing_of_it(
    compacts: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(compacts)
    text = json.dumps(assembly.template)

    assert not [one for one in _handlers(assembly) if not one.startswith("compactor_handlers.")]
    assert f"{assembly.name}-tables" not in text
    for word in ("AWS::Athena", "TableOptimizer", "athena:", "lakeformation:", "/tables/*"):
        assert word not in text


@pytest.mark.parametrize(
    ("more", "field", "accepted"),
    [
        ({"s3_source_uri": "s3://a/b/"}, "s3_source_uri", "no key of compaction"),
        ({"ingest": "events"}, "ingest", "no key of compaction"),
        ({"clean_up": "delete"}, "clean_up", "no key of compaction"),
        ({"schedule": "rate(1 day)"}, "schedule", "no key of compaction"),
        ({"versioned": True}, "versioned", "no key of compaction"),
        ({"s3_state_uri": None}, "s3_state_uri", "where runs and reports go"),
        ({"maintenance": None}, "maintenance", "which tables are maintained"),
        ({"spark_engine": "emr"}, "spark_engine", "running cluster"),
        (
            {"kms_keys": {"source": "arn:aws:kms:us-east-1:123456789012:key/1"}},
            "kms_keys",
            "source",
        ),
        ({"maintenance_locations": ["s3://lake/"]}, "maintenance_locations", "contains the state"),
    ],
)
def test_a_mistake_names_its_key(more: dict[str, Any], field: str, accepted: str) -> None:
    with pytest.raises(InvalidInput) as found:
        Config.from_context({**_ALONE, **more})

    assert found.value.field == field
    assert accepted in str(found.value)
