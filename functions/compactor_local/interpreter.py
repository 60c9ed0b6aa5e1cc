"""Patches for moto's Step Functions interpreter.

moto 5.2.5 interprets a state machine, but reaches S3 and Lambda through a moto server, parses every
JSONPath on each use, and lacks service integrations such as EMR ``.sync``. Each function below
fixes one of these by replacing the smallest part of moto that causes it; :func:`install` applies
all of them, once per process.

A stand-in for a service integration is a function ``(parameters) -> result``, found by the task's
resource. An exception fails the task: with its class name as error, or with the error and cause of
a :class:`BridgeError`, whose error may be one of Step Functions' own (``States.TaskFailed``).
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import time
import types
from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.config import Config
from moto.stepfunctions.parser import models as _models  # noqa: F401 - loads every module patched
from moto.stepfunctions.parser.api import HistoryEventType
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import (
    CustomErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.error_name import ErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEvent
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import (
    StatesErrorName,
)
from moto.stepfunctions.parser.asl.component.common.path import result_path
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import (  # noqa: E501 - moto's own module path
    StateTaskService,
)
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import (
    WaitFunction,
)
from moto.stepfunctions.parser.asl.parse import preprocessor
from moto.stepfunctions.parser.asl.utils import boto_client, json_path

from compactor_local import EngineError, map_run, replace
from compactor_local.functions import Answer

Invoke = Callable[[str, Any], Answer]
"""Runs a Lambda function: (function ARN, event) -> answer."""
StandIn = Callable[[Mapping[str, Any]], Any]


class BridgeError(Exception):
    """Fails the task as the real service would."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(cause)
        self.error = error
        self.cause = cause


def load_bridges(targets: Mapping[str, str]) -> dict[str, StandIn]:
    """Import the stand-ins.

    Args:
        targets: task resource -> ``package.module:callable``.

    Raises:
        EngineError: one cannot be imported.
    """
    stand_ins: dict[str, StandIn] = {}
    for resource, target in targets.items():
        module, _, name = target.partition(":")
        try:
            stand_ins[resource] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            message = f"the bridge {target} for {resource} cannot be imported: {error}"
            raise EngineError(message) from error
    return stand_ins


def install(
    *,
    invoke: Invoke,
    slots: int,
    wait_scale: float,
    endpoint_url: str | None,
    stand_ins: Mapping[str, StandIn],
    on_child: map_run.OnChild,
    batchers: Mapping[str, map_run.Batcher],
) -> None:
    """Apply every patch to this process's interpreter.

    Args:
        invoke: runs Lambda functions.
        slots: maximum number of concurrent children of a Map.
        wait_scale: factor for the waits of Retry and Wait.
        endpoint_url: S3 endpoint of ItemReader and ResultWriter; None for AWS.
        stand_ins: task resource -> its stand-in.
        on_child: called with every ended child.
        batchers: label of a Map -> its ItemBatcher.
    """
    _reach_s3(endpoint_url)
    _invoke_lambda(invoke)
    _scale_waits(wait_scale)
    _parse_paths_once()
    map_run.install(slots=slots, on_child=on_child, batchers=batchers)
    _stand_in(stand_ins)


def _reach_s3(endpoint_url: str | None) -> None:
    """Let ItemReader and ResultWriter use the endpoint; any other service is an error."""
    s3 = boto3.client("s3", endpoint_url=endpoint_url, config=Config(retries={"mode": "standard"}))

    def client_for(region: str, service: str, state_credentials: Any = None) -> Any:
        if service != "s3":
            raise NotImplementedError(f"the local engine calls S3 and Lambda, not {service}")
        return s3

    original = boto_client.boto_client_for
    for name, module in list(sys.modules.items()):
        if name.startswith("moto.") and getattr(module, "boto_client_for", None) is original:
            replace(module, "boto_client_for", client_for)


def _invoke_lambda(invoke: Invoke) -> None:
    """Send Lambda invocations to the worker pool."""

    def invoke_function(parameters: Mapping[str, Any], region: str, state_credentials: Any) -> Any:
        answer = invoke(parameters["FunctionName"], json.loads(parameters["Payload"]))
        response = {"ExecutedVersion": "$LATEST", "StatusCode": 200}
        if "failure" in answer:
            return {**response, "FunctionError": "Unhandled", "Payload": answer["failure"]}
        return {**response, "Payload": answer["payload"]}

    replace(lambda_eval_utils, "_invoke_lambda_function", invoke_function)


def _scale_waits(factor: float) -> None:
    """Multiply the waits of Retry and Wait by ``factor``."""

    def sleep(seconds: float) -> None:
        time.sleep(seconds * factor)

    def wait(self: WaitFunction, env: Any, wait_seconds: float) -> None:
        env.program_state_event.wait(wait_seconds * factor)

    replace(retrier_decl, "time", types.SimpleNamespace(sleep=sleep))
    replace(WaitFunction, "_wait_interval", wait)


def _parse_paths_once() -> None:
    """Parse each JSONPath once per process, not once per use."""
    for module in (json_path, result_path):
        replace(module, "parse", functools.lru_cache(maxsize=512)(vars(module)["parse"]))


def _stand_in(stand_ins: Mapping[str, StandIn]) -> None:
    """Make the interpreter run tasks of these resources with their stand-ins."""

    def state_task_for(resource: Any) -> Any:
        if (stand_in := stand_ins.get(resource.resource_arn)) is not None:
            return _BridgedTask(stand_in)
        return original(resource)

    original = replace(preprocessor, "state_task_for", state_task_for)


class _BridgedTask(StateTaskService):
    """A task that a stand-in runs."""

    def __init__(self, stand_in: StandIn) -> None:
        super().__init__()
        self._stand_in = stand_in

    def _get_supported_parameters(self) -> set[str] | None:
        # Empty, not None: the resource is known, and its parameters are not filtered.
        return set()

    def _eval_service_task(
        self,
        env: Any,
        resource_runtime_part: Any,
        normalised_parameters: dict[str, Any],
        state_credentials: Any,
    ) -> None:
        env.stack.append(self._stand_in(normalised_parameters))

    def _from_error(self, env: Any, ex: Exception) -> FailureEvent:
        if hasattr(ex, "failure_event") or isinstance(ex, TimeoutError):
            return super()._from_error(env=env, ex=ex)
        error = ex.error if isinstance(ex, BridgeError) else type(ex).__name__
        details: Any = {
            "error": error,
            "cause": str(ex),
            "resource": self._get_sfn_resource(),
            "resourceType": self._get_sfn_resource_type(),
        }
        event_details: Any = {"taskFailedEventDetails": details}
        return FailureEvent(
            env=env,
            error_name=_error_name(error),
            event_type=HistoryEventType.TaskFailed,
            event_details=event_details,
        )


def _error_name(error: str) -> ErrorName:
    if error.startswith("States."):
        return StatesErrorName.from_name(error)
    return CustomErrorName(error)
