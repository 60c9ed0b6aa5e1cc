"""Runs one spark-submit, and kills all its processes when the parent process ends.

Started as ``python -m compactor_cli.machine.spark_process``. Spark's processes start further
processes, all in one session, which is killed when standard input closes. The output of the job
goes to standard error, which is the log; its progress lines are also sent as messages.
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

from compactor_cli.machine.processes import answer_stream, receive, send

#: Prefix of the job's progress lines.
LINE_PREFIX = "compact_partitions: "
_PREFIXES = (LINE_PREFIX.encode(), b"maintain_tables: ")


def main() -> None:
    """Run the command of the only order, and answer with its exit code."""
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
        # Spark writes scratch data there, and some to its working directory.
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
            if line.startswith(_PREFIXES):
                text = line.partition(b": ")[2].decode("utf-8", "replace").strip()
                with contextlib.suppress(OSError):
                    send(answers, {"line": text})
        return process.wait()
    finally:
        _kill(process)


def _end_with_the_caller(process: subprocess.Popen[bytes]) -> None:
    # Unbuffered: a thread blocked here would hold the buffer's lock at exit.
    while os.read(sys.stdin.fileno(), 1):
        pass
    _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole session, as Spark's Python workers have their own process group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for pid in _members(process.pid):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _members(session: int) -> Iterator[int]:
    """Yield the processes of a session; none on systems without /proc (macOS)."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            # The name, in parentheses, may have spaces; then state, parent, group, session.
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[3]) == session:
                yield int(stat.parent.name)


if __name__ == "__main__":
    main()
