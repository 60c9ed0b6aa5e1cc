"""A handler for the local engine that passes every event on to the deployed function it is for.

What is deployed is in the file that :data:`FUNCTIONS` names: for each function its handler,
its code's directory and the variables of its environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

FUNCTIONS = "COMPACTOR_TEST_FUNCTIONS"
_RUNTIME = Path(__file__).with_name("runtime.py")


def handler(event: Any, context: Any) -> Any:
    """Run one invocation in the function's own process.

    Raises:
        Exception: of the name that the function's own error has.
    """
    function = _process(context.function_name)
    about = {
        "function_name": context.function_name,
        "function_version": "$LATEST",
        "invoked_function_arn": context.invoked_function_arn,
        "aws_request_id": context.aws_request_id,
        "memory_limit_in_mb": context.memory_limit_in_mb,
        "remaining_seconds": context.get_remaining_time_in_millis() / 1000,
    }
    assert function.stdin is not None
    assert function.stdout is not None
    function.stdin.write(json.dumps([event, about]) + "\n")
    function.stdin.flush()
    line = function.stdout.readline()
    if not line:
        raise RuntimeError(f"{context.function_name} ended with status {function.wait()}")
    answer = json.loads(line)
    if "failure" in answer:
        name, message = answer["failure"]
        raise type(name, (Exception,), {})(message)
    return answer["payload"]


def end(*names: str) -> None:
    """End the processes of functions, which the next event would start anew."""
    functions = [_process(name) for name in names]
    _process.cache_clear()
    for function in functions:
        function.communicate(timeout=30)


@cache
def _process(name: str) -> subprocess.Popen[str]:
    """The function's process; it ends with this one, whose end closes its standard input."""
    deployed = json.loads(Path(os.environ[FUNCTIONS]).read_text(encoding="utf-8"))[name]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(_RUNTIME), deployed["handler"], *deployed["path"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=deployed["environment"],
        text=True,
        encoding="utf-8",
    )
