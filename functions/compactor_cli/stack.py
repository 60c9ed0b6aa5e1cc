"""A deployed stack, and clients of AWS whose refusals are one line each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

from compactor.errors import InvalidInput
from compactor_cli.failures import EXIT_USAGE, Failure

# Error codes of the services for a missing permission.
_DENIED = frozenset(
    {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "KmsAccessDeniedException"}
)
_CONNECT_SECONDS = 5
# The stack is looked up first, so few tries report an unreachable endpoint soon.
_TRIES = {"cloudformation": 3}


class Aws:
    """Clients by name of their service, created on first use.

    Region, credentials and endpoints are found as boto3 finds them: in the environment and in the
    profile.

    Args:
        region: instead of the one found.
    """

    def __init__(self, region: str | None = None) -> None:
        self._session = botocore.session.get_session()
        self._region: str | None = region or self._session.get_config_variable("region")
        self._clients: dict[str, Any] = {}

    @property
    def region(self) -> str:
        """The region of the clients, for messages."""
        return self._region or "no region"

    def client(self, service: str) -> Any:
        """Return the client of a service such as ``stepfunctions``.

        Raises:
            botocore.exceptions.BotoCoreError: there is no region.
        """
        if service not in self._clients:
            # Polling may exceed the request limits of Step Functions and CloudWatch.
            config = Config(
                connect_timeout=_CONNECT_SECONDS,
                retries={"mode": "standard", "total_max_attempts": _TRIES.get(service, 8)},
            )
            self._clients[service] = self._session.create_client(
                service, region_name=self._region, config=config
            )
        return self._clients[service]

    def pages(self, action: str, name: str, **parameters: Any) -> Iterator[Any]:
        """Yield the pages of a request to Step Functions, which needs the IAM action."""
        pages = iter(self.client("stepfunctions").get_paginator(name).paginate(**parameters))
        while True:
            with needing(action):
                page = next(pages, None)
            if page is None:
                return
            yield page


def error_code(error: ClientError) -> str:
    """Return the error code of the service, such as ``ExecutionDoesNotExist``."""
    return str(error.response.get("Error", {}).get("Code", ""))


@contextmanager
def needing(action: str) -> Iterator[None]:
    """Turn a refusal within the block into one line that names the missing permission.

    Args:
        action: the IAM action that the request inside needs.

    Raises:
        Failure: the permission is missing. Other errors pass unchanged.
    """
    try:
        yield
    except ClientError as error:
        if error_code(error) not in _DENIED:
            raise
        message = str(error.response.get("Error", {}).get("Message", "")) or "no reason given"
        raise Failure(f"AccessDenied: {action} is needed, and AWS says: {message}") from None


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack and its outputs by name; all values are text.

    Attributes:
        status: in CloudFormation, such as ``CREATE_COMPLETE``.
    """

    name: str
    status: str
    outputs: Mapping[str, str]

    @property
    def state_machine_arn(self) -> str:
        """ARN of the deployed state machine.

        Raises:
            Failure: the stack has none.
        """
        machines = {"StateMachineArn", "TablesStateMachineArn"}
        if not machines & self.outputs.keys() and "FunctionNames" in self.outputs:
            function = self._object("FunctionNames").get("standalone", "its function")
            raise Failure(
                f"the stack {self.name} is in standalone mode, without a state machine",
                EXIT_USAGE,
                f"invoke {function}; its log is /aws/lambda/{function}",
            )
        if "StateMachineArn" not in self.outputs and "TablesStateMachineArn" in self.outputs:
            line = f"the stack {self.name} maintains tables and compacts nothing"
            raise Failure(line, EXIT_USAGE, f"compactor maintain run --stack {self.name}")
        return self._output("StateMachineArn")

    @property
    def state_uri(self) -> str:
        """State prefix of runs with the stack's default input."""
        return self._output("StateUri")

    @property
    def default_input(self) -> dict[str, Any]:
        """The input of scheduled runs."""
        return self._object("DefaultInput")

    @property
    def tables_machine_arn(self) -> str:
        """ARN of the state machine that maintains tables.

        Raises:
            Failure: the stack has none.
        """
        if "TablesStateMachineArn" not in self.outputs:
            line = f"the stack {self.name} does not maintain tables"
            way = f"maintenance is a stack of its own: --stack {self.name}-tables"
            raise Failure(line, EXIT_USAGE, way)
        return self.outputs["TablesStateMachineArn"]

    @property
    def tables_input(self) -> dict[str, Any]:
        """The input of scheduled maintenance runs."""
        return self._object("TablesInput")

    def _object(self, name: str) -> dict[str, Any]:
        try:
            given = json.loads(self._output(name))
        except ValueError:
            given = None
        if not isinstance(given, dict):
            raise self._unfit(f"{name} is not a JSON object")
        return given

    def _output(self, name: str) -> str:
        if name not in self.outputs:
            raise self._unfit(f"it has no output {name}")
        return self.outputs[name]

    def _unfit(self, reason: str) -> Failure:
        line = (
            f"the stack {self.name} ({self.status}) is not a deployment of s3-compactor: {reason}"
        )
        return Failure(line, EXIT_USAGE)


def find_stack(aws: Aws, name: str) -> Stack:
    """Look up a stack.

    Raises:
        InvalidInput: there is no such stack.
        Failure: a permission is missing.
    """
    try:
        with needing("cloudformation:DescribeStacks"):
            (stack,) = aws.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        # CloudFormation has no specific error code for a missing stack.
        if error_code(error) != "ValidationError":
            raise
        way = (
            "deploy it (make deploy), or name an existing one with --stack, its region with"
            " --region or AWS_REGION, and its account with AWS_PROFILE"
        )
        message = f"--stack: there is no stack {name!r} in {aws.region} and this account: {way}"
        raise InvalidInput("--stack", name, way, message=message) from None
    outputs = {one["OutputKey"]: one["OutputValue"] for one in stack.get("Outputs", ())}
    return Stack(name, stack["StackStatus"], outputs)
