"""Patches for moto's Step Functions interpreter.

moto 5.2.5 interprets a state machine, but reaches S3 and Lambda through a moto server, and parses
every JSONPath on each use. Each function below fixes one of these by replacing the smallest part of
moto that causes it; :func:`install` applies all of them, once per process.
"""

from __future__ import annotations

import functools
import json
import sys
import time
import types
from collections.abc import Callable, Mapping
from typing import Any

import boto3
from botocore.config import Config
from moto.stepfunctions.parser import models as _models  # noqa: F401 - loads every module patched
from moto.stepfunctions.parser.asl.component.common.path import result_path
from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.state.exec.state_map.iteration import (
    distributed_iteration_component,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import (
    WaitFunction,
)
from moto.stepfunctions.parser.asl.eval.event.event_manager import EventManager
from moto.stepfunctions.parser.asl.utils import boto_client, json_path

from compactor_local import bridges, map_run
from compactor_local.invocations import Answer
from compactor_local.patching import replace

Invoke = Callable[[str, Any], Answer]
"""Runs a Lambda function: (function ARN, event) -> answer."""


def install(
    *,
    invoke: Invoke,
    slots: int,
    wait_scale: float,
    endpoint_url: str | None,
    stand_ins: Mapping[str, bridges.StandIn],
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
    _forget_children_history()
    map_run.install(slots=slots, on_child=on_child, batchers=batchers)
    bridges.install(stand_ins)


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


class _NoHistory(EventManager):
    """Numbers events as its base class does, but keeps none."""

    def _publish_history_event(self, *_: Any, **__: Any) -> None:
        pass


def _forget_children_history() -> None:
    """Discard the events of a Map Run's children, which cannot be queried here."""
    replace(distributed_iteration_component, "EventManager", _NoHistory)
