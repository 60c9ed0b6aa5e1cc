"""Roles may do what their work needs, in every configuration, and nothing beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.infrastructure.cloud import expected
from tests.infrastructure.cloud.deployment import Deployment, account_arn
from tests.infrastructure.cloud.iam import Call, Policies, Statement
from tests.infrastructure.configurations import CONFIGURATIONS, EVERY, engine_of, key_of
from tests.infrastructure.conftest import Deployed

# Actions without resources, or with such as nobody knows beforehand; and why they are in a policy.
_ON_ANYTHING: Mapping[str, str] = {
    "xray:PutTraceSegments": "X-Ray knows no resources",
    "xray:PutTelemetryRecords": "X-Ray knows no resources",
    "xray:GetSamplingRules": "X-Ray knows no resources",
    "xray:GetSamplingTargets": "X-Ray knows no resources",
    "logs:CreateLogDelivery": "log deliveries know no resources",
    "logs:GetLogDelivery": "log deliveries know no resources",
    "logs:UpdateLogDelivery": "log deliveries know no resources",
    "logs:DeleteLogDelivery": "log deliveries know no resources",
    "logs:ListLogDeliveries": "log deliveries know no resources",
    "logs:PutResourcePolicy": "policies of CloudWatch Logs know no resources",
    "logs:DescribeResourcePolicies": "policies of CloudWatch Logs know no resources",
    "logs:DescribeLogGroups": "log deliveries ask for all groups",
    "lakeformation:GetDataAccess": "Lake Formation knows no resources",
    "ec2:DescribeNetworkInterfaces": "EC2 describes without resources",
    "ec2:DescribeSubnets": "EC2 describes without resources",
    "elasticmapreduce:RunJobFlow": "there is no cluster yet; the tag it is given is a condition",
}

_MAINTAINED = [name for name, context in EVERY.items() if "maintenance" in context]


def _given(found: Deployment) -> dict[str, Any]:
    given: dict[str, Any] = json.loads(found.outputs["DefaultInput"])
    return given


def _roles(found: Deployment) -> Iterator[tuple[str, Policies]]:
    """Roles and policies of the stack; those of AWS itself that a role also has are left out."""
    for role, policies in (*found.policies.items(), *found.managed_policies.items()):
        own = tuple(
            one for one in policies.identity if one.source.partition("[")[0] in found.documents
        )
        yield role.rpartition("/")[2], Policies(policies.role, own, policies.resource)


def _refused(policies: Policies, calls: set[Call]) -> list[str]:
    return sorted(str(call) for call in calls if not policies.allow(call))


def test_functions_may_write_their_logs_and_traces(
    every_configuration: str, deployed: Deployed
) -> None:
    found = deployed(every_configuration)

    assert found.functions
    for name, about in found.functions.items():
        calls = expected.of_a_function(found, name)
        assert _refused(found.policies[about["Role"]], calls) == []


def test_lambda_may_connect_functions_to_their_vpc_and_their_code_may_not(
    every_configuration: str, deployed: Deployed
) -> None:
    found = deployed(every_configuration)
    own_code = (("lambda:SourceFunctionArn", "arn:aws:lambda:us-east-1:123456789012:function:f"),)
    for about in found.functions.values():
        policies = found.policies[about["Role"]]
        for call in expected.TO_JOIN_A_VPC:
            assert policies.allow(call) is ("vpc" in EVERY[every_configuration]), call
            assert not policies.allow(Call(call.action, call.resource, own_code))


def test_each_function_has_a_role_of_its_own(every_configuration: str, deployed: Deployed) -> None:
    roles = [one["Role"] for one in deployed(every_configuration).functions.values()]

    assert len(roles) == len({*roles})


def test_the_state_machine_may_do_what_its_states_do(
    every_configuration: str, deployed: Deployed
) -> None:
    found = deployed(every_configuration)
    way = engine_of(EVERY[every_configuration])

    for machine in found.every_machine:
        calls = expected.of_the_workflow(machine, found, way)
        invoked = {one.resource for one in calls if one.action == "lambda:InvokeFunction"}
        assert len(calls) > len(invoked) >= 5
        assert _refused(found.policies[machine["roleArn"]], calls) == []


def test_the_state_machine_may_start_no_other_kind_of_spark(
    every_configuration: str, deployed: Deployed
) -> None:
    found = deployed(every_configuration)
    way = engine_of(EVERY[every_configuration])
    prefixes = {"emr_serverless": "emr-serverless:", "emr": "elasticmapreduce:"}
    prefixes["cluster"] = prefixes["emr"]
    others = {*prefixes.values()} - {prefixes.get(way)}

    for machine in found.every_machine:
        actions = {
            action for one in found.policies[machine["roleArn"]].identity for action in one.actions
        }
        assert [action for action in actions if action.startswith(tuple(others))] == []


def test_the_schedule_may_start_it_and_keep_what_it_could_not_start(
    every_configuration: str, deployed: Deployed
) -> None:
    found = deployed(every_configuration)
    given, name = EVERY[every_configuration], found.assembly.name
    wanted = {"schedule": name, "maintenance_schedule": f"{name}-tables"}
    names = {one for key, one in wanted.items() if key in given}
    assert names == found.schedules.keys() & {*wanted.values()}
    for target in (found.schedules[name]["Target"] for name in names):
        calls = expected.of_the_schedule(target)
        assert len(calls) == 2
        assert _refused(found.policies[target["RoleArn"]], calls) == []


def test_the_spark_job_may_do_its_work(configuration: str, deployed: Deployed) -> None:
    found = deployed(configuration)
    jobs = list(spark_roles(found))

    assert len(jobs) == (engine_of(CONFIGURATIONS[configuration]) != "none")
    for policies in jobs:
        assert _refused(policies, expected.of_the_spark_job(found, _given(found))) == []


@pytest.mark.parametrize("maintained", _MAINTAINED)
def test_the_rewriter_of_tables_may_and_no_function_may(
    maintained: str, deployed: Deployed
) -> None:
    found, context = deployed(maintained), EVERY[maintained]
    table = "gold/orders" if "tables" in context["maintenance"] else "bronze/any"
    calls = expected.of_rewriting(context["maintenance_locations"], [table])
    (machine,) = found.table_machines
    for policies in (found.policies[machine["roleArn"]], *spark_roles(found)):
        assert _refused(policies, calls) == []
    changes = [one for one in calls if one.action in {"s3:PutObject", "s3:DeleteObject"}]
    for about in found.functions.values():
        policies = found.policies[about["Role"]]
        assert [str(one) for one in changes if policies.allow(one)] == []


@pytest.mark.parametrize("maintained", _MAINTAINED)
def test_the_machine_of_maintenance_may_query_by_athena(
    maintained: str, deployed: Deployed
) -> None:
    found, context = deployed(maintained), EVERY[maintained]
    table = "gold/orders" if "tables" in context["maintenance"] else "bronze/any"
    (machine,) = found.table_machines
    policies = found.policies[machine["roleArn"]]

    assert _refused(policies, expected.of_querying(found, [table])) == []
    for action in ("CreateDatabase", "CreateTable", "DeleteTable", "CreatePartition"):
        for resource in ("catalog", "database/default", f"table/{table}"):
            assert not policies.allow(Call(f"glue:{action}", account_arn("glue", resource)))


@pytest.mark.parametrize("maintained", _MAINTAINED)
def test_taking_any_one_statement_from_the_machine_of_maintenance_shows(
    maintained: str, deployed: Deployed
) -> None:
    found, context = deployed(maintained), EVERY[maintained]
    (machine,) = found.table_machines
    policies = found.policies[machine["roleArn"]]
    table = "gold/orders" if "tables" in context["maintenance"] else "bronze/any"
    calls = expected.of_the_workflow(machine, found, engine_of(context))
    calls |= expected.of_rewriting(context["maintenance_locations"], [table])

    shown = [one for one in policies.identity if _refused(policies.without(one), calls)]

    # Without Spark nothing starts or watches it.
    assert len(shown) >= (10 if engine_of(context) == "none" else 12)


_OTHER_OBJECT = ("kms:EncryptionContext:aws:s3:arn", "arn:aws:s3:::somebody/else")


def test_the_spark_job_can_read_its_code_also_where_that_is_encrypted_with_a_customers_key(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)

    for policies in spark_roles(found):
        # The key's own policy, which leaves it to IAM, is not of this stack.
        calls = expected.of_decrypting_assets(found)
        assert len(calls) == 1 + len([*expected.assets(found)])
        for call in calls:
            assert any(one.covers(call) for one in policies.identity), call
            # Nothing else that the key encrypts.
            other = Call(call.action, call.resource, (*call.context[:1], _OTHER_OBJECT))
            assert not any(one.covers(other) for one in policies.identity)


def spark_roles(found: Deployment) -> Iterator[Policies]:
    """Of the serverless job, of a made cluster's nodes, or the policy for a running one's."""
    for name in found.assembly.resources("AWS::IAM::Role"):
        if name.startswith(("SparkJobRole", "SparkNodesRole")):
            (role,) = [arn for arn in found.policies if arn.endswith(found.physical_ids[name])]
            yield found.policies[role]
    managed = [*found.managed_policies.values()]
    if managed:
        # A running cluster's nodes have all of them.
        yield Policies(managed[0].role, tuple(one for each in managed for one in each.identity))


def test_no_action_has_a_wildcard(every_configuration: str, deployed: Deployed) -> None:
    wide = [
        f"{name}: {action}"
        for name, policies in _roles(deployed(every_configuration))
        for one in policies.identity
        for action in one.actions
        if "*" in action or "?" in action
    ]

    assert wide == []


def test_only_actions_without_resources_are_allowed_on_anything(
    every_configuration: str, deployed: Deployed
) -> None:
    wide = [
        f"{name}: {action}"
        for name, policies in _roles(deployed(every_configuration))
        for one in policies.identity
        if "*" in one.resources
        for action in one.actions
        if action not in _ON_ANYTHING
    ]

    assert wide == []


def test_wildcards_stand_only_after_a_name_of_ours(configuration: str, deployed: Deployed) -> None:
    found = deployed(configuration)
    given = _given(found)
    named = (given[name] for name in ("s3_source_uri", "s3_destination_uri"))
    table = CONFIGURATIONS[configuration].get("table_location_uri")
    others = (found.outputs["StateUri"], table)
    tables = CONFIGURATIONS[configuration].get("maintenance_locations", ())
    buckets = {uri.split("/")[2] for uri in (*named, *others, *tables) if uri}

    for name, policies in _roles(found):
        for one in policies.identity:
            for resource in _wild(one):
                service = resource.split(":")[2]
                owner = resource.split(":", 5)[5]
                ours = service == "s3" and owner.split("/")[0] in buckets
                # Any key, but only for what encrypts the CDK's assets.
                assets = service == "kms" and _of_the_assets(one)
                known = {"ec2", "elasticmapreduce", "emr-serverless", "lambda", "logs", "states"}
                # Patterns say which tables are maintained; which there are, a run sees.
                patterns = service == "glue" and bool(tables)
                rest = assets or patterns or service in known
                assert ours or rest, (name, resource)
                # Below whole buckets nothing is allowed.
                assert not (service == "s3" and owner.split("/")[1].startswith("*")), (
                    name,
                    resource,
                )


def _of_the_assets(statement: Statement) -> bool:
    bounds = {key: values for operator, key, values in statement.conditions}
    allowed = bounds.get("kms:EncryptionContext:aws:s3:arn", ("nothing",))
    return {*statement.actions} == {"kms:Decrypt"} and all(
        arn.startswith("arn:aws:s3:::cdk-") for arn in allowed
    )


def _wild(statement: Statement) -> list[str]:
    return [one for one in statement.resources if "*" in one and one != "*"]


# Of the state: the log, its markers, and what else outlives a run.
NEVER_DROPPED = (
    "identity.json",
    "schemes/00000000000000000001.json",
    "scheme-copies/00000000000000000002.json",
    "parquet-schemas/00000000000000000001.json",
    "partitions/commits/00000000000000000001.json.gz",
    "partitions/day/commits/00000000000000000001.json.gz",
    "partitions/a.checkpoint/commits/00000000000000000001.json.gz",
    "partitions/day/cleaned/00000000000000000001.json",
    "partitions/day/dead-letters/1.json",
    "probes/1.json",
)


def test_replaced_checkpoints_are_dropped_with_clean_up_and_by_one_function(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    state = found.outputs["StateUri"].removeprefix("s3://")
    planner = _role_of(found, "plan-clean-up") or _role_of(found, "standalone")
    assert planner is not None
    cleans = CONFIGURATIONS[configuration].get("clean_up") == "delete"
    for name in (
        "partitions/commits/00000000000000000001.checkpoint.json.gz",
        "partitions/day/commits/00000000000000000001.checkpoint.json.gz",
    ):
        drop = Call("s3:DeleteObject", f"arn:aws:s3:::{state}{name}")
        may = [role for role, policies in _roles(found) if policies.allow(drop)]
        assert may == ([planner.role.rpartition("/")[2]] if cleans else []), name


def test_deleting_is_allowed_only_with_clean_up_and_then_only_below_the_source(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    given = _given(found)
    cleans = CONFIGURATIONS[configuration].get("clean_up") == "delete"
    source = given["s3_source_uri"].removeprefix("s3://")
    destination = given["s3_destination_uri"].removeprefix("s3://")
    state = found.outputs["StateUri"].removeprefix("s3://")
    elsewhere = (
        f"{destination}a.json",
        *(state + name for name in NEVER_DROPPED),
        f"{source.split('/')[0]}/other/a.json",
    )

    may = {
        name
        for name, policies in _roles(found)
        if policies.allow(Call("s3:DeleteObject", f"arn:aws:s3:::{source}a.json"))
    }

    assert len(may) == cleans, may
    for name, policies in _roles(found):
        for action in ("s3:DeleteObject", "s3:DeleteObjectVersion", "s3:DeleteBucket"):
            for place in elsewhere:
                assert not policies.allow(Call(action, f"arn:aws:s3:::{place}")), (name, place)


def test_no_function_may_delete_the_files_of_a_run(configuration: str, deployed: Deployed) -> None:
    found = deployed(configuration)
    state = found.outputs["StateUri"].removeprefix("s3://")
    old = Call("s3:DeleteObject", f"arn:aws:s3:::{state}runs/1/receipts/a.json")

    assert [name for name, policies in _roles(found) if policies.allow(old)] == []


def _role_of(found: Deployment, function: str) -> Policies | None:
    """Of the function with this handler; None where standalone mode does without."""
    names = [name for name in found.functions if name.endswith(f"-{function}")]
    return found.policies[found.functions[min(names, key=len)]["Role"]] if names else None


def test_clean_up_may_do_its_work(configuration: str, deployed: Deployed) -> None:
    found = deployed(configuration)
    cleaner = _role_of(found, "clean-up") or _role_of(found, "standalone")
    planner = _role_of(found, "plan-clean-up") or cleaner

    assert cleaner is not None
    assert planner is not None
    assert cleaner is not planner or not found.machines
    assert _refused(cleaner, expected.of_clean_up(found, _given(found))) == []
    assert _refused(planner, expected.of_the_plan_of_a_clean_up(found)) == []


def test_who_deletes_sources_can_look_at_those_that_stayed(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    context = CONFIGURATIONS[configuration]
    cleaner = _role_of(found, "clean-up") or _role_of(found, "standalone")

    assert cleaner is not None
    calls = expected.of_deleting(_given(found), key_of(context, "source"))
    if context.get("clean_up") == "delete":
        missing = [
            str(call)
            for call in calls
            if not any(one.allows and one.covers(call) for one in cleaner.identity)
        ]
        assert missing == []
    else:
        assert _refused(cleaner, calls) != []


def test_who_deletes_sources_can_write_neither_commits_nor_outputs(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    state = found.outputs["StateUri"].removeprefix("s3://")
    destination = _given(found)["s3_destination_uri"].removeprefix("s3://")
    proofs = (
        f"{destination}day/compacted-1.json.gz",
        f"{state}partitions/day/commits/00000000000000000001.json.gz",
        f"{state}partitions/cleaned/commits/00000000000000000001.json.gz",
        f"{state}partitions/commits/00000000000000000001.checkpoint.json.gz",
        f"{state}partitions/day/dead-letters/1.json",
        f"{state}runs/1/clean-up.json",
        f"{state}runs/1/report.json",
    )

    for function in ("clean-up", "plan-clean-up"):
        policies = _role_of(found, function)
        written = [
            place
            for place in proofs
            if policies and policies.allow(Call("s3:PutObject", f"arn:aws:s3:::{place}"))
        ]
        own = {"plan-clean-up": [f"{state}runs/1/clean-up.json"]}
        assert written == (own.get(function, []) if policies else [])


def test_only_who_looks_for_orphans_may_list_uploads(
    configuration: str, deployed: Deployed
) -> None:
    found = deployed(configuration)
    bucket = _given(found)["s3_destination_uri"].split("/")[2]
    listing = Call("s3:ListBucketMultipartUploads", f"arn:aws:s3:::{bucket}")

    may = {name for name, policies in _roles(found) if policies.allow(listing)}

    cleaner = _role_of(found, "clean-up") or _role_of(found, "standalone")
    assert cleaner is not None
    job = engine_of(CONFIGURATIONS[configuration]) != "none"
    assert cleaner.role.rpartition("/")[2] in may
    # Athena, by the role of the machine that maintains tables, lists those of its results.
    maintains = {one["roleArn"].rpartition("/")[2] for one in found.table_machines}
    assert maintains <= may
    assert len(may) == 1 + job + len(maintains), may


def test_sources_are_never_written(configuration: str, deployed: Deployed) -> None:
    found = deployed(configuration)
    source = _given(found)["s3_source_uri"].removeprefix("s3://")
    write = Call("s3:PutObject", f"arn:aws:s3:::{source}a.json")

    assert [name for name, policies in _roles(found) if policies.allow(write)] == []


@pytest.mark.parametrize("suffix", ["amazonaws.com", "amazonaws.com.cn"])
def test_emr_and_ec2_get_their_roles_by_the_service_names_of_each_partition(
    suffix: str, deployed: Deployed
) -> None:
    found = deployed("EMR on EC2")
    by_service: dict[str, str] = {}
    for name, role in found.assembly.resources("AWS::IAM::Role").items():
        for statement in role["AssumeRolePolicyDocument"]["Statement"]:
            service = statement["Principal"]["Service"]
            if isinstance(service, Mapping):
                assert service["Fn::Join"][1][1:] == [{"Ref": "AWS::URLSuffix"}]
                by_service[service["Fn::Join"][1][0]] = found.physical_ids[name]
    assert by_service.keys() == {"ec2.", "elasticmapreduce."}
    machine = found.policies[found.machine["roleArn"]]
    for service, name in by_service.items():
        (role_arn,) = [arn for arn in found.policies if arn.endswith(name)]
        passed = (("iam:PassedToService", f"{service}{suffix}"),)
        assert machine.allow(Call("iam:PassRole", role_arn, passed))
        other = (("iam:PassedToService", f"lambda.{suffix}"),)
        assert not machine.allow(Call("iam:PassRole", role_arn, other))


def test_taking_any_one_statement_from_the_state_machine_shows(deployed: Deployed) -> None:
    found = deployed("EMR on EC2")
    policies = found.policies[found.machine["roleArn"]]
    calls = expected.of_the_workflow(found.machine, found, "emr")

    shown = [one for one in policies.identity if _refused(policies.without(one), calls)]

    assert len(shown) >= 8
    assert _refused(policies, calls) == []


def _who_may(found: Deployment, call: Call) -> list[str]:
    return [role for role, policies in _roles(found) if policies.allow(call)]
