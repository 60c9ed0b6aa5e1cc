"""``compactor runs``, against a deployment on moto."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from compactor import __version__
from compactor_cli import commands as cli
from compactor_cli.commands.runs import overlaid
from compactor_cli.run_status import Follower
from tests.support.deployed import INPUT, LAKE, WALL_SECONDS, Deployed, deployed

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:s3-compactor"
SUCCEED: dict[str, Any] = {"Type": "Succeed"}
FAIL: dict[str, Any] = {
    "Type": "Fail",
    "Error": "PartitionsFailed",
    "Cause": "b/: WorkerLost no receipt",
}
# Waits for ever, as far as a test is concerned.
WAIT: dict[str, Any] = {"Type": "Wait", "Seconds": 600, "End": True}


@pytest.fixture
def stack() -> Iterator[Deployed]:
    with deployed(SUCCEED) as made:
        yield made


@pytest.fixture
def failing() -> Iterator[Deployed]:
    with deployed(FAIL) as made:
        yield made


@pytest.fixture
def waiting() -> Iterator[Deployed]:
    with deployed(WAIT) as made:
        yield made
        for one in made.stepfunctions.list_executions(stateMachineArn=made.machine_arn)[
            "executions"
        ]:
            made.stepfunctions.stop_execution(executionArn=one["executionArn"])


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str) -> tuple[int, str, str]:
        code = cli.main(list(words))
        out, err = capsys.readouterr()
        return code, out, err

    return run


# start


def test_start_takes_the_input_of_the_stack_and_shows_the_run_id(stack, command):
    code, out, err = command("runs", "start")
    assert (code, err) == (0, "")
    (run_id,) = re.findall(r"^started run (\d{8}T\d{6}\.\d{3}Z-[0-9a-f]{6})$", out, re.MULTILINE)
    assert stack.given(run_id) == INPUT


def test_fields_given_take_the_place_of_the_stacks_own(stack, command):
    assert (
        command("runs", "start", "--name", "r1", "--window", "30d", "--target-bytes", "9000000")[0]
        == 0
    )
    kept = {name: value for name, value in INPUT.items() if name != "duration"}
    assert stack.given("r1") == {**kept, "window": "30d", "target_bytes": 9_000_000}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, INPUT),
        ({"window": "2026-01-01.."}, {"date_format": "%Y/%m/%d", "window": "2026-01-01.."}),
        ({"depth": 2}, {"depth": 2}),
        ({"date_format": "%Y/%m"}, {"date_format": "%Y/%m", "duration": 7}),
    ],
)
def test_a_field_replaces_those_that_cannot_stand_beside_it(given, expected):
    places = {name: INPUT[name] for name in ("s3_source_uri", "s3_destination_uri")}
    assert overlaid(INPUT, given) == {**places, **expected}


def test_with_source_and_destination_nothing_is_taken_from_the_stack(stack, command):
    words = ("s3://other/logs/", "s3://my-lake/other/", "--depth", "1")
    assert command("runs", "start", *words, "--name", "r1")[0] == 0
    assert stack.given("r1") == {
        "s3_source_uri": "s3://other/logs/",
        "s3_destination_uri": "s3://my-lake/other/",
        "depth": 1,
    }


def test_an_input_document_is_passed_as_it_is(stack, command, tmp_path):
    document = {**INPUT, "duration": 2}
    path = tmp_path / "input.json"
    path.write_text(json.dumps(document))
    code, out, _ = command("runs", "start", "--input", str(path), "--name", "r1", "--json")
    assert code == 0
    assert json.loads(out)["run_id"] == "r1"
    assert stack.given("r1") == document


def test_a_mistake_in_the_input_starts_nothing(stack, command):
    code, out, err = command("runs", "start", "--target-bytes", "1", "--name", "r1")
    assert (code, out) == (2, "")
    assert err.startswith("compactor: InvalidInput: target_bytes: ")
    code, out, err = command("runs", "show")
    assert code == 1
    assert err == (
        "compactor: s3-compactor has not run in the last 90 days\n  compactor runs start\n"
    )


def test_waiting_for_a_run_ends_with_its_report(stack, command):
    stack.leave_report("r1")
    code, out, err = command("runs", "start", "--wait", "--name", "r1")
    assert (code, err) == (0, "")
    assert "Run r1: succeeded" in out
    assert f"report: s3://{LAKE}/_compactor/compacted/runs/r1/report.json" in out


def test_waiting_for_a_run_that_fails_ends_with_its_cause_and_exit_code_1(failing, command):
    failing.leave_report("r1", lost=["b/"])
    code, out, err = command("runs", "start", "--wait", "--name", "r1")
    assert code == 1
    assert "Run r1: failed" in out
    assert "failed: b/: WorkerLost no receipt" in out
    assert err == "compactor: PartitionsFailed: b/: WorkerLost no receipt\n"


def test_an_input_that_discovery_refuses_ends_waiting_with_exit_code_2(command):
    refused = {"Type": "Fail", "Error": "InvalidInput", "Cause": '{"errorMessage": "depth: no"}'}
    with deployed(refused):
        code, out, err = command("runs", "start", "--wait", "--json")
    assert code == 2
    document = json.loads(out)
    assert (document["error"], document["cause"]) == ("InvalidInput", "depth: no")
    assert document["report"] is None
    assert err == "compactor: InvalidInput: depth: no\n"


def test_an_interrupt_while_waiting_says_that_the_run_goes_on(waiting, command, monkeypatch):
    def interrupted(self, show, pause=None):
        show(self.progress())
        raise KeyboardInterrupt

    monkeypatch.setattr(Follower, "wait", interrupted)
    code, out, err = command("runs", "start", "--wait", "--name", "r1")
    assert (code, out) == (130, "")
    assert err.splitlines() == [
        "compactor: stopped waiting; run r1 continues",
        "  compactor runs show r1 --stack s3-compactor",
    ]
    assert command("runs", "show", "r1", "--stack", "s3-compactor", "--json")[0] == 0


@pytest.mark.parametrize("name", ["a b", "", "../x", "-x", "x" * 81])
def test_a_name_that_is_invalid_is_refused(stack, command, name):
    code, _, err = command("runs", "start", f"--name={name}") if name else (2, "", "--name: ")
    assert code == 2
    assert "--name: " in err


def test_a_name_that_a_run_had_before_is_refused(stack, command):
    stack.run("r1")
    code, _, err = command("runs", "start", "--name", "r1", "--window", "3d")
    assert code == 2
    assert err.startswith(
        "compactor: InvalidInput: --name: 'r1' is not accepted; expected a new name"
    )


# status


def test_status_shows_the_last_run_with_its_partitions(stack, command):
    stack.run("r1")
    stack.partitions("a/", "b/")
    stack.run("r2")
    code, out, err = command("runs", "show")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "run r2: succeeded"
    assert lines[1].startswith("from 20")
    assert lines[2:4] == ["2/2 partitions", "run r2 has no report yet"]
    assert (
        command("runs", "show", "r1", "--stack", "s3-compactor")[1].splitlines()[2]
        == "3/3 partitions"
    )


def test_status_takes_an_execution_arn(stack, command):
    arn = stack.run("r1")
    assert command("runs", "show", arn)[1].startswith("run r1: succeeded\n")


def test_status_of_a_running_run_shows_where_it_is(waiting, command):
    assert command("runs", "start", "--name", "r1")[0] == 0
    document: dict[str, Any] = {"states": []}
    while "Report" not in document["states"]:
        code, out, _ = command("runs", "show", "--json")
        document = json.loads(out)
        assert (code, document["status"]) == (0, "RUNNING")
    assert document["partitions"]["succeeded"] == 3
    out = command("runs", "show")[1]
    assert "run r1: running\nsince 20" in out
    assert "at: Report\n3/3 partitions\n" in out


def test_status_of_a_failed_run_is_exit_code_1_and_counts_what_failed(failing, command):
    failing.partitions("a/", "bad/")
    failing.run("r1")
    # moto cannot list the children of a Map Run; test_deployed_runs.py has their failures.
    code, out, err = command("runs", "show", "--failures", "0")
    assert code == 1
    assert "run r1: failed" in out
    assert "2/2 partitions, 1 failed" in out
    assert "and 1 more failed" in out
    assert err == "compactor: PartitionsFailed: b/: WorkerLost no receipt\n"


# report


def test_report_prints_the_last_report(stack, command):
    stack.run("r1")
    stack.leave_report("r1")
    code, out, err = command("runs", "show")
    assert (code, err) == (0, "")
    assert "Run r1: succeeded" in out


def test_a_run_without_a_report_says_why(failing, command):
    failing.run("r1")
    failing.leave_report("r1", lost=["a/", "b/"])
    failing.run("r2")
    code, out, err = command("runs", "show", "--failures", "0")
    assert code == 1
    assert "run r2 left no report: PartitionsFailed: b/: WorkerLost no receipt" in out
    assert err == "compactor: PartitionsFailed: b/: WorkerLost no receipt\n"
    code, out, _ = command("runs", "show", "r1", "--stack", "s3-compactor", "--failures", "0")
    assert code == 1
    assert "Run r1: failed" in out
    assert "failed: a/ and 1 more partition: WorkerLost" in out


def test_runs_are_listed_newest_first(stack, command):
    stack.run("r1")
    stack.run("r2")
    code, out, _ = command("runs", "list", "--json")
    assert code == 0
    assert [(one["run_id"], one["status"]) for one in json.loads(out)] == [
        ("r2", "SUCCEEDED"),
        ("r1", "SUCCEEDED"),
    ]
    lines = command("runs", "list", "-n", "1")[1].splitlines()
    assert lines[0] == "1 run"
    assert lines[2].startswith("r2 ")


def test_report_follows_the_input_of_the_run_to_another_destination(stack, command):
    other = {**INPUT, "s3_destination_uri": f"s3://{LAKE}/elsewhere/"}
    stack.run("r1", other)
    stack.leave_report("r1", given=other)
    _, out, _ = command("runs", "show", "r1", "--stack", "s3-compactor")
    assert "_compactor/elsewhere/runs/r1/report.json" in out


def test_report_of_a_run_that_step_functions_has_forgotten_is_still_there(stack, command):
    stack.leave_report("old")
    code, out, _ = command("runs", "show", "old", "--stack", "s3-compactor")
    assert code == 0
    assert "Run old: succeeded" in out
    # Its time is that between its beginning and its report, not that of all workers together.
    assert f"{WALL_SECONDS:,.1f}" in out


def test_report_as_json_is_the_stored_document_and_html_is_saved(stack, command, tmp_path):
    stack.run("r1")
    stack.leave_report("r1")
    page = tmp_path / "report.html"
    code, out, _ = command("runs", "show", "--json", "--html", str(page))
    assert code == 0
    stored = stack.s3.get_object(Bucket=LAKE, Key="_compactor/compacted/runs/r1/report.json")
    document = json.loads(out)
    assert document["report"] == json.load(stored["Body"])
    assert (document["run_id"], document["status"]) == ("r1", "SUCCEEDED")
    assert "<html" in page.read_text()


def test_a_running_run_has_no_report_yet(waiting, command):
    assert command("runs", "start", "--name", "r1")[0] == 0
    for words in ((), ("r1", "--stack", "s3-compactor")):
        code, out, err = command("runs", "show", *words)
        assert (code, err) == (0, "")
        assert "run r1 has no report yet" in out


# mistakes


@pytest.mark.parametrize("name", ["start", "show", "list"])
def test_without_the_stack_each_command_says_what_it_looked_for_and_where(command, name):
    with mock_aws():
        code, out, err = command("runs", name, "--stack", "nowhere", "--region", "eu-west-1")
    assert (code, out) == (2, "")
    assert err.startswith(
        "compactor: --stack: there is no stack 'nowhere' in eu-west-1 and this"
        " account\n  deploy it (make deploy), or name an existing one with --stack"
    )
    assert err.count("\n") == 2


@pytest.mark.parametrize("name", ["start", "show", "list"])
def test_a_stack_of_another_application_is_distinguished(command, name):
    with deployed(SUCCEED, outputs={"Website": "x"}):
        code, _, err = command("runs", name)
    assert code == 2
    assert err.startswith(
        "compactor: the stack s3-compactor (CREATE_COMPLETE) is not a deployment of s3-compactor: "
    )


@pytest.mark.parametrize("name", ["start", "show", "list"])
def test_a_stack_in_standalone_mode_is_reported_with_what_to_do(command, name):
    outputs = {
        "FunctionNames": '{"standalone": "my-function"}',
        "DefaultInput": json.dumps(INPUT),
        "StateUri": f"s3://{LAKE}/_compactor/compacted/",
    }
    with deployed(SUCCEED, outputs=outputs) as stack:
        code, _, err = command("runs", name)
        assert code == 2
        assert "standalone mode, without a state machine\n  invoke my-function" in err
        stack.leave_report("call-1")
        assert command("runs", "show", "call-1", "--stack", "s3-compactor")[0] == 0


@pytest.mark.parametrize("name", ["start", "show", "list"])
def test_a_stack_of_maintenance_alone_names_the_commands_for_it(command, name):
    outputs = {
        "FunctionNames": '{"list_tables": "my-list-tables"}',
        "TablesStateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:my-tables",
        "TablesInput": "{}",
        "StateUri": f"s3://{LAKE}/_maintenance/",
    }
    with deployed(SUCCEED, outputs=outputs):
        code, out, err = command("runs", name)
    assert (code, out) == (2, "")
    assert "maintains tables and compacts nothing\n  compactor maintain run --stack" in err


def test_a_run_that_does_not_exist_is_reported_in_one_line(stack, command):
    code, out, err = command("runs", "show", "no-such-run", "--stack", "s3-compactor")
    assert (code, out) == (2, "")
    assert err.startswith("compactor: InvalidInput: RUN: 'no-such-run' is not accepted; expected")
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["show"])
def test_before_the_first_run_each_command_says_so(stack, command, name):
    code, out, err = command("runs", name)
    assert (code, out) == (1, "")
    assert err.startswith("compactor: s3-compactor has not run in the last 90 days")


def test_without_a_region_the_line_says_so(command, monkeypatch):
    for variable in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(variable)
    code, out, err = command("runs", "show")
    assert (code, out) == (2, "")
    assert err.startswith("compactor: no AWS region found\n  name one with --region")


def test_the_region_that_other_tools_find_is_found(stack, command, monkeypatch):
    stack.run("r1")
    # boto3 alone would not: to it this variable is nothing.
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    code, out, _ = command("runs", "show")
    assert code == 0
    assert "run r1: succeeded" in out
    assert "AWS_DEFAULT_REGION" not in os.environ


def test_the_stack_may_be_named_by_the_environment(command, monkeypatch):
    monkeypatch.setitem(os.environ, "COMPACTOR_STACK", "from-environment")
    with mock_aws():
        assert "--stack: there is no stack 'from-environment'" in command("runs", "show")[2]


@pytest.mark.parametrize(("deployed_version", "told"), [("0.0.1", True), (None, False)])
def test_a_stack_of_another_version_is_reported_on_standard_error(command, deployed_version, told):
    outputs = {"SpecVersion": deployed_version or __version__, "StateMachineArn": MACHINE}
    with deployed(SUCCEED, outputs=outputs):
        _, _, err = command("runs", "show")
    line = f"compactor: the stack s3-compactor has version 0.0.1, this is {__version__}\n"
    assert err.startswith(line) is told
