"""Runs of a deployed state machine; an execution's name is the run id."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from botocore.exceptions import ClientError

from compactor.errors import InvalidInput
from compactor_cli.failures import EXIT_FAILED, EXIT_USAGE, Failure, message_of
from compactor_cli.stack import Aws, error_code, needing

RUNNING, SUCCEEDED = "RUNNING", "SUCCEEDED"
# Both a name for Step Functions and a segment of a key.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_NO_SUCH = frozenset({"ExecutionDoesNotExist", "InvalidArn", "ValidationException"})


@dataclass(frozen=True, slots=True)
class Execution:
    """One run, as Step Functions sees it; its name is the run id.

    Attributes:
        status: ``RUNNING``, ``SUCCEEDED``, ``FAILED``, ``TIMED_OUT``, ``ABORTED`` or
            ``PENDING_REDRIVE``.
        stopped_at: None while it runs.
        given: its input.
        error, cause: why it failed; empty otherwise.
    """

    arn: str
    status: str
    started_at: datetime
    stopped_at: datetime | None
    given: Mapping[str, Any]
    error: str = ""
    cause: str = ""

    @property
    def run_id(self) -> str:
        """The execution's name."""
        return self.arn.rpartition(":")[2]

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.status != RUNNING

    @property
    def seconds(self) -> float | None:
        """From start to end; None while it runs."""
        if self.stopped_at is None:
            return None
        return (self.stopped_at - self.started_at).total_seconds()

    @property
    def why(self) -> str:
        """Error and cause in one line; empty unless it failed."""
        if not self.ended or self.status == SUCCEEDED:
            return ""
        return f"{self.error or self.status}: {message_of(self.cause)}"

    def check(self) -> None:
        """Raise an error if it ended without success.

        Raises:
            Failure: says why it did not succeed.
        """
        if self.why:
            code = EXIT_USAGE if self.error == InvalidInput.__name__ else EXIT_FAILED
            raise Failure(self.why, code)

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON; times in ISO 8601."""
        return {
            "run_id": self.run_id,
            "execution_arn": self.arn,
            "status": self.status,
            "started_at": self.started_at.isoformat(),
            "stopped_at": self.stopped_at.isoformat() if self.stopped_at else None,
            "seconds": self.seconds,
            "error": self.error or None,
            "cause": message_of(self.cause) if self.cause else None,
        }


def start(aws: Aws, state_machine_arn: str, given: Mapping[str, Any], run_id: str) -> Execution:
    """Start a run.

    Args:
        aws: AWS clients.
        state_machine_arn: of the deployed state machine.
        given: its validated input.
        run_id: its name; unique for 90 days.

    Raises:
        InvalidInput: another run has this name, or it is invalid.
        Failure: a permission is missing, or the state machine does not exist.
    """
    if not _NAME.fullmatch(run_id):
        accepted = "1 to 80 letters, digits and . _ -, the first a letter or digit"
        raise InvalidInput("--name", run_id, accepted)
    try:
        with needing("states:StartExecution"):
            started = aws.client("stepfunctions").start_execution(
                stateMachineArn=state_machine_arn, name=run_id, input=json.dumps(given)
            )
    except ClientError as error:
        if error_code(error) == "ExecutionAlreadyExists":
            raise InvalidInput("--name", run_id, "a new name; another run has this one") from None
        if error_code(error) in {"StateMachineDoesNotExist", "StateMachineDeleting"}:
            line = f"the state machine {state_machine_arn} no longer exists"
            raise Failure(line, advice="deploy it again") from None
        raise
    return Execution(started["executionArn"], RUNNING, started["startDate"], None, given)


def newest_first(aws: Aws, state_machine_arn: str) -> Iterator[Execution]:
    """Yield the runs of the last 90 days, newest first.

    Raises:
        Failure: a permission is missing.
    """
    parameters = {"stateMachineArn": state_machine_arn, "maxResults": 20}
    for page in aws.pages("states:ListExecutions", "list_executions", **parameters):
        for listed in page["executions"]:
            yield describe(aws, listed["executionArn"])


def named_or_last(aws: Aws, state_machine_arn: str, run: str | None) -> Execution:
    """Return a run by its id or ARN, or the last one if no name is given.

    Raises:
        InvalidInput: there is no such run.
        Failure: there are no runs, or a permission is missing.
    """
    machine = state_machine_arn.rpartition(":")[2]
    if run is None:
        last = next(newest_first(aws, state_machine_arn), None)
        if last is None:
            line = f"{machine} has not run in the last 90 days"
            raise Failure(line, advice="compactor runs start")
        return last
    machine_runs = state_machine_arn.replace(":stateMachine:", ":execution:")
    try:
        return describe(aws, f"{machine_runs}:{run.rpartition(':')[2]}")
    except ClientError as error:
        if error_code(error) not in _NO_SUCH:
            raise
        accepted = f"the id of a run of {machine} that ended less than 90 days ago"
        raise InvalidInput("RUN", run, accepted) from None


def describe(aws: Aws, arn: str) -> Execution:
    """Return one execution, of the state machine or of its Map Run.

    Raises:
        botocore.exceptions.ClientError: there is no such execution.
        Failure: a permission is missing.
    """
    with needing("states:DescribeExecution"):
        answer = aws.client("stepfunctions").describe_execution(executionArn=arn)
    try:
        given = json.loads(answer.get("input") or "{}")
    except ValueError:
        given = None
    return Execution(
        arn=arn,
        status=answer["status"],
        started_at=answer["startDate"],
        stopped_at=answer.get("stopDate"),
        # Not an object in a run that failed because of it.
        given=given if isinstance(given, dict) else {},
        error=answer.get("error", ""),
        cause=answer.get("cause", ""),
    )


def current_states(aws: Aws, execution_arn: str) -> tuple[str, ...]:
    """Return the states that a run is in, without those of a Map Run's children.

    Raises:
        Failure: a permission is missing.
    """
    pages = aws.pages(
        "states:GetExecutionHistory", "get_execution_history", executionArn=execution_arn
    )
    states: dict[str, None] = {}
    for event in chain.from_iterable(page["events"] for page in pages):
        if "stateEnteredEventDetails" in event:
            states[event["stateEnteredEventDetails"]["name"]] = None
        elif "stateExitedEventDetails" in event:
            states.pop(event["stateExitedEventDetails"]["name"], None)
        elif event["type"].startswith("Execution") and event["type"] != "ExecutionStarted":
            states.clear()
    return tuple(states)
