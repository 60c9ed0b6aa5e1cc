"""Roles may do what their work needs and nothing beside it, as IAM decides it."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.infrastructure.cloud.deployment import Deployment, account_arn
from tests.infrastructure.cloud.iam import Call, Role, allowed, refused, who_may
from tests.infrastructure.configurations import CONFIGURATIONS, VPC
from tests.infrastructure.conftest import Deployed

# Actions without resources, or with such as nobody knows beforehand.
_ON_ANYTHING = re.compile(
    r"xray:|logs:\w+LogDeliver|logs:(Put|Describe)ResourcePolic|logs:DescribeLogGroups"
    r"|lakeformation:GetDataAccess|ec2:Describe"
)
_COMPACTING = [name for name in CONFIGURATIONS if name != "maintenance"]
_DELETING = [name for name in _COMPACTING if "delete_after" in CONFIGURATIONS[name].get("job", {})]
# Of the state: the log, its markers, and what else outlives a run.
_KEPT = (
    "identity.json",
    "parquet-schemas/00000000000000000001.json",
    "partitions/commits/00000000000000000001.json.gz",
    "partitions/day/commits/00000000000000000001.json.gz",
    "partitions/a.checkpoint/commits/00000000000000000001.json.gz",
    "partitions/day/cleaned/00000000000000000001.json",
    "table/00000000000000000001.json",
    "runs/1/receipts/a.json",
)
_COMMIT = "partitions/day/commits/00000000000000000001.json.gz"
_OUTPUT = "day/compacted-1.json.gz"


def _places(found: Deployment) -> dict[str, str]:
    """Bucket and prefix of source, destination and state."""
    given = json.loads(found.outputs["DefaultInput"])
    uris = {name: given[f"s3_{name}_uri"] for name in ("source", "destination")}
    uris["state"] = found.outputs["StateUri"]
    return {name: uri.removeprefix("s3://") for name, uri in uris.items()}


def _s3(action: str, place: str) -> Call:
    return Call(f"s3:{action}", f"arn:aws:s3:::{place}")


def _list(place: str) -> Call:
    bucket, _, prefix = place.partition("/")
    return Call("s3:ListBucket", f"arn:aws:s3:::{bucket}", (("s3:prefix", prefix),))


def test_actions_are_named_and_stand_on_resources_where_they_can(
    configuration: str, deployed: Deployed
) -> None:
    for name, role in deployed(configuration).roles.items():
        for statement in role.statements:
            actions, resources = map(_listed, (statement["Action"], statement["Resource"]))
            assert not [one for one in actions if "*" in one], name
            assert "*" not in resources or all(map(_ON_ANYTHING.match, actions)), (name, actions)
            # Below whole buckets nothing is allowed.
            whole = [one for one in resources if re.match(r"arn:aws:s3:::[^/]+/\*", one)]
            assert statement["Effect"] == "Deny" or not whole, (name, whole)


def test_each_function_has_a_role_of_its_own_that_may_write_its_log(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    roles = {one["Role"] for one in found.functions.values()}

    assert len(roles) == len(found.functions)
    for name, about in found.functions.items():
        stream = account_arn("logs", f"log-group:/aws/lambda/{name}:log-stream:any")
        calls = [Call(f"logs:{one}", stream) for one in ("CreateLogStream", "PutLogEvents")]
        assert refused(found.roles[about["Handler"].split(".")[-2]], calls) == []


@pytest.mark.parametrize("name", _COMPACTING)
def test_sources_are_never_written_and_the_log_is_never_deleted(
    name: str, deployed: Deployed
) -> None:
    found = deployed(name)
    place = _places(found)

    assert who_may(found.roles, _s3("PutObject", f"{place['source']}a.json")) == set()
    for kept in (f"{place['destination']}{_OUTPUT}", *(place["state"] + one for one in _KEPT)):
        for action in ("DeleteObject", "DeleteObjectVersion"):
            assert who_may(found.roles, _s3(action, kept)) == set(), kept


@pytest.mark.parametrize("name", _COMPACTING)
def test_only_clean_up_deletes_sources_and_it_writes_neither_commits_nor_outputs(
    name: str, deployed: Deployed
) -> None:
    found = deployed(name)
    place = _places(found)
    alone = "standalone" in found.roles
    cleaner, planner = ("standalone", "standalone") if alone else ("clean_up", "plan_clean_up")
    checkpoint = "partitions/day/commits/00000000000000000001.checkpoint.json.gz"
    deletes = name in _DELETING

    source = _s3("DeleteObject", f"{place['source']}a.json")
    assert who_may(found.roles, source) == ({cleaner} if deletes else set())
    dropped = _s3("DeleteObject", f"{place['state']}{checkpoint}")
    assert who_may(found.roles, dropped) == ({planner} if deletes else set())
    beside = _s3("DeleteObject", f"{place['source'].partition('/')[0]}/other/a.json")
    assert who_may(found.roles, beside) == set()
    if deletes and not alone:
        for proof in (f"{place['destination']}{_OUTPUT}", f"{place['state']}{_COMMIT}"):
            assert not {cleaner, planner} & who_may(found.roles, _s3("PutObject", proof))


@pytest.mark.parametrize("name", _COMPACTING)
def test_commits_are_written_by_who_compacts_and_by_nobody_else(
    name: str, deployed: Deployed
) -> None:
    found = deployed(name)
    place = _places(found)["state"]
    compact = {one for one in found.roles if one in ("compact_partition", "standalone", "nodes")}
    compact |= {one for one in found.roles if one.startswith("SparkJob")}

    assert who_may(found.roles, _s3("PutObject", f"{place}{_COMMIT}")) == compact
    run_file = who_may(found.roles, _s3("PutObject", f"{place}runs/1/items.json"))
    assert run_file >= ({"standalone"} if "standalone" in compact else {"discover", "report"})


@pytest.mark.parametrize("name", ["default", "events"])
def test_no_role_could_delete_an_entry_of_a_log_even_if_a_policy_allowed_it(
    name: str, deployed: Deployed
) -> None:
    found = deployed(name)
    everything = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    more = {"Version": "2012-10-17", "Statement": [everything]}
    entry = _s3("DeleteObject", f"{_places(found)['state']}{_COMMIT}")
    wide = {
        name: Role(one.arn, {**one.identity, "more": more}, one.resources)
        for name, one in found.roles.items()
    }

    assert who_may(wide, entry) == set()


def test_lambda_may_connect_functions_to_their_vpc_and_their_code_may_not(
    deployed: Deployed,
) -> None:
    interface = account_arn("ec2", "network-interface/eni-0123456789abcdef0")
    shared = f"arn:aws:ec2:us-east-1:210987654321:subnet/{VPC['subnet_ids'][0]}"
    joins = [Call("ec2:CreateNetworkInterface", one) for one in (interface, shared)]
    joins.append(Call("ec2:DeleteNetworkInterface", interface))
    own_code = (("lambda:SourceFunctionArn", account_arn("lambda", "function:f")),)

    def may(name: str, *context: tuple[str, str]) -> set[bool]:
        worker = deployed(name).roles["compact_partition"]
        return {*allowed((worker, Call(one.action, one.resource, context)) for one in joins)}

    assert (may("archive"), may("archive", *own_code), may("default")) == ({True}, {False}, {False})


def test_only_the_function_that_registers_empties_the_queue_and_only_the_sweep_starts_runs(
    deployed: Deployed,
) -> None:
    found = deployed("events")
    queue = found.outputs["EventsQueueArn"]
    machine = found.machine["stateMachineArn"]
    (rule,) = found.assembly.resources("AWS::Events::Rule")
    arn = account_arn("events", f"rule/{found.physical_ids[rule]}")

    assert who_may(found.roles, Call("sqs:ReceiveMessage", queue)) == {"register"}
    assert who_may(found.roles, Call("states:StartExecution", machine)) == {
        "sweep",
        next(one for one in found.roles if one.startswith("WorkflowRole")),
    }
    (policy,) = [one for name, one in found.roles["register"].resources.items() if name == queue]
    sends = [one for one in policy["Statement"] if one["Effect"] == "Allow"]
    assert [one["Condition"] for one in sends] == [{"ArnEquals": {"aws:SourceArn": arn}}]


def test_the_workflow_may_use_the_spark_that_is_deployed_and_no_other(deployed: Deployed) -> None:
    cluster = account_arn("elasticmapreduce", "cluster/j-2AXXXXXXGAPLF")
    other = account_arn("elasticmapreduce", "cluster/j-OTHER")

    def workflow(name: str) -> Role:
        roles = deployed(name).roles
        return next(one for key, one in roles.items() if key.startswith("WorkflowRole"))

    steps = [
        Call(f"elasticmapreduce:{one}", cluster)
        for one in ("AddJobFlowSteps", "DescribeStep", "CancelSteps")
    ]
    assert refused(workflow("upserts"), steps) == []
    assert refused(workflow("upserts"), [Call("elasticmapreduce:AddJobFlowSteps", other)])
    assert len(refused(workflow("default"), steps)) == len(steps)

    for name in ("default", "maintenance"):
        found = deployed(name)
        (application,) = found.assembly.resources("AWS::EMRServerless::Application")
        arn = account_arn("emr-serverless", f"/applications/{found.physical_ids[application]}")
        passed = (("iam:PassedToService", "emr-serverless.amazonaws.com"),)
        jobs = [
            Call("emr-serverless:StartJobRun", arn),
            Call("emr-serverless:CancelJobRun", f"{arn}/jobruns/any"),
            Call("iam:PassRole", found.spark.arn, passed),
        ]
        assert refused(workflow(name), jobs) == []


def test_spark_alone_changes_tables_with_a_key_and_deletes_nothing_of_them(
    deployed: Deployed,
) -> None:
    found = deployed("upserts")
    for table in ("people", "people__keys"):
        arn = account_arn("glue", f"table/lake/{table}")
        assert who_may(found.roles, Call("glue:UpdateTable", arn)) == {"nodes"}
        assert who_may(found.roles, Call("glue:GetTable", arn)) == {
            *("nodes", "discover", "publish_table", "clean_up")
        }
        assert who_may(found.roles, Call("glue:DeleteTable", arn)) == set()
        data = f"tables/lake/{table}/data/1.parquet"
        assert who_may(found.roles, _s3("PutObject", data)) == {"nodes"}
        assert who_may(found.roles, _s3("DeleteObject", data)) == set()
    assert refused(found.spark, [_s3("GetObject", "tables/jars/iceberg.jar")]) == []


def test_what_rewrites_tables_may_and_no_function_may(deployed: Deployed) -> None:
    found = deployed("maintenance")
    workflow = next(one for one in found.roles if one.startswith("WorkflowRole"))
    optimizers = next(one for one in found.roles if one.startswith("OptimizersRole"))
    spark = next(one for one in found.roles if one.startswith("SparkJob"))

    for action in ("PutObject", "DeleteObject"):
        call = _s3(action, "tables/bronze/t/data/1.parquet")
        assert who_may(found.roles, call) == {workflow, optimizers, spark}
    table = Call("glue:UpdateTable", account_arn("glue", "table/bronze/any"))
    assert who_may(found.roles, table) == {workflow, optimizers, spark}
    group = account_arn("athena", "workgroup/s3-compactor-tables")
    assert who_may(found.roles, Call("athena:StartQueryExecution", group)) == {workflow}
    default = Call("glue:GetDatabase", account_arn("glue", "database/default"))
    results = _s3("PutObject", "lake/_maintenance/athena-results/1.csv")
    assert refused(found.roles[workflow], [default, results, _list("tables/bronze/t/")]) == []


def test_the_other_accounts_policies_grant_what_our_roles_may_do_with_its_source(
    deployed: Deployed, repo_root: Path
) -> None:
    text = (repo_root / "docs" / "deployment.md").read_text("utf-8")
    section = text.partition("## A source in another account\n")[2].partition("\n## ")[0]
    documents = [json.loads(one) for one in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]
    bucket, key = (one["Statement"][0] for one in documents)
    found = deployed("events")
    used = {
        action
        for role in found.roles.values()
        for statement in role.statements
        for action in _listed(statement["Action"])
        if not action.endswith("BucketNotification")
        and any("app-logs" in one for one in _listed(statement["Resource"]))
    }

    assert {*bucket["Action"], "s3:DeleteObject"} == used
    assert key["Action"] == "kms:Decrypt"
    (pattern,) = {one["Condition"]["ArnLike"]["aws:PrincipalArn"] for one in (bucket, key)}
    assert all(fnmatch(role.arn, pattern) for role in found.roles.values())


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
