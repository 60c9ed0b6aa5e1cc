"""How the fake handlers fail on demand, and what they write down."""

from __future__ import annotations

import json
import os
import signal
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any


class TransientStoreError(Exception):
    """Named as the real one."""


class SourceChanged(Exception):
    """Named as the real one."""


class IntegrityError(Exception):
    """Named as the real one."""


class InvalidInput(Exception):
    """Named as the real one."""


_ERRORS = {
    error.__name__: error
    for error in (TransientStoreError, SourceChanged, IntegrityError, InvalidInput)
}


def act(function: str, path: str, settings: dict[str, Any], context: Any) -> str:
    """Write this invocation down and do what the script says; returns the step's name."""
    scratch = Path(settings["scratch"])
    steps = settings["trouble"].get(f"{function} {path}".strip(), [])
    taken = _take(scratch / f"{function}-{path.strip('/')}")
    step = steps[taken] if taken < len(steps) else "well"
    call = {"function": function, "path": path, "step": step, "pid": os.getpid()}
    more = {"at": time.time(), "remaining": context.get_remaining_time_in_millis()}
    with (scratch / "calls").open("a", encoding="utf-8") as calls:
        calls.write(json.dumps({**call, **more}) + "\n")
    if step in _ERRORS:
        raise _ERRORS[step](f"{function} {path}: as the script says")
    if step == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if step == "hangs":
        time.sleep(60)
    if step == "swells":
        bytearray(os.urandom(1)) * (200 * 1024 * 1024)
    return step


def put(path: str, document: Any) -> None:
    """Unsigned, which the embedded S3 accepts: loading boto3 would be half of each test's time."""
    connection = HTTPConnection(os.environ["AWS_ENDPOINT_URL_S3"].partition("//")[2])
    connection.request("PUT", f"/{path}", body=json.dumps(document).encode())
    status = connection.getresponse().status
    connection.close()
    if status != 200:
        raise RuntimeError(f"{path} was not written: {status}")


def _take(counter: Path) -> int:
    """How often this was called before; one byte of the counter is one call."""
    with counter.open("ab") as stream:
        stream.write(b".")
    return counter.stat().st_size - 1
