"""The engine process: interprets executions, one at a time.

Started by :mod:`compactor_local.engine` as ``python -m compactor_local.engine_process``. Orders
arrive on standard input; progress and results are written to the original standard output. Loading
the interpreter takes seconds, so this process only loads it, and forks a process for each order
that patches it, starts the handler processes, and ends with the execution. When standard input
closes, the caller is gone: both processes end immediately, and the handlers with them.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, Any, NoReturn

from moto.stepfunctions.parser.backend.execution import BaseExecutionWorkerCommunication
from moto.stepfunctions.parser.models import stepfunctions_parser_backends

from compactor_cli.machine.processes import Child, WorkerPool, answer_stream, receive, send
from compactor_local import EngineError, interpreter, map_run, replace, services
from compactor_local.definition import ACCOUNT, REGION
from compactor_local.engine import WorkflowProgress
from compactor_local.functions import Functions

_PROGRESS_SECONDS = 0.1


def main() -> None:
    """Carry out orders until the caller is gone."""
    answers = answer_stream()
    # moto logs every failed task with the definition of its state; the result has the error.
    logging.getLogger("moto").setLevel(logging.CRITICAL)
    while (order := receive(sys.stdin.buffer)) is not None:
        child = os.fork()
        if child == 0:
            _carry_out(order, answers)
        _, status = os.waitpid(child, 0)
        if status != 0:
            code = os.waitstatus_to_exitcode(status)
            send(answers, {"engine_error": f"the interpreter ended with exit status {code}"})


def _carry_out(order: Mapping[str, Any], answers: IO[bytes]) -> NoReturn:
    """Carry out one order in the forked process, and exit."""
    code = 1
    try:
        threading.Thread(target=_end_with_the_caller, daemon=True).start()
        modules = list(order["handler_modules"].values())
        pool = WorkerPool(order["workers"], lambda: Child("compactor_local.functions", modules))
        try:
            send(answers, {"result": _execute(order, pool, _sender(answers))})
        except EngineError as error:
            send(answers, {"engine_error": str(error)})
        finally:
            pool.close()
        code = 0
    except Exception:
        logging.getLogger(__name__).exception("the engine failed")
    finally:
        # Exits despite threads that still wait for handlers, and without the parent's loop.
        os._exit(code)


def _end_with_the_caller() -> None:
    """Exit when standard input closes, without reading the next order."""
    closing = select.poll()
    closing.register(sys.stdin.buffer, select.POLLHUP)
    while not any(event & select.POLLHUP for _, event in closing.poll()):
        time.sleep(_PROGRESS_SECONDS)
    os._exit(1)


def _sender(answers: Any) -> Callable[[WorkflowProgress], None]:
    """Return a function that sends progress, at most ten times a second."""
    last = 0.0

    def send_progress(progress: WorkflowProgress) -> None:
        nonlocal last
        if time.monotonic() - last >= _PROGRESS_SECONDS:
            last = time.monotonic()
            send(answers, {"progress": dataclasses.asdict(progress)})

    return send_progress


def _execute(
    order: Mapping[str, Any], pool: WorkerPool, on_progress: Callable[[WorkflowProgress], None]
) -> dict[str, Any]:
    functions = Functions(
        order["handler_modules"],
        pool,
        timeout_seconds=order["handler_timeout_seconds"],
        on_progress=on_progress,
    )
    definition, batchers = map_run.without_batchers(order["definition"])
    interpreter.install(
        invoke=functions.invoke,
        slots=order["workers"],
        wait_scale=order["wait_scale"],
        endpoint_url=order["endpoint_url"],
        stand_ins=interpreter.load_bridges(order["bridges"]),
        on_child=functions.note_child,
        batchers=batchers,
    )
    services.callbacks = services.Callbacks(functions.note_spark, functions.note_spark_ended)
    started = time.monotonic()
    execution = _run(order, definition)
    return {
        "status": execution.exec_status.value,
        "output": execution.output,
        "error": execution.error,
        "cause": execution.cause,
        "seconds": time.monotonic() - started,
        "progress": dataclasses.asdict(functions.progress),
        "worker_peak_bytes": pool.peak_bytes,
        "workers_replaced": pool.replaced,
        "events": execution.exec_worker.env.event_manager.get_event_history(),
    }


def _run(order: Mapping[str, Any], definition: str) -> Any:
    """Run the execution to its end and return it.

    Raises:
        EngineError: the interpreter cannot parse the definition.
    """
    backend = stepfunctions_parser_backends[ACCOUNT][REGION]
    role = f"arn:aws:iam::{ACCOUNT}:role/local"
    try:
        machine = backend.create_state_machine(
            name="compaction", definition=definition, roleArn=role
        )
    except Exception as error:
        raise EngineError(f"the interpreter rejects the definition: {error}") from error
    ended = threading.Event()
    _set_at_end(ended)
    execution = backend.start_execution(machine.arn, order["run_name"], order["execution_input"])
    ended.wait()
    return execution


def _set_at_end(ended: threading.Event) -> None:
    """Set the event when an execution has its status and output, which moto sets in this order."""

    def terminated(communication: BaseExecutionWorkerCommunication) -> None:
        try:
            original(communication)
        finally:
            ended.set()

    original = replace(BaseExecutionWorkerCommunication, "terminated", terminated)


if __name__ == "__main__":
    main()
