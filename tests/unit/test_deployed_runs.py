"""What AWS answers of runs; botocore's Stubber checks questions and answers against its models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from compactor_cli import commands as cli
from compactor_cli import executions, run_status, stack
from compactor_cli.commands import runs
from compactor_cli.executions import Execution
from compactor_cli.failures import Failure
from compactor_cli.run_status import DeployedProgress, Follower
from compactor_cli.stack import Aws
from tests.support.deployed import INPUT

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:s3-compactor"
ARN = "arn:aws:states:us-east-1:123456789012:execution:s3-compactor:r1"
MAP_RUN = "arn:aws:states:us-east-1:123456789012:mapRun:s3-compactor/Partitions:1a"
CLEAN_UP_RUN = "arn:aws:states:us-east-1:123456789012:mapRun:s3-compactor/CleanUps:2b"
CHILDREN = "arn:aws:states:us-east-1:123456789012:execution:s3-compactor/Partitions"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Script:
    """Clients that answer what they are told to, in that order, and nothing else."""

    def __init__(self) -> None:
        self.aws = Aws("us-east-1")
        self._stubbers: dict[str, Stubber] = {}

    def answers(
        self, service: str, operation: str, answer: dict[str, Any], asked: Any = None
    ) -> None:
        self._on(service).add_response(operation, answer, asked)

    def refuses(self, service: str, operation: str, code: str, message: str = "no") -> None:
        self._on(service).add_client_error(operation, code, message)

    def all_asked(self) -> None:
        for stubber in self._stubbers.values():
            stubber.assert_no_pending_responses()

    def _on(self, service: str) -> Stubber:
        if service not in self._stubbers:
            self._stubbers[service] = Stubber(self.aws.client(service))
            self._stubbers[service].activate()
        return self._stubbers[service]


@pytest.fixture
def script() -> Iterator[Script]:
    made = Script()
    yield made
    made.all_asked()


def execution(arn: str = ARN, status: str = "RUNNING", **more: Any) -> dict[str, Any]:
    """An answer of DescribeExecution."""
    return {
        "executionArn": arn,
        "stateMachineArn": MACHINE,
        "status": status,
        "startDate": NOON,
        "input": json.dumps(INPUT),
        **more,
    }


def counts(**given: int) -> dict[str, Any]:
    """An answer of DescribeMapRun."""
    names = ("pending", "running", "succeeded", "failed", "timedOut", "aborted", "total")
    zeros = dict.fromkeys((*names, "resultsWritten"), 0)
    return {
        "mapRunArn": MAP_RUN,
        "executionArn": ARN,
        "status": "RUNNING",
        "startDate": NOON,
        "maxConcurrency": 100,
        "toleratedFailurePercentage": 100.0,
        "toleratedFailureCount": 0,
        "itemCounts": {**zeros, **given},
        "executionCounts": {**zeros, **given},
    }


# partitions


def test_every_bad_end_of_a_child_counts_as_failed(script):
    answer = counts(pending=1, running=2, succeeded=3, failed=4, timedOut=5, aborted=6, total=21)
    script.answers("stepfunctions", "describe_map_run", answer, {"mapRunArn": MAP_RUN})
    found = run_status.count_partitions(script.aws, MAP_RUN)
    assert (found.ended, found.failed, found.total) == (18, 15, 21)
    assert found.line == "18/21 partitions, 2 running, 15 failed"


def listed(*names: str, token: str | None = None) -> dict[str, Any]:
    entries = [
        {
            "executionArn": f"{CHILDREN}:{name}",
            "stateMachineArn": MACHINE,
            "name": name,
            "status": "FAILED",
            "startDate": NOON,
        }
        for name in names
    ]
    return {"executions": entries, **({"nextToken": token} if token else {})}


def child(path: str, error: str, cause: str) -> dict[str, Any]:
    given = json.dumps({"run_id": "r1", "partition": {"path": path}})
    return execution(status="FAILED", input=given, error=error, cause=cause, stopDate=NOON)


def running(arn: str) -> dict[str, Any]:
    """A Map Run as ListMapRuns lists it."""
    return {"executionArn": ARN, "mapRunArn": arn, "stateMachineArn": MACHINE, "startDate": NOON}


@pytest.mark.parametrize("arns", [(MAP_RUN, CLEAN_UP_RUN), (CLEAN_UP_RUN, MAP_RUN)])
def test_map_runs_are_distinguished_by_their_label_whatever_their_order(script, arns):
    answer = {"mapRuns": [running(arn) for arn in arns]}
    script.answers("stepfunctions", "list_map_runs", answer, {"executionArn": ARN})
    found = run_status.find_map_runs(script.aws, ARN)
    assert found == {"Partitions": MAP_RUN, "CleanUps": CLEAN_UP_RUN}


def test_failures_are_reported_by_partition_over_all_pages_and_bad_ends(script):
    of = {"mapRunArn": MAP_RUN}
    ask = "list_executions"
    states = "stepfunctions"
    script.answers(states, ask, listed("x1", token="t"), {**of, "statusFilter": "FAILED"})
    cause = json.dumps({"errorMessage": "a gap in the log", "errorType": "IntegrityError"})
    x1 = child("a/", "IntegrityError", cause)
    script.answers(states, "describe_execution", x1, {"executionArn": f"{CHILDREN}:x1"})
    more = {**of, "statusFilter": "FAILED", "nextToken": "t"}
    script.answers(states, ask, listed("x2"), more)
    script.answers(states, "describe_execution", child("", "States.Timeout", ""))
    script.answers(states, ask, listed(), {**of, "statusFilter": "TIMED_OUT"})
    script.answers(states, ask, listed("x3"), {**of, "statusFilter": "ABORTED"})
    items = [{"path": path} for path in ("b/", "c/", "d/")]
    given = {"BatchInput": {"run_id": "r1"}, "Items": items}
    batch = execution(status="ABORTED", input=json.dumps(given))
    script.answers(states, "describe_execution", batch)
    found = list(run_status.failures(script.aws, MAP_RUN))
    assert [(one.path, one.why) for one in found] == [
        ("a/", "IntegrityError: a gap in the log"),
        ("(root)", "States.Timeout: no cause given"),
        ("b/ and 2 more", "ABORTED: no cause given"),
    ]


def test_status_separates_failed_partitions_and_clean_ups(script):
    states, ask = "stepfunctions", "list_executions"
    both = {"mapRuns": [running(CLEAN_UP_RUN), running(MAP_RUN)]}
    script.answers(states, "list_map_runs", both)
    script.answers(states, "describe_map_run", counts(total=3, succeeded=3), {"mapRunArn": MAP_RUN})
    of = {"mapRunArn": CLEAN_UP_RUN}
    script.answers(states, "describe_map_run", counts(total=4, succeeded=2, failed=2), of)
    script.answers(states, ask, listed("x1", "x2"), {**of, "statusFilter": "FAILED"})
    gone = child("old/", "IntegrityError", "the log has a gap")
    script.answers(states, "describe_execution", gone)
    no_history: dict[str, Any] = {"events": []}
    script.answers(states, "get_execution_history", no_history)
    run = Execution(ARN, "FAILED", NOON, NOON, INPUT, "PartitionsFailed", "old/: gap")

    status = run_status.status_of(script.aws, run, shown_failures=1)

    document = status.to_dict()
    assert (document["failed_partitions"], document["partitions"]["succeeded"]) == ([], 3)
    assert [one["path"] for one in document["failed_clean_ups"]] == ["old/"]
    assert document["clean_ups"]["failed"] == 2
    assert status.lines()[1:] == [
        "3/3 partitions",
        "clean-up: 4/4 partitions, 2 failed",
        "clean-up: failed: old/: IntegrityError: the log has a gap",
        "clean-up: and 1 more failed; --failures N shows more, its report shows all",
    ]


# states


def state(name: str, *, left: bool = False) -> Any:
    kind = "stateExitedEventDetails" if left else "stateEnteredEventDetails"
    return {"type": f"TaskState{'Exited' if left else 'Entered'}", kind: {"name": name}}


def states_after(script: Script, *events: Any) -> tuple[str, ...]:
    numbered = [{"timestamp": NOON, "id": n, **e} for n, e in enumerate(events, 1)]
    answer = {"events": numbered}
    script.answers("stepfunctions", "get_execution_history", answer, {"executionArn": ARN})
    return executions.current_states(script.aws, ARN)


def test_a_run_is_in_the_states_that_it_entered_and_did_not_leave(script):
    left = (state("WhichEngine"), state("WhichEngine", left=True))
    assert states_after(script, *left, state("AddStepToCluster")) == ("AddStepToCluster",)


def test_a_run_that_ended_is_in_no_state(script):
    failed = {"type": "ExecutionFailed", "executionFailedEventDetails": {"error": "InvalidInput"}}
    assert states_after(script, state("Discover"), failed) == ()


# waiting


def test_waiting_polls_ever_slower_until_the_run_has_ended_and_shows_each_step(script):
    def poll(described: dict[str, Any], runs: list[Any] | None, found: Any, *events: Any) -> None:
        script.answers("stepfunctions", "describe_execution", described)
        numbered = [{"timestamp": NOON, "id": n, **e} for n, e in enumerate(events, 1)]
        script.answers("stepfunctions", "get_execution_history", {"events": numbered})
        if runs is not None:
            script.answers("stepfunctions", "list_map_runs", {"mapRuns": runs})
        for one in found:
            script.answers(
                "stepfunctions", "describe_map_run", one, {"mapRunArn": one["mapRunArn"]}
            )

    all_done = counts(total=4, succeeded=4)
    poll(execution(), [], [], state("Discover"))
    poll(execution(), [running(MAP_RUN)], [counts(total=4, running=4)])
    # Found once, the Map Run is not looked for again.
    poll(
        execution(),
        None,
        [counts(total=4, running=1, succeeded=2, failed=1)],
        state("AddStepToCluster"),
    )
    # But clean-up's is, once that has begun; it may not be there at the first look.
    cleaning = state("CleanUpPartitions")
    poll(execution(), [running(MAP_RUN)], [all_done], cleaning)
    both = [running(MAP_RUN), running(CLEAN_UP_RUN)]
    of_clean_up = {"mapRunArn": CLEAN_UP_RUN}
    poll(execution(), both, [all_done, {**counts(total=2, running=1), **of_clean_up}], cleaning)
    poll(
        execution(status="SUCCEEDED", stopDate=NOON),
        None,
        [all_done, {**counts(total=2, succeeded=2), **of_clean_up}],
    )
    shown: list[DeployedProgress] = []
    pauses: list[float] = []
    first = Execution(ARN, "RUNNING", NOON, None, INPUT)
    ended = Follower(script.aws, first).wait(shown.append, pauses.append)
    assert (ended.status, ended.seconds) == ("SUCCEEDED", 0.0)
    assert [one.line for one in shown] == [
        "Discover",
        "0/4 partitions, 4 running",
        "3/4 partitions, 1 running, 1 failed, AddStepToCluster",
        "4/4 partitions, CleanUpPartitions",
        "cleaning up 0/2 partitions, 1 running",
        "cleaning up 2/2 partitions",
    ]
    assert pauses == sorted(pauses)
    assert len(set(pauses)) == len(pauses) == 5


# refusals

ASKED: tuple[tuple[str, str, str, Callable[[Aws], Any]], ...] = (
    (
        "cloudformation",
        "describe_stacks",
        "cloudformation:DescribeStacks",
        lambda aws: stack.find_stack(aws, "s3-compactor"),
    ),
    (
        "stepfunctions",
        "start_execution",
        "states:StartExecution",
        lambda aws: executions.start(aws, MACHINE, INPUT, "r1"),
    ),
    (
        "stepfunctions",
        "describe_execution",
        "states:DescribeExecution",
        lambda aws: executions.named_or_last(aws, MACHINE, "r1"),
    ),
    (
        "stepfunctions",
        "list_executions",
        "states:ListExecutions",
        lambda aws: executions.named_or_last(aws, MACHINE, None),
    ),
    (
        "stepfunctions",
        "list_map_runs",
        "states:ListMapRuns",
        lambda aws: run_status.find_map_runs(aws, ARN),
    ),
    (
        "stepfunctions",
        "describe_map_run",
        "states:DescribeMapRun",
        lambda aws: run_status.count_partitions(aws, MAP_RUN),
    ),
    (
        "stepfunctions",
        "list_executions",
        "states:ListExecutions",
        lambda aws: list(run_status.failures(aws, MAP_RUN)),
    ),
    (
        "stepfunctions",
        "get_execution_history",
        "states:GetExecutionHistory",
        lambda aws: executions.current_states(aws, ARN),
    ),
)


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException"])
@pytest.mark.parametrize(("service", "operation", "action", "ask"), ASKED)
def test_a_missing_permission_is_named(script, service, operation, action, ask, code):
    script.refuses(service, operation, code, "User: bob is not authorized")
    with pytest.raises(Failure) as caught:
        ask(script.aws)
    assert str(caught.value) == (
        f"AccessDenied: {action} is needed, and AWS says: User: bob is not authorized"
    )
    assert caught.value.code == 1


@pytest.mark.parametrize(("service", "operation", "action", "ask"), ASKED)
def test_any_other_refusal_keeps_its_own_name(script, service, operation, action, ask):
    script.refuses(service, operation, "ExpiredTokenException", "the token is expired")
    with pytest.raises(ClientError, match="the token is expired"):
        ask(script.aws)


def test_a_refusal_ends_a_command_with_one_line(script, monkeypatch, capsys):
    script.refuses("cloudformation", "describe_stacks", "AccessDenied", "not\nauthorized")
    monkeypatch.setattr(runs, "Aws", lambda region: script.aws)
    assert cli.main(["runs", "show"]) == 1
    out, err = capsys.readouterr()
    action = "cloudformation:DescribeStacks"
    assert out == ""
    assert err == f"compactor: AccessDenied: {action} is needed, and AWS says: not authorized\n"


def test_a_state_machine_that_is_gone_is_reported(script):
    script.refuses("stepfunctions", "start_execution", "StateMachineDoesNotExist")
    with pytest.raises(Failure, match="no longer exists"):
        executions.start(script.aws, MACHINE, INPUT, "r1")
