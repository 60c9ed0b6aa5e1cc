"""Stand-ins for service integrations that moto's interpreter lacks, such as EMR ``.sync``.

A stand-in is a function ``(parameters) -> result``, found by the task's resource. An exception
fails the task: with its class name as error, or with the error and cause of a :class:`BridgeError`,
whose error may be one of Step Functions' own (``States.TaskFailed``).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from moto.stepfunctions.parser.api import HistoryEventType
from moto.stepfunctions.parser.asl.component.common.error_name.custom_error_name import (
    CustomErrorName,
)
from moto.stepfunctions.parser.asl.component.common.error_name.error_name import ErrorName
from moto.stepfunctions.parser.asl.component.common.error_name.failure_event import FailureEvent
from moto.stepfunctions.parser.asl.component.common.error_name.states_error_name import (
    StatesErrorName,
)
from moto.stepfunctions.parser.asl.component.state.exec.state_task.service.state_task_service import (  # noqa: E501 - moto's own module path
    StateTaskService,
)
from moto.stepfunctions.parser.asl.parse import preprocessor

from compactor_local.model import EngineError
from compactor_local.patching import replace

StandIn = Callable[[Mapping[str, Any]], Any]


class BridgeError(Exception):
    """Fails the task as the real service would."""

    def __init__(self, error: str, cause: str) -> None:
        super().__init__(cause)
        self.error = error
        self.cause = cause


def load(targets: Mapping[str, str]) -> dict[str, StandIn]:
    """Import the stand-ins.

    Args:
        targets: task resource -> ``package.module:callable``.

    Raises:
        EngineError: one cannot be imported.
    """
    found: dict[str, StandIn] = {}
    for resource, target in targets.items():
        module, _, name = target.partition(":")
        try:
            found[resource] = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            message = f"the bridge {target} for {resource} cannot be imported: {error}"
            raise EngineError(message) from error
    return found


def install(stand_ins: Mapping[str, StandIn]) -> None:
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
