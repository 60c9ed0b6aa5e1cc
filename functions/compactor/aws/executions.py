"""Starts executions of the state machine by name."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from botocore.exceptions import ClientError

from compactor.aws.services import Thing, answers_of, service_client
from compactor.registry.registry_ports import ExecutionState, Started
from compactor.s3.translate import refusal_of

# All other states, such as TIMED_OUT and ABORTED, are failures.
_STATES = {
    "RUNNING": ExecutionState.RUNNING,
    "PENDING_REDRIVE": ExecutionState.RUNNING,
    "SUCCEEDED": ExecutionState.ENDED,
}


class StateMachine:
    """Implements :class:`compactor.registry.registry_ports.Executions`.

    Args:
        arn: ARN of the state machine.
        client: Step Functions client.
    """

    def __init__(self, arn: str, client: Any = None) -> None:
        self._arn = arn
        self._client = client or service_client("stepfunctions")

    def start(self, name: str, document: str) -> Started:
        """Start an execution; idempotent.

        While an execution runs, Step Functions answers another call with the same name and input as
        it answered the first. Once it has ended, such calls are refused for 90 days.
        """
        with self._answers(f"start execution {name}"):
            try:
                answer = self._client.start_execution(
                    stateMachineArn=self._arn, name=name, input=document
                )
            except ClientError as error:
                if refusal_of(error).code != "ExecutionAlreadyExists":
                    raise
                return Started(f"{self._arn.replace(':stateMachine:', ':execution:')}:{name}", None)
        return Started(answer["executionArn"], answer["startDate"].timestamp())

    def state_of(self, arn: str) -> ExecutionState:
        """Return the state of an execution. Step Functions forgets executions after 90 days."""
        with self._answers(f"describe execution {arn}"):
            try:
                answer = self._client.describe_execution(executionArn=arn)
            except ClientError as error:
                if refusal_of(error).code != "ExecutionDoesNotExist":
                    raise
                return ExecutionState.ENDED
        return _STATES.get(str(answer["status"]), ExecutionState.FAILED)

    def _answers(self, what: str) -> AbstractContextManager[None]:
        thing = Thing("STATE_MACHINE_ARN", self._arn, "the ARN of a state machine")
        return answers_of(what, thing)
