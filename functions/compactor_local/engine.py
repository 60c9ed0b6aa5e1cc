"""Runs the workflow on this machine: the deployed definition, the real handlers, any S3."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Self

from compactor_cli.machine.environment import engine_environment, opened_log
from compactor_cli.machine.extras import require
from compactor_cli.machine.processes import Child
from compactor_local.definition import load_definition
from compactor_local.model import (
    HANDLERS,
    EngineError,
    EngineOptions,
    WorkflowProgress,
    WorkflowResult,
)

_END_SECONDS = 10.0


class Engine:
    """An engine process that runs executions sequentially; use it as a context manager.

    Loading the interpreter takes seconds, so keep the engine for several executions. The end of the
    block, by an interrupt too, ends every process that the engine started.

    Args:
        options: defaults of each run; ``environment`` and ``log`` are only used from here.
        endpoint_url: S3 endpoint; None for AWS. Credentials and region as boto3 finds them.
    """

    def __init__(
        self, options: EngineOptions | None = None, *, endpoint_url: str | None = None
    ) -> None:
        self._options = options or EngineOptions()
        self._endpoint_url = endpoint_url

    def __enter__(self) -> Self:
        require("local", "the state machine on this machine")
        environment = engine_environment(self._options.environment, self._endpoint_url)
        with opened_log(self._options.log) as log:
            # Detached: a terminal's interrupt reaches only this process, which ends the engine.
            self._process = Child(
                "compactor_local.engine_process",
                environment=environment,
                log=log,
                detached=True,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end(_END_SECONDS)

    def run(
        self,
        execution_input: Mapping[str, Any],
        *,
        run_name: str,
        workers: int,
        on_progress: Callable[[WorkflowProgress], None] | None = None,
        handler_modules: Mapping[str, str] = HANDLERS,
        options: EngineOptions | None = None,
    ) -> WorkflowResult:
        """Run one execution to its end; see :func:`run_workflow`."""
        order = _order(
            execution_input, run_name, workers, handler_modules, options or self._options
        )
        return self._carry_out(order, on_progress)

    def _carry_out(
        self, order: Mapping[str, Any], on_progress: Callable[[WorkflowProgress], None] | None
    ) -> WorkflowResult:
        try:
            self._process.send({**order, "endpoint_url": self._endpoint_url})
            return self._follow(on_progress)
        except EOFError:
            code = self._process.end()
            message = f"the local engine exited with status {code}; see its log"
            raise EngineError(message) from None

    def _follow(self, on_progress: Callable[[WorkflowProgress], None] | None) -> WorkflowResult:
        """Wait for the result, and pass progress on."""
        while True:
            message = self._process.receive()
            if "engine_error" in message:
                raise EngineError(message["engine_error"])
            if "result" in message:
                return _result(message["result"], on_progress)
            if on_progress:
                on_progress(WorkflowProgress(**message["progress"]))


def run_workflow(
    execution_input: Mapping[str, Any],
    *,
    run_name: str,
    workers: int,
    endpoint_url: str | None = None,
    on_progress: Callable[[WorkflowProgress], None] | None = None,
    handler_modules: Mapping[str, str] = HANDLERS,
    options: EngineOptions | None = None,
) -> WorkflowResult:
    """Run one execution of the state machine to its end.

    The end of this call, by an interrupt too, ends every process it started.

    Args:
        execution_input: exactly what the deployed state machine takes.
        run_name: the execution's name, and so the run id.
        workers: handler processes, each running one invocation at a time; at least 1.
        endpoint_url: S3 endpoint; None for AWS. Credentials and region as boto3 finds them.
        on_progress: called in this thread, at most about ten times a second.
        handler_modules: function name -> module whose ``handler(event, context)`` it runs.
        options: everything else; see :class:`EngineOptions`.

    Returns:
        The end of the execution; a failed execution is a result, not an exception.

    Raises:
        ExtraMissing: the extra ``local`` is not installed.
        EngineError: the engine did not start, or exited.
    """
    # Before any process is started, so that mistakes are reported immediately.
    order = _order(execution_input, run_name, workers, handler_modules, options or EngineOptions())
    with Engine(options, endpoint_url=endpoint_url) as engine:
        return engine._carry_out(order, on_progress)


def _order(
    execution_input: Mapping[str, Any],
    run_name: str,
    workers: int,
    handler_modules: Mapping[str, str],
    options: EngineOptions,
) -> dict[str, Any]:
    """Return the message to the engine process that describes one run.

    Raises:
        EngineError: an argument is invalid, or the definition has an unknown substitution.
    """
    if workers < 1:
        raise EngineError(f"workers: {workers} is not accepted; expected 1 or more")
    return {
        "definition": load_definition(options.definition),
        "execution_input": json.dumps(execution_input),
        "run_name": run_name,
        "workers": workers,
        "handler_modules": dict(handler_modules),
        "handler_timeout_seconds": options.handler_timeout_seconds,
        "memory_mb": options.memory_mb,
        "wait_scale": options.wait_scale,
        "bridges": dict(options.bridges),
    }


def _result(
    result: dict[str, Any], on_progress: Callable[[WorkflowProgress], None] | None
) -> WorkflowResult:
    progress = WorkflowProgress(**result.pop("progress"))
    events = tuple(result.pop("events"))
    if on_progress:
        on_progress(progress)
    return WorkflowResult(**result, progress=progress, events=events)
