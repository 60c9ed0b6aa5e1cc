"""The outputs of a deployed application's CloudFormation stack."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from compactor.errors import InvalidInput
from compactor_cli.commands.failures import EXIT_USAGE, Failure
from compactor_cli.deployed.aws import Aws, error_code, needing


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
    def standalone(self) -> bool:
        """Whether one function replaces the state machine."""
        machines = {"StateMachineArn", "TablesStateMachineArn"}
        return not machines & self.outputs.keys() and "FunctionNames" in self.outputs

    @property
    def maintenance_alone(self) -> bool:
        """Whether the stack maintains tables, but compacts nothing."""
        return "StateMachineArn" not in self.outputs and "TablesStateMachineArn" in self.outputs

    @property
    def state_machine_arn(self) -> str:
        """ARN of the deployed state machine.

        Raises:
            Failure: the stack has none.
        """
        if self.standalone:
            name = self.function_names.get("standalone", "its function")
            raise Failure(
                f"the stack {self.name} is in standalone mode, without a state machine",
                EXIT_USAGE,
                f"invoke {name}; its log is /aws/lambda/{name}",
            )
        self._require_compaction()
        return self._output("StateMachineArn")

    @property
    def state_uri(self) -> str:
        """State prefix of runs with the stack's default input.

        Raises:
            Failure: the stack has none.
        """
        return self._output("StateUri")

    @property
    def default_input(self) -> dict[str, Any]:
        """The input of scheduled runs.

        Raises:
            Failure: the stack has none.
        """
        self._require_compaction()
        return self._object("DefaultInput")

    @property
    def tables_machine_arn(self) -> str:
        """ARN of the state machine that maintains tables.

        Raises:
            Failure: the stack has none.
        """
        if "TablesStateMachineArn" not in self.outputs:
            line = f"the stack {self.name} does not maintain tables"
            raise Failure(line, EXIT_USAGE, "deploy it with the key maintenance")
        return self.outputs["TablesStateMachineArn"]

    @property
    def tables_input(self) -> dict[str, Any]:
        """The input of scheduled maintenance runs.

        Raises:
            Failure: the stack has none.
        """
        return self._object("TablesInput")

    @property
    def function_names(self) -> Mapping[str, str]:
        """Handler (``discover``, …) -> name of its Lambda function.

        Raises:
            Failure: the stack has none.
        """
        return {handler: str(name) for handler, name in self._object("FunctionNames").items()}

    def _require_compaction(self) -> None:
        if self.maintenance_alone:
            line = f"the stack {self.name} maintains tables and compacts nothing"
            raise Failure(line, EXIT_USAGE, f"compactor tables run --stack {self.name}")

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
            (found,) = aws.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
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
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}
    return Stack(name, found["StackStatus"], outputs)
