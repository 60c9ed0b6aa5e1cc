"""Runs one spark-submit for as long as the process that started this one wants it.

Started as ``python -m compactor_machine.spark_process``. Spark starts processes that start
processes. They form a session of their own, which is killed when standard input closes. What the
job prints goes to standard error, which is the log; its progress lines are also sent as messages.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast

from compactor_machine.wire import answer_stream, receive, send

#: How the job starts the lines that are for a person.
LINE_PREFIX = "compact_partitions: "
_PREFIX = LINE_PREFIX.encode()


def main() -> None:
    """Run what the one order says, and answer with its exit code."""
    answers = answer_stream()
    order = receive(sys.stdin.buffer)
    if order is None:
        return
    with tempfile.TemporaryDirectory(prefix="compactor-spark-") as directory:
        code = _run(order, directory, answers)
    with contextlib.suppress(OSError):
        send(answers, {"code": code})


def _run(order: Mapping[str, Any], directory: str, answers: IO[bytes]) -> int:
    process = subprocess.Popen(
        order["command"],
        # Spark leaves its scratch data there, and some of it where it was started.
        env={**order["environment"], "SPARK_LOCAL_DIRS": directory},
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        threading.Thread(target=_end_with_the_caller, args=(process,), daemon=True).start()
        for line in cast("IO[bytes]", process.stdout):
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
            if line.startswith(_PREFIX):
                text = line.removeprefix(_PREFIX).decode("utf-8", "replace").strip()
                with contextlib.suppress(OSError):
                    send(answers, {"line": text})
        return process.wait()
    finally:
        _kill(process)


def _end_with_the_caller(process: subprocess.Popen[bytes]) -> None:
    # Past the buffer, whose lock a thread that still waits here would hold at the exit.
    while os.read(sys.stdin.fileno(), 1):
        pass
    _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the whole session: Spark's Python workers have a process group of their own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in _members(process.pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _members(session: int) -> Iterator[int]:
    """Processes of a session; none where the system does not say (macOS)."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            # The name, in parentheses, may hold spaces; then state, parent, group, session.
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == session:
                yield int(stat.parent.name)


if __name__ == "__main__":
    main()
