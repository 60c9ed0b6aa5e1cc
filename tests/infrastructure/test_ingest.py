"""Events: what S3 notifies gets into the registry, by roles that may do no more."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from moto.events.models import EventPattern

from cdk.config import Config
from compactor.aws.registry_rows import create_table
from compactor.errors import InvalidInput
from compactor.registry.events import Happened, decode
from compactor.registry.streams import parse_streams
from compactor.settings.settings import Settings
from tests.infrastructure.cloud.alarms import state_of
from tests.infrastructure.cloud.deployment import Deployment, account_arn
from tests.infrastructure.cloud.iam import Call, Policies
from tests.infrastructure.configurations import CONFIGURATIONS, key_of
from tests.infrastructure.conftest import Deployed, Synthesized

_WITH_EVENTS = [name for name, one in CONFIGURATIONS.items() if one.get("ingest") == "events"]
_NO_TLS = {"Bool": {"aws:SecureTransport": "false"}}


@pytest.fixture(params=_WITH_EVENTS)
def with_events(request: pytest.FixtureRequest) -> str:
    """The name of each configuration with events."""
    name: str = request.param
    return name


def _one(found: Mapping[str, Any]) -> Any:
    (only,) = found.values()
    return only


def test_without_events_there_is_nothing_of_it(
    configuration: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(configuration)
    kinds = ("AWS::DynamoDB::Table", "AWS::Events::Rule", "AWS::Lambda::EventSourceMapping")

    found = [len(assembly.resources(kind)) for kind in kinds]

    assert found == [configuration in _WITH_EVENTS] * 3


# The registry.


def test_the_registry_is_the_table_that_the_application_knows(
    with_events: str, synthesized: Synthesized
) -> None:
    table = _one(synthesized(with_events).resources("AWS::DynamoDB::Table"))
    wanted: dict[str, Any] = {}

    class Client:
        def create_table(self, **given: Any) -> None:
            wanted.update(given)

    create_table(Client(), "any")

    for name in ("KeySchema", "LocalSecondaryIndexes", "BillingMode"):
        assert table[name] == wanted[name], name
    types = {one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]}
    assert types == {
        one["AttributeName"]: one["AttributeType"] for one in wanted["AttributeDefinitions"]
    }


def test_the_registry_is_kept_encrypted_and_recoverable(
    with_events: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(with_events)
    ((name, table),) = assembly.resources("AWS::DynamoDB::Table").items()
    key = key_of(CONFIGURATIONS[with_events], "destination")

    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}
    assert table["DeletionProtectionEnabled"] is True
    assert assembly.template["Resources"][name]["DeletionPolicy"] == "Retain"
    assert assembly.template["Resources"][name]["UpdateReplacePolicy"] == "Retain"
    # Not enabled means: by DynamoDB's own key, and not by one of KMS.
    wanted = {"KMSMasterKeyId": key, "SSEEnabled": True, "SSEType": "KMS"}
    assert table["SSESpecification"] == (wanted if key else {"SSEEnabled": False})


# From S3 into the queue, and to the function.


def _event(kind: str, bucket: str, key: str) -> Any:
    about = {"key": key, "size": 7, "etag": "0" * 32, "sequencer": "00617F08299329D189"}
    return {
        "version": "0",
        "id": "1",
        "detail-type": kind,
        "source": "aws.s3",
        "account": "123456789012",
        "time": "2026-11-22T12:00:00Z",
        "region": "us-east-1",
        "resources": [f"arn:aws:s3:::{bucket}"],
        "detail": {"version": "0", "bucket": {"name": bucket}, "object": about},
    }


def test_the_rule_lets_through_what_happens_below_the_source_and_nothing_else(
    synthesized: Synthesized,
) -> None:
    rule = _one(synthesized("events, KMS, imported buckets").resources("AWS::Events::Rule"))
    # moto's annotation wants fields that it does not look at.
    pattern: Any = EventPattern.load(json.dumps(rule["EventPattern"]))

    for kind in ("Object Created", "Object Deleted"):
        assert pattern.matches_event(_event(kind, "app-logs", "raw/a b+ü.json")), kind
        assert not pattern.matches_event(_event(kind, "app-logs", "other/a.json"))
        assert not pattern.matches_event(_event(kind, "app-logs-2", "raw/a.json"))
    assert not pattern.matches_event(_event("Object Tags Added", "app-logs", "raw/a.json"))


def test_the_application_understands_every_kind_that_the_rule_lets_through(
    with_events: str, synthesized: Synthesized
) -> None:
    rule = _one(synthesized(with_events).resources("AWS::Events::Rule"))

    happened = {
        one.happened
        for kind in rule["EventPattern"]["detail-type"]
        for one in decode(json.dumps(_event(kind, "b", "raw/a.json")))
    }

    assert happened == {*Happened}


def test_queues_are_encrypted_take_only_tls_and_keep_what_could_not_be_read(
    with_events: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(with_events)
    queues = assembly.resources("AWS::SQS::Queue")
    policies = assembly.resources("AWS::SQS::QueuePolicy").values()
    (events,) = [one for name, one in queues.items() if name.startswith("IngestEvents")]
    ((dead, letters),) = [
        (name, one) for name, one in queues.items() if name.startswith("IngestDeadLetters")
    ]
    feed = _one(assembly.resources("AWS::Lambda::EventSourceMapping"))
    (register,) = [one for one in assembly.functions().values() if ".register." in one["Handler"]]

    assert all(one["SqsManagedSseEnabled"] for one in queues.values())
    refusing = {
        queue["Ref"]
        for policy in policies
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny" and statement.get("Condition") == _NO_TLS
        for queue in policy["Queues"]
    }
    assert refusing == {*queues}
    assert events["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": [dead, "Arn"]},
        "maxReceiveCount": 5,
    }
    # "At least six times the configuration timeout of the function".
    assert events["VisibilityTimeout"] == 6 * register["Timeout"]
    # The age of a dead letter counts from when it was an event.
    assert letters["MessageRetentionPeriod"] == 2 * events["MessageRetentionPeriod"] == 14 * 86_400
    assert feed["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    # More than ten at once want a window.
    assert feed["BatchSize"] <= 10 or feed["MaximumBatchingWindowInSeconds"] >= 1
    rule = _one(assembly.resources("AWS::Events::Rule"))
    (target,) = rule["Targets"]
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [dead, "Arn"]}}


def test_event_bridge_may_fill_the_queues_by_this_rule_alone(
    with_events: str, deployed: Deployed
) -> None:
    found = deployed(with_events)
    (rule,) = found.assembly.resources("AWS::Events::Rule")
    arn = account_arn("events", f"rule/{found.physical_ids[rule]}")
    sources = (("aws:SourceArn", arn), ("aws:SecureTransport", "true"))
    others = (("aws:SourceArn", arn + "-2"), ("aws:SecureTransport", "true"))
    by_event_bridge = Policies("events.amazonaws.com", (), _of_queues(found))

    for queue in _queues(found, "Events"), _queues(found, "DeadLetters"):
        assert by_event_bridge.allow(Call("sqs:SendMessage", queue, sources))
        assert not by_event_bridge.allow(Call("sqs:SendMessage", queue, others))
        assert not by_event_bridge.allow(Call("sqs:ReceiveMessage", queue, sources))


def _of_queues(found: Deployment) -> tuple[Any, ...]:
    any_role = next(iter(found.policies.values()))
    return any_role.resource


def _queues(found: Deployment, name: str) -> str:
    (queue,) = [
        found.physical_ids[one]
        for one in found.assembly.resources("AWS::SQS::Queue")
        if one.startswith(f"Ingest{name}")
    ]
    return account_arn("sqs", queue.rpartition("/")[2])


@pytest.mark.parametrize("name", ["nothing set", *_WITH_EVENTS])
def test_a_made_source_notifies_event_bridge_and_one_that_is_there_is_set_to(
    name: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(name)
    told = {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    made = [
        logical_id
        for logical_id, bucket in assembly.resources("AWS::S3::Bucket").items()
        if bucket.get("NotificationConfiguration") == told
    ]
    added = assembly.resources("Custom::S3BucketNotifications").values()

    assert [one[:13] for one in made] == (
        ["StorageSource"] if name in ("events", "events in a VPC") else []
    )
    wanted = ["app-logs"] if name == "events, KMS, imported buckets" else []
    assert [one["BucketName"] for one in added] == wanted


# Who does what.


def _policies(found: Deployment, handler: str) -> Policies:
    (role,) = [
        one["Role"]
        for one in found.functions.values()
        if one["Handler"] == f"compactor_handlers.{handler}.handler"
    ]
    return found.policies[role]


def _table(found: Deployment) -> str:
    return account_arn("dynamodb", f"table/{found.outputs['RegistryTable']}")


_ITEMS = ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "Scan", "ConditionCheckItem")
_MAY = {
    "register": {"GetItem", "PutItem", "UpdateItem", "Query"},
    "sweep": {"GetItem", "PutItem", "UpdateItem", "Query"},
    "discover": {"GetItem", "PutItem", "Query"},
    "compact_partition": {"GetItem", "UpdateItem", "Query"},
}


def test_each_function_may_do_to_the_registry_what_it_does_and_no_more(
    with_events: str, deployed: Deployed
) -> None:
    found = deployed(with_events)
    table = _table(found)

    for one in found.functions.values():
        policies, handler = found.policies[one["Role"]], one["Handler"].split(".")[1]
        may = {name for name in _ITEMS if policies.allow(Call(f"dynamodb:{name}", table))}
        assert may == _MAY.get(handler, set()), handler
        in_index = policies.allow(Call("dynamodb:Query", f"{table}/index/pending"))
        assert in_index is (handler in _MAY), handler
        assert not policies.allow(Call("dynamodb:Query", f"{table}-2"))


def test_the_spark_job_may_mark_what_it_compacted(with_events: str, deployed: Deployed) -> None:
    found = deployed(with_events)
    table = _table(found)
    jobs = [*found.managed_policies.values()] + [
        policies for role, policies in found.policies.items() if "Spark" in role
    ]

    may = [
        {name for name in _ITEMS if policies.allow(Call(f"dynamodb:{name}", table))}
        for policies in jobs
    ]

    spark = CONFIGURATIONS[with_events].get("spark_engine") != "none"
    assert [one for one in may if one] == [_MAY["compact_partition"]] * spark


def test_the_sweep_may_start_the_workflow_and_no_one_else(
    with_events: str, deployed: Deployed
) -> None:
    found = deployed(with_events)
    machine = found.machine["stateMachineArn"]
    execution = machine.replace(":stateMachine:", ":execution:") + ":logs-1-000001"

    policies = _policies(found, "sweep")
    assert policies.allow(Call("states:StartExecution", machine))
    assert policies.allow(Call("states:DescribeExecution", execution))
    assert not policies.allow(Call("states:StopExecution", execution))
    assert not policies.allow(Call("states:StartExecution", f"{machine}-2"))
    others = ("register", "discover", "compact_partition", "clean_up", "plan_clean_up", "report")
    for handler in others:
        assert not _policies(found, handler).allow(Call("states:StartExecution", machine))


def test_only_the_function_that_registers_takes_messages_off_the_queue(
    with_events: str, deployed: Deployed
) -> None:
    found = deployed(with_events)
    queue, dead = _queues(found, "Events"), _queues(found, "DeadLetters")
    taking = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")

    for one in found.functions.values():
        policies, handler = found.policies[one["Role"]], one["Handler"].split(".")[1]
        for action in (*taking, "SendMessage", "PurgeQueue"):
            may = handler == "register" and action in taking
            # EventBridge's own right to send stands in the policy of the queue.
            assert policies.allow(Call(f"sqs:{action}", queue)) is may, (handler, action)
            assert not policies.allow(Call(f"sqs:{action}", dead)), (handler, action)


def test_the_sweep_may_look_for_what_no_event_named(with_events: str, deployed: Deployed) -> None:
    found = deployed(with_events)
    given = json.loads(found.outputs["DefaultInput"])
    policies = _policies(found, "sweep")
    bucket, _, prefix = given["s3_source_uri"].removeprefix("s3://").partition("/")
    state, _, below = found.outputs["StateUri"].removeprefix("s3://").partition("/")

    for where, place in ((bucket, prefix), (state, below)):
        listing = Call("s3:ListBucket", f"arn:aws:s3:::{where}", (("s3:prefix", place),))
        assert policies.allow(listing)
    assert policies.allow(Call("s3:GetObject", f"arn:aws:s3:::{state}/{below}partitions/a"))
    # It reads no source, and writes nothing but how far it is.
    assert policies.allow(Call("s3:PutObject", f"arn:aws:s3:::{state}/{below}reconcile/logs.json"))
    assert not policies.allow(Call("s3:PutObject", f"arn:aws:s3:::{state}/{below}runs/a.json"))
    assert not policies.allow(Call("s3:GetObject", f"arn:aws:s3:::{bucket}/{prefix}a"))
    assert not policies.allow(Call("s3:PutObject", f"arn:aws:s3:::{state}/{below}partitions/a"))


def test_the_sweep_runs_every_few_minutes_and_looks_at_the_source_once_a_day(
    with_events: str, deployed: Deployed
) -> None:
    found = deployed(with_events)
    name, context = found.assembly.name, CONFIGURATIONS[with_events]
    sweep, reconcile = (found.schedules[f"{name}-{one}"] for one in ("sweep", "reconcile"))
    minutes = 1 if "events_seconds" in context else 5

    rates = [one["ScheduleExpression"] for one in (sweep, reconcile)]

    assert rates[0] == f"rate({minutes} minute{'s' * (minutes > 1)})"
    assert rates[1] == ("rate(7 days)" if "reconcile_hours" in context else "rate(1 day)")
    assert {one["State"] for one in (sweep, reconcile)} == {"ENABLED"}
    assert [json.loads(one["Target"]["Input"]) for one in (sweep, reconcile)] == [
        {},
        {"reconcile": True},
    ]
    (function,) = [
        one["FunctionArn"] for one in found.functions.values() if ".sweep." in one["Handler"]
    ]
    for one in (sweep, reconcile):
        assert one["Target"]["Arn"] == function
        assert found.policies[one["Target"]["RoleArn"]].allow(
            Call("lambda:InvokeFunction", function)
        )


# What the functions are told.


def test_the_functions_get_the_stream_whose_runs_are_those_of_the_schedule(
    with_events: str, deployed: Deployed
) -> None:
    found = deployed(with_events)
    context = CONFIGURATIONS[with_events]
    told: dict[str, str] = {}
    for handler in ("register", "sweep"):
        (told,) = [
            one["Environment"]["Variables"]
            for one in found.functions.values()
            if f".{handler}." in one["Handler"]
        ]

        (stream,) = parse_streams(told["STREAMS"], told["REGISTRY_TABLE"])

        assert stream.name == found.assembly.name
        # A clean-up goes through all commit logs: the schedule's runs do it.
        scheduled = json.loads(found.outputs["DefaultInput"])
        assert stream.settings == Settings.from_input({**scheduled, "clean_up": "keep"})
        assert (stream.objects, stream.bytes, stream.seconds) == (
            10_000,
            1024**3,
            context.get("events_seconds", 900),
        )
        machine = found.machine["stateMachineArn"] if handler == "sweep" else None
        assert told.get("STATE_MACHINE_ARN") == machine
        assert told["REGISTRY_TABLE"] == found.outputs["RegistryTable"]
        # "4 KB, for all environment variables associated with the function" (Lambda quotas).
        assert sum(len(name) + len(value) for name, value in told.items()) < 4_096
        assert json.loads(found.outputs["Streams"]) == json.loads(told["STREAMS"])


def test_fields_of_a_run_that_no_variable_takes_are_refused_before_anything_is_made() -> None:
    from cdk.app import synthesize

    globs = [f"{number:03d}-{'x' * 40}/*" for number in range(80)]
    context = {"ingest": "events", "include": globs}
    assert Config.from_context(context).events

    with pytest.raises(InvalidInput, match="3,000 characters"):
        synthesize(context)


# Who is told when it fails.


def _alarm(name: str, synthesized: Synthesized, of: str) -> Mapping[str, Any]:
    found = synthesized(of).resources("AWS::CloudWatch::Alarm").values()
    (alarm,) = [one for one in found if one["AlarmName"].endswith(f"-{name}")]
    return alarm


def test_an_object_that_waits_too_long_is_reported_and_so_is_a_sweep_that_is_gone(
    with_events: str, synthesized: Synthesized
) -> None:
    alarm = _alarm("OldestPending", synthesized, with_events)
    context = CONFIGURATIONS[with_events]
    minutes = 1 if "events_seconds" in context else 5
    longest = 2 * context.get("events_seconds", 900) + 60 * minutes

    assert alarm["Threshold"] == longest
    assert alarm["Period"] == 60 * minutes
    assert state_of(alarm, "OK", [longest + 1.0] * 3) == "ALARM"
    assert state_of(alarm, "OK", [float(longest)] * 3) == "OK"
    assert state_of(alarm, "OK", [None] * 6) == "ALARM"


def test_dead_letters_lost_events_and_errors_are_reported_immediately(
    with_events: str, synthesized: Synthesized
) -> None:
    for name in ("DeadLetters", "LostEvents", "RegisterErrors"):
        alarm = _alarm(name, synthesized, with_events)

        assert state_of(alarm, "OK", [1.0]) == "ALARM", name
        assert state_of(alarm, "OK", [0.0, None, None]) == "OK", name
    waiting = _alarm("EventsWaiting", synthesized, with_events)
    assert state_of(waiting, "OK", [3_601.0]) == "ALARM"
    # As long as the tries of a message take.
    assert state_of(waiting, "OK", [5.0 * 360]) == "OK"


def test_dashboard_and_alarms_look_at_what_the_functions_count_for_the_stream(
    with_events: str, synthesized: Synthesized
) -> None:
    assembly = synthesized(with_events)
    shown = json.dumps(assembly.resources("AWS::CloudWatch::Dashboard")).replace('\\"', '"')
    name = assembly.name

    assert f'"PendingObjects","service","s3-compactor","stream","{name}"' in shown
    for metric in ("EventsRegistered", "EventsWithdrawn"):
        assert f'"{metric}","service","s3-compactor"' in shown
    for statistic in ("p50", "p99"):
        assert f'"FreshnessSeconds","service","s3-compactor",{{"label":"{statistic}"' in shown
        assert f'"stat":"{statistic}"' in shown
    stream = [
        {"Name": "service", "Value": "s3-compactor"},
        {"Name": "stream", "Value": name},
    ]
    for alarm in ("OldestPending", "LostEvents"):
        assert _alarm(alarm, synthesized, with_events)["Dimensions"] == stream
