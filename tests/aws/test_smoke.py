"""The smoke test on stand-ins: its lines, each broken answer, its report, its removal."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdk.app import NO_BUNDLING
from compactor_local.definition import ACCOUNT
from tests.aws import objects
from tests.aws.__main__ import clean
from tests.aws.checks import FAILED, KNOWN, OK, Check, Result
from tests.aws.deployment import ForeignPlace, documents, foreign_places, synthesize
from tests.aws.listed import CHECKS
from tests.aws.report import redacted, written
from tests.aws.session import whole_test
from tests.aws.world import CHECK_SECONDS, Names, World
from tests.infrastructure.cloud.running import cloud
from tests.support.smoke_world import SUFFIX, Account, StandIn, engine_on, refusal

_NAMES = Names(SUFFIX)
_KEY = f"arn:aws:kms:us-east-1:{ACCOUNT}:key/11111111-2222-3333-4444-555555555555"
_PUT, _CRC32 = "a conditional PUT twice", "the full-object CRC32"
_SSE, _UNSIGNED = "a bucket that demands SSE headers", "a bucket that denies unsigned payloads"
_STATE = "404 on missing state under the prefix condition"
_MAP, _READERS = "rights of the Map Run", "the readers' table in Athena"
_CLEAN, _VERSIONS = "clean-up by ETag", "clean-up by ETag in a versioned bucket"
_ALARM = "an alarm by force"
_ENDPOINT = "a bucket that demands a VPC endpoint"
_QUICK = {_PUT, _CRC32, _SSE, _UNSIGNED, _ALARM}
_WITHOUT_RUNS = [check for check in CHECKS if check.name in _QUICK]
_BY_RUNS = {_STATE, _MAP, _ENDPOINT, _READERS, _CLEAN, _VERSIONS}
_SETTLED = _QUICK | _BY_RUNS


@pytest.fixture(scope="module")
def _account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with cloud() as on, engine_on(on, tmp_path_factory.mktemp("engine")) as engine:
        yield Account(on, engine)


@pytest.fixture
def account(_account: Account) -> Iterator[Account]:
    """An account; every test must leave it empty."""
    yield _account
    _account.replaced.clear()
    assert objects.left(_account.client) == set()


def _verdicts(
    account: Account, among: Sequence[Check] = CHECKS
) -> tuple[dict[str, Result], int, str]:
    code, report = whole_test(account.world(), account.actions(), among)
    table = re.findall(r"^(.+?)  +(ok|known|failed|not run)$", report, re.MULTILINE)
    lines = {line.split(": ")[0]: line for line in report.splitlines()}
    found = {name: Result(name, verdict, lines[name]) for name, verdict in table}
    assert [*found] == [check.name for check in among]
    return found, code, report


def test_every_line_that_a_stand_in_can_settle_is_ok(account: Account) -> None:
    found, code, report = _verdicts(account)

    by = {one: {name for name, r in found.items() if r.verdict == one} for one in (OK, FAILED)}
    assert (by[OK], by[FAILED]) == (_SETTLED, set()), report
    for name, result in found.items():
        assert name in _SETTLED or re.search(
            r"not run: (no stand-in|it needs|the stack)", result.why
        )
    assert code == 0
    assert "everything was removed" in report
    assert re.search(r"^cost: \$\d+\.\d{3}: \$\d+\.\d{3} of 8 runs", report, re.MULTILINE), report


Break = Callable[[Account], None]


def _drop(service: str, operation: str, field: str) -> Break:
    """A condition that the service ignores."""

    def apply(account: Account) -> None:
        call = getattr(account.client(service), operation)
        account.replaced[service] = {
            operation: lambda **asked: call(**{k: v for k, v in asked.items() if k != field})
        }

    return apply


def _answer(service: str, operation: str, answer: Callable[..., Any]) -> Break:
    def apply(account: Account) -> None:
        account.replaced[service] = {operation: answer}

    return apply


def _deny_all(account: Account) -> None:
    """Nothing gets in where payloads are to be signed."""
    keep = account.client("s3").put_bucket_policy

    def put(**asked: str) -> None:
        if "sha256" in asked["Policy"]:
            document = json.loads(asked["Policy"])
            document["Statement"][0]["Condition"] = {"Null": {"s3:x-amz-none": "true"}}
            asked["Policy"] = json.dumps(document)
        keep(**asked)

    account.replaced["s3"] = {"put_bucket_policy": put}


def _run_fails(name: str, cause: str) -> Break:
    def apply(account: Account) -> None:
        describe = account.client("stepfunctions").describe_execution

        def answer(**asked: str) -> Any:
            if asked["executionArn"].endswith(f"-{name}"):
                return {"status": "FAILED", "error": "InvalidInput", "cause": cause}
            return describe(**asked)

        account.replaced["stepfunctions"] = {"describe_execution": answer}

    return apply


class _Hidden:
    """A paginator that hides keys with a word in them."""

    def __init__(self, inner: Any, word: str) -> None:
        self._inner, self._word = inner, word

    def paginate(self, **asked: Any) -> Iterator[Any]:
        for page in self._inner.paginate(**asked):
            kept = [one for one in page.get("Contents", ()) if self._word not in one["Key"]]
            yield {**page, "Contents": kept}


def _without_results(account: Account) -> None:
    """The Map Run may not write its results."""
    pages = account.client("s3").get_paginator

    def paginator(name: str) -> Any:
        return _Hidden(pages(name), "manifest.json") if "objects" in name else pages(name)

    account.replaced["s3"] = {"get_paginator": paginator}


def _clean_up_kept(account: Account) -> None:
    """The run may not delete: it keeps what it was to delete."""
    start = account.client("stepfunctions").start_execution

    def answer(**asked: str) -> Any:
        if asked["name"].endswith("-clean"):
            asked["input"] = json.dumps({**json.loads(asked["input"]), "delete_after": None})
        return start(**asked)

    account.replaced["stepfunctions"] = {"start_execution": answer}


_ROWS = {"ResultSet": {"Rows": [{}, {"Data": [{"VarCharValue": "24"}]}]}}
_HISTORY = {"AlarmHistoryItems": [{"HistorySummary": "Failed to execute action"}]}


@pytest.mark.parametrize(
    ("line", "broken", "answer"),
    [
        (_PUT, _drop("s3", "put_object", "IfNoneMatch"), "accepted"),
        (_CRC32, _drop("s3", "complete_multipart_upload", "ChecksumCRC32"), "accepted"),
        (_SSE, _answer("s3", "put_bucket_policy", lambda **_: None), "accepted"),
        (_STATE, _run_fails("first", "403 instead of 404"), "403 instead of 404"),
        (_ENDPOINT, _run_fails("within", "403 Forbidden"), "403 Forbidden"),
        (_MAP, _without_results, "no manifest.json"),
        (_READERS, _answer("athena", "get_query_results", lambda **_: _ROWS), "counts 24"),
        (_CLEAN, _clean_up_kept, "12 of 12 sources"),
        (
            _VERSIONS,
            _drop("s3", "put_bucket_versioning", "VersioningConfiguration"),
            "delete marker",
        ),
        (_ALARM, _answer("cloudwatch", "describe_alarm_history", lambda **_: _HISTORY), "Failed"),
    ],
)
def test_a_broken_answer_fails_its_line_and_no_other(
    account: Account, line: str, broken: Break, answer: str
) -> None:
    if line == _VERSIONS:
        account.replaced["s3"] = {"put_bucket_versioning": lambda **_: None}
    else:
        broken(account)

    # Runs take seconds each: where none is broken, they are left out.
    among = _WITHOUT_RUNS if line in _QUICK else CHECKS
    found, code, report = _verdicts(account, among)

    failed = [name for name, one in found.items() if one.verdict == FAILED]
    assert failed == [line], report
    assert answer in found[line].why
    needing = {check.name for check in CHECKS if line in check.needs}
    assert {name for name, one in found.items() if one.verdict == OK} == (
        _SETTLED & {*found}
    ) - needing - {line}
    assert code == 1


def test_what_is_expected_to_fail_does_not_make_a_good_account_fail(account: Account) -> None:
    _deny_all(account)

    found, code, report = _verdicts(account, _WITHOUT_RUNS)

    assert found[_UNSIGNED].verdict == KNOWN
    assert "UNSIGNED-PAYLOAD" in found[_UNSIGNED].why
    assert code == 0, report


def test_policies_of_the_test_name_the_partition_of_its_region(account: Account) -> None:
    policies = list[str]()
    s3 = StandIn(
        boto3.client("s3", region_name="cn-north-1"),
        {"put_bucket_policy": lambda **asked: policies.append(asked["Policy"]),
         "delete_bucket_policy": lambda **_: None},
    )  # fmt: skip
    world = replace(account.world(), client=lambda _: s3)

    with world.denied("bucket", "s3:GetObject", {}):
        pass

    assert '"arn:aws-cn:s3:::bucket/*"' in policies[0]


def test_a_missing_right_is_shown_as_aws_answered_it_without_the_account(account: Account) -> None:
    def denied(**_: Any) -> Any:
        raise refusal("AccessDenied", "SetAlarmState")

    account.replaced["cloudwatch"] = {"set_alarm_state": denied}

    found, _, report = _verdicts(account, _WITHOUT_RUNS)

    assert found[_ALARM].verdict == FAILED
    assert "(AccessDenied) when calling the SetAlarmState operation: <arn> may not" in report


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_removes_everything(account: Account, kind: signal.Signals) -> None:
    account.destroyed.clear()

    def interrupted(**_: Any) -> Any:
        os.kill(os.getpid(), kind)
        return {"status": "RUNNING"}

    account.replaced["stepfunctions"] = {"describe_execution": interrupted}

    code, report = whole_test(account.world(), account.actions())

    assert code == 130
    assert "interrupted after 5 checks" in report
    assert account.destroyed == [*_NAMES.stacks.values()]
    assert account.cloud.client("s3").list_buckets()["Buckets"] == []


class _Machines:
    """Step Functions with one execution of the test that runs until it is stopped."""

    def __init__(self, *, stops: bool) -> None:
        self._stops, self._runs, self.log = stops, True, list[str]()

    def get_paginator(self, _: str) -> Any:
        return self

    def paginate(self) -> Any:
        machines = [f"{_NAMES.base}-r", "s3-compactor"]
        return [{"stateMachines": [{"stateMachineArn": one, "name": one} for one in machines]}]

    def list_executions(self, **asked: str) -> Any:
        self.log.append(f"look {asked['stateMachineArn']}")
        return {"executions": [{"executionArn": "e"}] if self._runs else []}

    def stop_execution(self, **asked: str) -> None:
        self.log.append(f"stop {asked['executionArn']}")
        self._runs = not self._stops


def _removed(
    account: Account, machines: _Machines, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[str], list[str]]:
    monkeypatch.setattr(objects, "_LOOK_SECONDS", 0.0)
    objects.make(account.client, _NAMES)

    def client(service: str) -> Any:
        return machines if service == "stepfunctions" else account.client(service)

    def destroy(stack: str) -> None:
        machines.log.append(f"destroy {stack}")

    failures = objects.remove(client, _NAMES, destroy)
    buckets = [one["Name"] for one in account.cloud.client("s3").list_buckets()["Buckets"]]
    return failures, buckets


def test_executions_are_stopped_before_stacks_go_and_buckets_last(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    machines = _Machines(stops=True)

    assert _removed(account, machines, monkeypatch) == ([], [])
    own = f"look {_NAMES.base}-r"
    assert machines.log == [
        own, "stop e", own, *(f"destroy {stack}" for stack in _NAMES.stacks.values())
    ]  # fmt: skip


def test_buckets_stay_while_an_execution_may_use_them(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures, buckets = _removed(account, _Machines(stops=False), monkeypatch)

    assert failures[0] == "executions: 1 still run"
    assert sorted(buckets) == sorted(_NAMES.buckets)
    assert objects.remove(account.client, _NAMES, lambda _: None) == []


def test_no_wait_outlasts_the_test(account: Account) -> None:
    now, asked = [0.0], list[float]()

    def waits(world: World) -> None:
        world.until("an answer that never comes", lambda: False)

    def pause(seconds: float) -> None:
        now[0] += seconds

    def deploy(contexts: Any) -> Any:
        asked.append(now[0])
        return account.deploy(contexts)

    world = account.world(wait_seconds=600.0, pause=pause, clock=lambda: now[0])
    # As many waits as the list has.
    checks = [Check(f"wait {number}", waits) for number in range(17)]
    code, report = whole_test(world, replace(account.actions(), deploy=deploy), checks)

    assert code == 1
    assert CHECK_SECONDS <= now[0] < CHECK_SECONDS + 10
    assert CHECK_SECONDS < 30 * 60
    assert report.count("not run: the time of the test is over") == 14
    assert asked == [0.0]


def test_a_later_call_removes_what_a_killed_one_left_and_nothing_else(account: Account) -> None:
    s3, stacks = account.cloud.client("s3"), account.cloud.client("cloudformation")
    world = account.world()
    objects.make(account.client, _NAMES)
    objects.put_day(world, objects.FIRST, 3)
    template = json.dumps({"Resources": {"T": {"Type": "AWS::SNS::Topic"}}})
    for stack in (_NAMES.stacks["runs"], "s3-compactor"):
        stacks.create_stack(StackName=stack, TemplateBody=template)
    others = ("my-logs", "compactor-smoke-0a1b2c3d-lake-2")
    for bucket in others:
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key="k", Body=b"k")
    assert clean(account.client) == []

    assert {one["Name"] for one in s3.list_buckets()["Buckets"]} == {*others}
    found = stacks.describe_stacks()["Stacks"]
    assert [one["StackName"] for one in found] == ["s3-compactor"]
    stacks.delete_stack(StackName="s3-compactor")
    for bucket in others:
        s3.delete_object(Bucket=bucket, Key="k")
        s3.delete_bucket(Bucket=bucket)


def test_a_bucket_without_the_tag_of_the_test_is_not_emptied(account: Account) -> None:
    s3 = account.cloud.client("s3")
    s3.create_bucket(Bucket=_NAMES.lake)
    # moto keeps the tags of a deleted bucket of this name.
    s3.delete_bucket_tagging(Bucket=_NAMES.lake)
    s3.put_object(Bucket=_NAMES.lake, Key="k", Body=b"k")

    (failure,) = objects.remove(account.client, _NAMES, lambda _: None)

    assert "no tag of the test" in failure
    s3.delete_object(Bucket=_NAMES.lake, Key="k")
    s3.delete_bucket(Bucket=_NAMES.lake)


_SECRETS = st.sampled_from(
    [
        ACCOUNT,
        f"arn:aws:iam::{ACCOUNT}:role/my-role",
        "s3://my-bucket/raw/key.json",
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "https://sqs.us-east-1.amazonaws.com/123456789012/queue",
        "compactor-smoke-0a1b2c3d-lake",
        "my-bucket",
        "me@example.com",
    ]
)


@given(st.lists(st.tuples(_SECRETS, st.sampled_from([" ", "'", '"', ": ", "(", ", ", "\n"]))))
def test_no_report_names_the_account(parts: list[tuple[str, str]]) -> None:
    answer = "".join(f"{before}{secret}{before}" for secret, before in parts)

    report = written([Result("a", FAILED, answer)], figures=[answer], names=["my-bucket"])

    for pattern in (r"\d{12}", "arn:", "my-bucket", "s3:", "AKIA", "wJalr", "0a1b2c3d", "@"):
        assert not re.search(pattern, report), report


def test_words_of_no_account_stay() -> None:
    line = "failed: An error occurred (PreconditionFailed) when calling the PutObject operation"
    assert redacted(line, ["my-bucket"]) == line


@pytest.mark.parametrize("what", ["runs", "tables"])
def test_a_template_names_only_what_the_test_makes(what: str, tmp_path: Path) -> None:
    synthesize(documents(_NAMES, _KEY)[what], _NAMES, tmp_path, context=NO_BUNDLING)

    names = {one.name.removesuffix(".template.json") for one in tmp_path.glob("*.template.json")}
    others = {"runs": (), "tables": ("maintenance",)}
    assert names == {_NAMES.stacks[one] for one in (what, *others[what])}


@pytest.mark.parametrize(
    ("what", "part", "customers"),
    [
        ("runs", "job", {"s3_state_uri": "s3://customer-state/compactor/"}),
        ("runs", "job", {"reader_table": "glue:sales.logs"}),
        ("tables", "maintenance", {"locations": ["s3://customer-lake/orders/"]}),
        ("tables", "maintenance", {"glue_optimizers": ["glue:sales.orders"]}),
    ],
)
def test_a_template_that_names_anything_else_is_not_deployed(
    what: str, part: str, customers: dict[str, Any], tmp_path: Path
) -> None:
    document = dict(documents(_NAMES, _KEY)[what])
    document[part] = {**document[part], **customers}
    with pytest.raises(ForeignPlace, match=r"customer-|sales"):
        synthesize(document, _NAMES, tmp_path, context=NO_BUNDLING)


def test_the_deployments_own_file_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deployment.toml").write_text('[job]\ns3_state_uri = "s3://customer-state/"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cdk.config.REPOSITORY", tmp_path)
    synthesize(documents(_NAMES, _KEY)["runs"], _NAMES, tmp_path / "out", context=NO_BUNDLING)
    (template,) = (tmp_path / "out").glob("*.template.json")
    assert "customer-state" not in template.read_text(encoding="utf-8")


def test_places_of_others_are_recognized_in_uris_arns_and_settings() -> None:
    template = json.dumps(
        {
            "a": f"s3://{_NAMES.lake}/x/",
            "b": ["arn:", {"Ref": "AWS::Partition"}, f":s3:::{_NAMES.source}/raw/*"],
            "c": ["arn:", {"Ref": "AWS::Partition"}, ":s3:::my-logs/*"],
            "d": "glue:sales.orders",
            "e": [":table/gold/orders"],
            "f": "s3://my-lake/compacted/",
        }
    )
    assert {*foreign_places(template, _NAMES)} == {"my-logs", "sales", "gold", "my-lake"}
