"""Runs the workflow on this machine: the deployed definition, the real handlers, any S3."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from compactor.orchestration.run_progress import RunProgress
from compactor_cli.machine.environment import engine_environment, opened_log
from compactor_cli.machine.extras import require
from compactor_cli.machine.processes import Child
from compactor_local import EngineError
from compactor_local.definition import DEFINITION, HANDLERS, load_definition

_END_SECONDS = 10.0
BRIDGES: Mapping[str, str] = {
    "arn:aws:states:::elasticmapreduce:addStep.sync": "compactor_local.services:add_step",
    "arn:aws:states:::emr-serverless:startJobRun.sync": "compactor_local.services:start_job_run",
}
"""Task resource -> ``package.module:callable`` of its default stand-in."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Options of the local engine; the defaults match the deployed functions.

    Attributes:
        definition: the state machine file.
        handler_timeout_seconds: a handler that runs longer is killed and its process replaced.
        wait_scale: factor for the waits before retries and of Wait states; 0 skips them.
        environment: variables for engine and handlers, on top of this process's own. An empty
            value removes the variable. ``PYTHONPATH`` precedes the project's own.
        log: file to which the output of handlers is appended; None discards it.
        bridges: task resource -> ``package.module:callable`` that stands in for a service
            integration the interpreter lacks; it takes the task's parameters and returns the
            task's result. See :mod:`compactor_local.services` for the default ones.
    """

    definition: Path = DEFINITION
    handler_timeout_seconds: float = 900.0
    wait_scale: float = 1.0
    environment: Mapping[str, str] = field(default_factory=dict)
    log: Path | None = None
    bridges: Mapping[str, str] = field(default_factory=lambda: dict(BRIDGES))


@dataclass(frozen=True, slots=True)
class WorkflowProgress(RunProgress):
    """The progress of an execution.

    Attributes:
        function: the function invoked last, e.g. ``compact_partition``.
        invocations: Lambda invocations that have answered, failures included.
    """

    function: str = ""
    invocations: int = 0


@dataclass(frozen=True, slots=True)
class WorkflowResult:
    """The end of an execution.

    Attributes:
        status: ``SUCCEEDED``, ``FAILED``, ``TIMED_OUT`` or ``ABORTED``, as in Step Functions.
        output: the execution's output when it succeeded.
        error: error name when it failed.
        cause: error cause when it failed.
        seconds: from the start of the execution to its end.
        progress: the final progress.
        worker_peak_bytes: largest resident memory any handler process reached.
        workers_replaced: handler processes that crashed or were killed.
        events: the execution's history events, without those of child executions.
    """

    status: str
    output: Any
    error: str | None
    cause: str | None
    seconds: float
    progress: WorkflowProgress
    worker_peak_bytes: int
    workers_replaced: int
    events: tuple[Mapping[str, Any], ...] = ()


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
        options = options or self._options
        if workers < 1:
            raise EngineError(f"workers: {workers} is not accepted; expected 1 or more")
        order = {
            "definition": load_definition(options.definition),
            "execution_input": json.dumps(execution_input),
            "endpoint_url": self._endpoint_url,
            "run_name": run_name,
            "workers": workers,
            "handler_modules": dict(handler_modules),
            "handler_timeout_seconds": options.handler_timeout_seconds,
            "wait_scale": options.wait_scale,
            "bridges": dict(options.bridges),
        }
        try:
            self._process.send(order)
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
        EngineError: the engine did not start, or exited; there are no workers, or the definition
            has an unknown substitution.
    """
    with Engine(options, endpoint_url=endpoint_url) as engine:
        return engine.run(
            execution_input,
            run_name=run_name,
            workers=workers,
            on_progress=on_progress,
            handler_modules=handler_modules,
        )


def _result(
    result: dict[str, Any], on_progress: Callable[[WorkflowProgress], None] | None
) -> WorkflowResult:
    progress = WorkflowProgress(**result.pop("progress"))
    events = tuple(result.pop("events"))
    if on_progress:
        on_progress(progress)
    return WorkflowResult(**result, progress=progress, events=events)
