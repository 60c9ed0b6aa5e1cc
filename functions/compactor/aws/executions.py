"""Executions of the state machine, started by name."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from botocore.exceptions import ClientError

from compactor.aws.services import Thing, answers_of, service_client
from compactor.registry.registry_ports import ExecutionState, Started
from compactor.s3.translate import refusal_of

# All others, such as TIMED_OUT and ABORTED, did not come to their end.
_STATES = {
    "RUNNING": ExecutionState.RUNNING,
    "PENDING_REDRIVE": ExecutionState.RUNNING,
    "SUCCEEDED": ExecutionState.ENDED,
}


class StateMachine:
    """Implements :class:`compactor.registry.registry_ports.Executions`.

    Args:
        arn: of the state machine.
        client: of Step Functions.
    """

    def __init__(self, arn: str, client: Any = None) -> None:
        self._arn = arn
        self._client = client or service_client("stepfunctions")

    def start(self, name: str, document: str) -> Started:
        """Start an execution, once.

        Step Functions answers a second call of the same name and input, while the execution goes
        on, with the first one's answer; and refuses it for 90 days once it has ended.
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
        """How an execution stands; Step Functions forgets them after 90 days."""
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
