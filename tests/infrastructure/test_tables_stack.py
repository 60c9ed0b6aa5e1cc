"""The stack with maintenance of tables: its second state machine, and what each part may do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from cdk.app import build
from cdk.config import Config
from cdk.spark_jars import PINNED, PINNED_DELTA
from compactor.errors import InvalidInput
from compactor_local.definition import ACCOUNT, REGION, function_substitution
from tests.infrastructure.cloud.assembly import Assembly
from tests.infrastructure.cloud.static_checks import template_findings
from tests.support.tables_model import TABLES_HANDLERS, TABLES_VALUES

_URIS = {"s3_source_uri": "s3://app-logs/raw/", "s3_destination_uri": "s3://lake/compacted/"}
SCANNED = {"match": ["bronze.slow"], "athena_workgroup": "reports", "slower_than_seconds": 60}
RULE = {"match": ["gold.orders"], "zorder": ["customer"], "keep_days": 9, "min_files": 7}
MAINTENANCE = {
    "glue_tables": ["bronze.*"],
    "tables": ["glue:gold.orders"],
    "delta_prefixes": ["s3://tables/delta/"],
    "policies": [RULE, SCANNED],
}
CONTEXT: Mapping[str, Any] = {
    **_URIS,
    "maintenance": MAINTENANCE,
    "maintenance_locations": ["s3://tables/bronze/", "s3://tables/delta/", "s3://gold/"],
    "maintenance_schedule": "rate(12 hours)",
    "glue_optimizers": ["glue:gold.orders"],
}
_DELETES = "s3:DeleteObject"


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Assembly:
    """Synthesized with every check of the house: cdk-nag, the CDK's, and Guard's rules."""
    outdir = tmp_path_factory.mktemp("tables")
    build({"aws:cdk:bundling-stacks": [], **CONTEXT}, outdir).synth()
    return Assembly(outdir)


@pytest.fixture(scope="module")
def template(assembly: Assembly) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(assembly.template_path.read_text(encoding="utf-8"))
    return found


def of_type(template: Mapping[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    return {
        name: one["Properties"]
        for name, one in template["Resources"].items()
        if one["Type"] == kind
    }


def text_of(value: Any) -> str:
    """A resource as text, with what CloudFormation fills in by its name."""
    if isinstance(value, Mapping):
        if "Fn::Join" in value:
            return "".join(map(text_of, value["Fn::Join"][1]))
        if "Fn::Sub" in value:
            return str(value["Fn::Sub"])
        if "Ref" in value:
            return f"<{value['Ref']}>"
        return f"<{'.'.join(value['Fn::GetAtt'])}>"
    return str(value)


def allowed(template: Mapping[str, Any], role: str) -> Iterator[tuple[str, str]]:
    """Action and resource of all that policies with this in their name allow."""
    for name, one in of_type(template, "AWS::IAM::Policy").items():
        if role not in name:
            continue
        for statement in one["PolicyDocument"]["Statement"]:
            actions, resources = (
                given if isinstance(given, list) else [given]
                for given in (statement["Action"], statement["Resource"])
            )
            yield from ((action, text_of(arn)) for action in actions for arn in resources)


def may(template: Mapping[str, Any], role: str, action: str, arn: str) -> bool:
    return any(
        given == action and fnmatchcase(arn, resource.partition(":s3:::")[2] or resource)
        for given, resource in allowed(template, role)
    )


def test_cfn_lint_finds_nothing(assembly: Assembly) -> None:
    assert template_findings(assembly.template_path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("role", ["MaintenancePolicy", "TableOptimizersRole", "SparkJobRole"])
def test_a_rewriter_may_delete_where_tables_lie_and_nowhere_else(
    template: dict[str, Any], role: str
) -> None:
    """VACUUM without this right succeeds, and deletes nothing."""
    for key in ("tables/bronze/t/data/1.parquet", "tables/delta/t/1", "gold/orders/x"):
        assert may(template, role, _DELETES, key)
    for key in ("tables/other/1", "lake/compacted/1", "app-logs/raw/1", "lake/_compactor/x"):
        assert not may(template, role, _DELETES, key)


def test_no_function_may_delete_or_write_a_table(template: dict[str, Any]) -> None:
    for name in ("ListTables", "PlanTable", "BeginTable", "AthenaStep", "EndTable"):
        role = f"Functions{name}Role"
        assert [*allowed(template, role)]
        for action in (_DELETES, "s3:PutObject"):
            assert not may(template, role, action, "tables/bronze/t/data/1.parquet")


@pytest.mark.parametrize(
    ("name", "key", "writes"),
    [
        ("ListTables", "runs/r/tables.json", True),
        ("ListTables", "runs/r/maintenance-request.json", True),
        ("ListTables", "partitions/p/commits/1.json.gz", False),
        ("PlanTable", "runs/r/tables/1.order.json", True),
        ("PlanTable", "tables/1/lease.json", False),
        ("BeginTable", "tables/1/lease.json", True),
        ("BeginTable", "runs/r/tables/1.order.json", False),
        ("AthenaStep", "runs/r/tables/1.receipt.json", True),
        ("EndTable", "runs/r/tables/1.outcome.json", True),
        ("EndTable", "tables/1/lease.json", True),
        ("ReportTables", "runs/r/tables-report.json", True),
        ("ReportTables", "tables/1/lease.json", False),
    ],
)
def test_each_function_writes_its_own_documents(
    template: dict[str, Any], name: str, key: str, writes: bool
) -> None:
    state = "lake/_compactor/compacted/"

    assert may(template, f"Functions{name}Role", "s3:PutObject", state + key) is writes
    # Whoever lists tables reads nothing.
    reads = may(template, f"Functions{name}Role", "s3:GetObject", state + key)
    assert reads is (name != "ListTables")


def test_plans_delete_nothing_and_may_list_the_queries_of_the_workgroup_of_a_rule(
    template: dict[str, Any],
) -> None:
    rights = {*allowed(template, "FunctionsPlanTableRole")}

    assert _DELETES not in {action for action, _ in rights}
    (workgroup,) = (arn for action, arn in rights if action == "athena:ListQueryExecutions")
    assert workgroup.endswith(":workgroup/reports")


def test_the_machine_may_do_what_its_states_ask_for(template: dict[str, Any]) -> None:
    actions = {action for action, _ in allowed(template, "MaintenancePolicy")}

    assert actions >= {
        "athena:StartQueryExecution",
        "athena:StopQueryExecution",
        "athena:GetQueryExecution",
        "emr-serverless:StartJobRun",
        "glue:UpdateTable",
        "iam:PassRole",
        "lakeformation:GetDataAccess",
        "lambda:InvokeFunction",
        "states:RedriveExecution",
    }
    functions = {
        arn for action, arn in allowed(template, "MaintenancePolicy") if "lambda" in action
    }
    assert len(functions) == len(TABLES_HANDLERS)


def test_glue_may_change_the_tables_of_the_patterns_alone(template: dict[str, Any]) -> None:
    arns = {
        arn.rpartition("<AWS::AccountId>:")[2]
        for action, arn in allowed(template, "TableOptimizersRole")
        if action == "glue:UpdateTable"
    }

    assert arns == {
        "catalog",
        "database/bronze",
        "database/gold",
        "table/bronze/*",
        "table/gold/orders",
    }


def test_every_substitution_of_the_definition_has_a_value(template: dict[str, Any]) -> None:
    machines = of_type(template, "AWS::StepFunctions::StateMachine")
    (tables,) = (
        one for one in machines.values() if one["StateMachineName"] == "s3-compactor-tables"
    )
    given = tables["DefinitionSubstitutions"]

    assert {*given} == {*map(function_substitution, TABLES_HANDLERS), *TABLES_VALUES}
    assert given["SparkEngine"] == "emr_serverless"
    # Of both formats, as assets, which only the job may read.
    jars = text_of(given["TableJars"]).split(",")
    assert len(jars) == len(PINNED) + len(PINNED_DELTA)
    for one in jars:
        key = one.rpartition("/")[2]
        readers = {
            name
            for name in of_type(template, "AWS::IAM::Policy")
            for action, arn in allowed(template, name)
            if action == "s3:GetObject" and arn.endswith(key)
        }
        assert len(readers) == 1
        assert "SparkJobRole" in readers.pop()


def test_the_optimizers_of_the_stack_are_as_the_rule_says(template: dict[str, Any]) -> None:
    found = {one["Type"]: one for one in of_type(template, "AWS::Glue::TableOptimizer").values()}

    assert {*found} == {"compaction", "retention", "orphan_file_deletion"}
    for one in found.values():
        assert (one["DatabaseName"], one["TableName"]) == ("gold", "orders")
        assert one["TableOptimizerConfiguration"]["Enabled"] is True
        assert "TableOptimizersRole" in text_of(one["TableOptimizerConfiguration"]["RoleArn"])
    inner = found["compaction"]["TableOptimizerConfiguration"]["CompactionConfiguration"]
    assert inner == {"IcebergConfiguration": {"Strategy": "z-order", "MinInputFiles": 7}}
    inner = found["retention"]["TableOptimizerConfiguration"]["RetentionConfiguration"]
    assert inner["IcebergConfiguration"]["SnapshotRetentionPeriodInDays"] == 9


def test_queries_leave_their_answers_in_the_state_encrypted(template: dict[str, Any]) -> None:
    (group,) = of_type(template, "AWS::Athena::WorkGroup").values()
    configuration = group["WorkGroupConfiguration"]

    assert configuration["EnforceWorkGroupConfiguration"] is True
    assert configuration["ResultConfiguration"] == {
        "OutputLocation": "s3://lake/_compactor/compacted/athena-results/",
        "EncryptionConfiguration": {"EncryptionOption": "SSE_S3"},
    }


def test_the_schedule_starts_it_with_the_input_of_the_outputs(template: dict[str, Any]) -> None:
    schedules = of_type(template, "AWS::Scheduler::Schedule").values()
    (tables,) = (one for one in schedules if one["Name"] == "s3-compactor-tables")
    given = json.loads(tables["Target"]["Input"])

    assert tables["State"] == "ENABLED"
    assert tables["ScheduleExpression"] == "rate(12 hours)"
    assert given == {**MAINTENANCE, "s3_state_uri": "s3://lake/_compactor/compacted/"}
    assert json.loads(template["Outputs"]["TablesInput"]["Value"]) == given
    assert "TablesStateMachineArn" in template["Outputs"]


def test_a_failed_run_and_a_missing_one_are_alarms(template: dict[str, Any]) -> None:
    names = {one["AlarmName"] for one in of_type(template, "AWS::CloudWatch::Alarm").values()}

    assert names >= {
        f"s3-compactor-{name}"
        for name in ("TablesFailed", "TablesTimedOut", "TablesAborted", "NoTablesRun")
    }
    missed = next(
        one
        for one in of_type(template, "AWS::CloudWatch::Alarm").values()
        if one["AlarmName"] == "s3-compactor-NoTablesRun"
    )
    assert missed["EvaluationPeriods"] == 24


def test_the_dashboard_shows_files_backlog_cost_and_time(template: dict[str, Any]) -> None:
    (dashboard,) = of_type(template, "AWS::CloudWatch::Dashboard").values()
    body = text_of(dashboard["DashboardBody"])

    for words in ("Files of each table", "Backlog", "dollars a day", "Seconds of each table"):
        assert words in body


def test_plans_know_which_engines_are_deployed(template: dict[str, Any]) -> None:
    functions = of_type(template, "AWS::Lambda::Function")
    (plan,) = (
        one for one in functions.values() if one["FunctionName"] == "s3-compactor-plan-table"
    )

    engines = plan["Environment"]["Variables"]["COMPACTOR_TABLE_ENGINES"]
    assert json.loads(engines) == ["spark", "athena"]


@pytest.mark.parametrize(
    ("more", "engines"),
    [
        ({"spark_engine": "none"}, ["athena"]),
        ({"spark_engine": "emr", "emr_cluster": "subnet-0123456789abcdef0"}, ["athena"]),
        ({"spark_engine": "j-2AXXXXXXGAPLF"}, ["spark", "athena"]),
    ],
)
def test_spark_is_there_where_no_cluster_must_be_made(
    more: dict[str, Any], engines: list[str]
) -> None:
    assert Config.from_context({**CONTEXT, **more}).table_engines == engines


@pytest.mark.parametrize(
    ("more", "field", "accepted"),
    [
        ({"maintenance_locations": []}, "maintenance_locations", "where the maintained tables"),
        ({"maintenance_locations": ["s3://lake/"]}, "maintenance_locations", "contains the state"),
        ({"maintenance": None}, "maintenance_locations", "none without maintenance"),
        ({"maintenance": {"glue_table": ["a.*"]}}, "maintenance", "glue_tables, delta_prefixes"),
        ({"maintenance": {**MAINTENANCE, "s3_state_uri": "s3://x/y/"}}, "maintenance", "but s3_"),
        ({"glue_optimizers": ["delta:s3://tables/delta/a/"]}, "glue_optimizers", "glue:bronze"),
        ({"mode": "standalone"}, "mode", "workflow"),
        (
            {"spark_jars": "release", "spark_engine": "none"},
            "spark_jars",
            "nothing without upsert_key or maintenance by Spark",
        ),
        (
            {"maintenance": {"tables": ["sql:postgresql://db/c#gold.orders"]}},
            "spark_jars",
            "JDBC driver",
        ),
    ],
)
def test_a_mistake_names_its_key(more: dict[str, Any], field: str, accepted: str) -> None:
    with pytest.raises(InvalidInput) as told:
        Config.from_context({**CONTEXT, **more})

    assert told.value.field == field
    assert accepted in str(told.value)


_DELTA_ONLY = {"delta_prefixes": ["s3://tables/delta/"]}
_ICEBERG_ONLY = {"glue_tables": ["bronze.*"]}
_NO_OPTIMIZER: dict[str, Any] = {"glue_optimizers": []}


@pytest.mark.parametrize(
    ("more", "jars"),
    [
        ({}, None),
        ({"spark_jars": "release"}, ["delta-spark*", "delta-storage*", "iceberg-spark"]),
        ({"spark_jars": "release", "maintenance": _DELTA_ONLY}, ["delta-spark*", "storage"]),
        ({"spark_jars": "release", "maintenance": _ICEBERG_ONLY}, ["iceberg-spark"]),
        ({"spark_jars": ["s3://mine/mine.jar"]}, ["s3://mine/mine.jar"]),
    ],
)
def test_whose_jars_maintain_tables_is_said_by_a_key(
    more: dict[str, Any], jars: list[str] | None
) -> None:
    found = Config.from_context({**CONTEXT, **_NO_OPTIMIZER, **more}).table_jars

    if jars is None:
        assert found is None
        return
    assert found is not None
    assert len(found) == len(jars)
    assert all(part in one for part, one in zip(jars, found, strict=True))


@pytest.mark.parametrize(
    ("maintenance", "formats"),
    [(MAINTENANCE, ["delta", "iceberg"]), (_DELTA_ONLY, ["delta"]), (_ICEBERG_ONLY, ["iceberg"])],
)
def test_jars_are_brought_for_the_formats_that_are_maintained(
    maintenance: dict[str, Any], formats: list[str]
) -> None:
    given = {**CONTEXT, **_NO_OPTIMIZER, "maintenance": maintenance}

    assert Config.from_context(given).table_formats == formats
    assert Config.from_context({**given, "spark_engine": "none"}).table_formats == []


def test_without_maintenance_nothing_of_it_is_made(tmp_path: Path) -> None:
    build({"aws:cdk:bundling-stacks": [], **_URIS}, tmp_path).synth()
    text = Assembly(tmp_path).template_path.read_text(encoding="utf-8")

    assert "s3-compactor-tables" not in text
    assert "AWS::Athena" not in text
    assert f":{REGION}:{ACCOUNT}" not in text
