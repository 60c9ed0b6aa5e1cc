"""The logs of the functions for one run: which lines, in which order, at which level."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from compactor_cli import commands as cli
from compactor_cli.commands.failures import Failure
from compactor_cli.deployed.aws import Aws
from compactor_cli.deployed.executions import Execution
from compactor_cli.deployed.log_lines import DEBUG, ERROR, INFO, WARNING, read_line
from compactor_cli.deployed.logs import RunFilter, RunLogs
from tests.support.deployed import FUNCTIONS, INPUT, Deployed, deployed

ARN = "arn:aws:states:us-east-1:123456789012:execution:s3-compactor:r1"
START, END = "START RequestId: 1a Version: $LATEST", "END RequestId: 1a"
REPORT = "REPORT RequestId: 1a\tDuration: 12 ms\tBilled Duration: 13 ms"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


def record(message: str, run_id: str = "", level: str = "INFO", **more: Any) -> str:
    """What a handler logs."""
    named = {"run_id": run_id} if run_id else {}
    return json.dumps({"level": level, "message": message, "service": "x", **named, **more})


# one line


@pytest.mark.parametrize(
    ("message", "level", "text"),
    [
        (record("compacted", path="a/", status="done"), INFO, "compacted path=a/ status=done"),
        (record("late", level="WARNING"), WARNING, "late"),
        (record("x", level="NONSENSE"), INFO, "x"),
        (
            record("failed", level="ERROR", exception="Traceback\n  line\nIntegrityError: a gap"),
            ERROR,
            "failed IntegrityError: a gap",
        ),
        (
            json.dumps({"log_level": "ERROR", "errorType": "KeyError", "errorMessage": "'x'"}),
            ERROR,
            "KeyError: 'x'",
        ),
        ('{"_aws": {}, "ObjectsIn": [1]}', DEBUG, '{"_aws": {}, "ObjectsIn": [1]}'),
        ("[ERROR] InvalidInput: depth\nTraceback", ERROR, "[ERROR] InvalidInput: depth\nTraceback"),
        (
            "2026-11-21T12:00:00Z 1a Task timed out after 900.00 seconds",
            ERROR,
            "2026-11-21T12:00:00Z 1a Task timed out after 900.00 seconds",
        ),
        (REPORT + "\tStatus: timeout", ERROR, REPORT + "\tStatus: timeout"),
        (
            "RequestId: 1a Error: Runtime exited Error Type: Runtime.ExitError",
            ERROR,
            "RequestId: 1a Error: Runtime exited Error Type: Runtime.ExitError",
        ),
        ("[WARNING] slow", WARNING, "[WARNING] slow"),
        (START, DEBUG, START),
        ("INIT_START Runtime Version: python:3.13.v1", DEBUG, None),
        ("{broken", INFO, "{broken"),
        ("printed", INFO, "printed"),
        (
            '{"type": "platform.report", "record": {"status": "timeout", "errorType": "Sandbox"}}',
            ERROR,
            "platform.report timeout Sandbox",
        ),
        (
            '{"type": "platform.start", "record": {"requestId": "1a"}}',
            DEBUG,
            "platform.start success",
        ),
    ],
)
def test_a_line_has_a_level_and_a_text(message, level, text):
    line = read_line("discover", NOON_MS, message + "\n")
    assert line.level == level
    assert line.text == (message if text is None else text)


def test_a_line_is_shown_with_time_level_and_function():
    line = read_line("discover", NOON_MS + 7, record("discovered", partitions=3))
    assert line.shown == "2026-11-21 12:00:00.007 INFO    discover: discovered partitions=3"


# which lines


def kept(*messages: str, stream: str = "s") -> list[str]:
    """The texts that a filter for r1 lets through, the held ones at the end included."""
    chosen = RunFilter("r1")
    lines = []
    for message in messages:
        lines += chosen.take(stream, read_line("f", 0, message))
    return [line.text for line in [*lines, *chosen.drain()]]


def test_an_invocation_belongs_to_the_run_that_a_line_of_it_names():
    mine = [START, record("one"), record("two", "r1"), record("three"), END, REPORT]
    assert kept(*mine) == [START, "one", "two", "three", END, REPORT]
    other = [START, record("one"), record("two", "r2"), record("three"), END, REPORT]
    assert kept(*other) == []
    assert kept(*other, *mine, *other) == [START, "one", "two", "three", END, REPORT]


def test_a_run_may_be_named_as_a_correlation_id():
    assert kept(START, record("x", correlation_id="r2"), REPORT) == []
    assert kept(START, record("x", correlation_id="r1"), REPORT) == [START, "x", REPORT]


def test_an_invocation_that_died_before_it_could_name_its_run_is_kept():
    died = [START, "[ERROR] Runtime.ImportModuleError", END, REPORT]
    assert kept(*died) == died
    # Without its last lines, too: the next invocation of the stream tells that it is over.
    again = [START, record("x", "r2"), REPORT]
    assert kept(*died[:2], *again) == died[:2]


def test_invocations_that_run_concurrently_are_distinguished_by_their_streams():
    chosen = RunFilter("r1")
    lines = []
    for stream, message in (
        ("s1", START),
        ("s2", START),
        ("s1", record("mine", "r1")),
        ("s2", record("other", "r2")),
        ("s1", record("more")),
        ("s2", record("too")),
    ):
        lines += chosen.take(stream, read_line("f", 0, message))
    assert [line.text for line in lines] == [START, "mine", "more"]
    assert chosen.drain() == []


# following


def execution(status: str, stopped_at: datetime | None = None) -> dict[str, Any]:
    answer = {
        "executionArn": ARN,
        "stateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:s3-compactor",
        "status": status,
        "startDate": NOON,
        "input": "{}",
    }
    return {**answer, "stopDate": stopped_at} if stopped_at else answer


def events(*given: tuple[str, int, str]) -> dict[str, Any]:
    return {
        "events": [
            {
                "eventId": ident,
                "timestamp": NOON_MS + at,
                "message": message,
                "logStreamName": "s",
                "ingestionTime": NOON_MS,
            }
            for ident, at, message in given
        ]
    }


def test_following_shows_each_line_once_and_ends_with_the_run():
    aws = Aws("us-east-1")
    states, logs = Stubber(aws.client("stepfunctions")), Stubber(aws.client("logs"))
    start, one = ("1", 0, START), ("2", 5, record("one", "r1"))
    group = {"logGroupName": "/aws/lambda/f"}
    states.add_response("describe_execution", execution("RUNNING"))
    logs.add_response(
        "filter_log_events", events(start, one), {**group, "startTime": NOON_MS - 1_000}
    )
    ended = datetime(2026, 11, 21, 12, 1, tzinfo=UTC)
    states.add_response("describe_execution", execution("SUCCEEDED", ended))
    late = ("3", 2, record("came late"))
    # What was seen may come again, and what is older may come later.
    until = {"startTime": NOON_MS - 1_000, "endTime": NOON_MS + 120_000}
    logs.add_response("filter_log_events", events(start, late, one), {**group, **until})
    last = ("4", 60_500, REPORT)
    logs.add_response("filter_log_events", events(one, last), {**group, **until})
    run = Execution(ARN, "RUNNING", NOON, None, INPUT)
    pauses: list[float] = []
    with states, logs:
        lines = list(RunLogs(aws, run, {"f": "f"}).follow(pauses.append))
        states.assert_no_pending_responses()
        logs.assert_no_pending_responses()
    assert [line.text for line in lines] == [START, "one", "came late", REPORT]
    assert len(pauses) == 2


def test_a_log_that_may_not_be_read_is_reported_with_the_permission():
    aws = Aws("us-east-1")
    run = Execution(ARN, "SUCCEEDED", NOON, NOON, INPUT)
    with Stubber(aws.client("logs")) as logs:
        logs.add_client_error("filter_log_events", "AccessDeniedException", "not bob")
        with pytest.raises(Failure, match=r"^AccessDenied: logs:FilterLogEvents is needed"):
            RunLogs(aws, run, {"f": "f"}).read()


# the command


@pytest.fixture
def stack() -> Iterator[Deployed]:
    with deployed({"Type": "Succeed"}) as made:
        yield made


def write(function: str, stream: str, *messages: str) -> None:
    """Log now."""
    logs = boto3.client("logs")
    group = f"/aws/lambda/{FUNCTIONS[function]}"
    if not logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]:
        logs.create_log_group(logGroupName=group)
    logs.create_log_stream(logGroupName=group, logStreamName=stream)
    now = int(time.time() * 1000)
    told = [{"timestamp": now, "message": message} for message in messages]
    logs.put_log_events(logGroupName=group, logStreamName=stream, logEvents=told)


def test_logs_shows_the_lines_of_one_run_from_all_functions(stack, capsys):
    stack.run("r1")
    write("discover", "s1", START, record("discovered", "r1"), END, REPORT)
    write("compact_partition", "s1", START, record("failed", "r1", "ERROR"), END, REPORT)
    write("compact_partition", "s2", START, record("of another", "r2", "ERROR"), END, REPORT)
    assert cli.main(["logs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" INFO ")[2] or line.partition(" ERROR ")[2] for line in lines] == [
        "   discover: discovered",
        "  compact_partition: failed",
    ]
    assert cli.main(["logs", "r1", "--level", "error", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    document = json.loads(line)
    assert (document["function"], document["level"]) == ("compact_partition", "ERROR")
    assert cli.main(["logs", "--level", "debug"]) == 0
    assert capsys.readouterr().out.count("REPORT RequestId") == 2


def test_logs_leaves_out_what_was_logged_before_the_run(stack, capsys, monkeypatch):
    write("discover", "s1", START, "printed by nobody knows whom", REPORT)
    time.sleep(1.1)
    stack.run("r1")
    assert cli.main(["logs", "--level", "debug"]) == 0
    assert capsys.readouterr().out == ""


def test_logs_of_functions_that_never_ran_are_empty(stack, capsys):
    stack.run("r1")
    assert cli.main(["logs", "--follow"]) == 0
    assert capsys.readouterr() == ("", "")
