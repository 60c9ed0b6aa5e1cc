"""Starts executions locally like Step Functions: with idempotent names.

Implements ``StartExecution`` and ``DescribeExecution`` as botocore calls them (JSON 1.0 over HTTP).
Starting a running name with the same input returns the same execution; with another input, or after
its end, it is an error (`StartExecution
<https://docs.aws.amazon.com/step-functions/latest/apireference/API_StartExecution.html>`_).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from compactor_local.definition import ACCOUNT, REGION

#: The only state machine.
MACHINE_ARN = f"arn:aws:states:{REGION}:{ACCOUNT}:stateMachine:compaction"
_EXECUTIONS = MACHINE_ARN.replace(":stateMachine:", ":execution:")
_TARGET = "X-Amz-Target"
_LONGEST_NAME = 80
RUNNING, SUCCEEDED, FAILED = "RUNNING", "SUCCEEDED", "FAILED"


@dataclass(slots=True)
class Execution:
    """One execution; times in UNIX seconds.

    Attributes:
        input: as given, JSON.
        cause: why it failed.
    """

    name: str
    input: str
    started_at: float
    status: str = RUNNING
    ended_at: float | None = None
    cause: str = ""

    @property
    def arn(self) -> str:
        """ARN of the execution."""
        return f"{_EXECUTIONS}:{self.name}"


class _Refused(Exception):
    """An error of the API.

    Args:
        error: its name in the API.
        message: its text.
    """

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


class Executions:
    """Executions of one state machine, run one at a time in the order of their start.

    Args:
        carry_out: runs one to its end, by name and input; an exception fails it.
    """

    def __init__(self, carry_out: Callable[[str, Mapping[str, Any]], None]) -> None:
        self._carry_out = carry_out
        self._known: dict[str, Execution] = {}
        self._waiting: list[Execution] = []
        self._changed = threading.Condition()
        self._ended = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._request_handler())
        self._server.daemon_threads = True
        self._threads = [
            threading.Thread(target=self._server.serve_forever, daemon=True),
            threading.Thread(target=self._work, daemon=True),
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join()

    @property
    def endpoint_url(self) -> str:
        """The URL it listens on, on the loopback interface."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def all(self) -> list[Execution]:
        """Return every execution, in the order of their start."""
        with self._changed:
            return list(self._known.values())

    def running(self) -> bool:
        """Return whether an execution runs or waits."""
        return any(one.status == RUNNING for one in self.all())

    def wait_until_idle(self) -> None:
        """Wait until no execution runs or waits."""
        with self._changed:
            while any(one.status == RUNNING for one in self._known.values()):
                self._changed.wait()

    def start(self, name: str, given: str) -> Execution:
        """Start an execution, or return the running one of this name."""
        if not 0 < len(name) <= _LONGEST_NAME:
            raise _Refused("InvalidName", f"Invalid Name: {name!r}")
        with self._changed:
            known = self._known.get(name)
            if known is None:
                known = self._known[name] = Execution(name, given, time.time())
                self._waiting.append(known)
                self._changed.notify_all()
            elif known.status != RUNNING or known.input != given:
                raise _Refused("ExecutionAlreadyExists", f"Execution Already Exists: {known.arn!r}")
            return known

    def describe(self, arn: str) -> Execution:
        """Return an execution by its ARN."""
        found = self._known.get(arn.removeprefix(f"{_EXECUTIONS}:"))
        if found is None:
            raise _Refused("ExecutionDoesNotExist", f"Execution Does Not Exist: {arn!r}")
        return found

    def _work(self) -> None:
        while (execution := self._next()) is not None:
            try:
                self._carry_out(execution.name, json.loads(execution.input))
                status, cause = SUCCEEDED, ""
            except Exception as error:
                status, cause = FAILED, f"{type(error).__name__}: {error}"
            with self._changed:
                execution.cause, execution.ended_at = cause, time.time()
                execution.status = status
                self._changed.notify_all()

    def _next(self) -> Execution | None:
        with self._changed:
            while not self._waiting and not self._ended:
                self._changed.wait()
            return None if self._ended else self._waiting.pop(0)

    def _request_handler(self) -> type[BaseHTTPRequestHandler]:
        def answer(target: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
            verb = target.rpartition(".")[2]
            if verb == "StartExecution":
                if given["stateMachineArn"] != MACHINE_ARN:
                    raise _Refused("StateMachineDoesNotExist", given["stateMachineArn"])
                started = self.start(given["name"], given.get("input", "{}"))
                return {"executionArn": started.arn, "startDate": started.started_at}
            if verb == "DescribeExecution":
                return _described(self.describe(given["executionArn"]))
            raise _Refused("UnknownOperationException", target)

        return type("_Request", (_Request,), {"answer": staticmethod(answer)})


def _described(execution: Execution) -> Mapping[str, Any]:
    described: dict[str, Any] = {
        "executionArn": execution.arn,
        "stateMachineArn": MACHINE_ARN,
        "name": execution.name,
        "status": execution.status,
        "startDate": execution.started_at,
        "input": execution.input,
    }
    if execution.ended_at is not None:
        described["stopDate"] = execution.ended_at
    if execution.cause:
        described["cause"] = execution.cause
    return described


class _Request(BaseHTTPRequestHandler):
    """A connection of an AWS client."""

    protocol_version = "HTTP/1.1"
    answer: Callable[[str, Mapping[str, Any]], Mapping[str, Any]]

    def do_POST(self) -> None:
        """Answer one call."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            code, answer = 200, type(self).answer(self.headers[_TARGET], json.loads(body))
        except _Refused as refused:
            code, answer = 400, {"__type": refused.error, "message": str(refused)}
        document = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(document)))
        self.end_headers()
        self.wfile.write(document)

    def log_message(self, *_: object) -> None:
        """Log nothing: clients report the responses."""
