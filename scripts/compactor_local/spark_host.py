"""Runs Spark jobs sequentially in one JVM, whose start takes most of a short job's time.

Started by :mod:`compactor_local.kept_spark` as ``python -m compactor_local.spark_host SCRIPT``.
Arguments for the script arrive on standard input; its progress lines and exit code are written to
the original standard output. The JVM is started immediately, before the first job, and ends with
this process.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
from pathlib import Path
from typing import IO, TextIO

from compactor_machine.spark_process import LINE_PREFIX
from compactor_machine.wire import answer_stream, receive, send

# In the directory of the job's script.
_WARM_UP = "warm_up.py"


class _Lines(io.TextIOBase):
    """Standard error that also sends progress lines to the parent process.

    Args:
        stream: receives everything.
        answers: receives progress lines too.
    """

    def __init__(self, stream: TextIO, answers: IO[bytes]) -> None:
        self._stream = stream
        self._answers = answers
        self._begun = ""

    def write(self, text: str) -> int:
        """Write text, and send completed progress lines."""
        self._stream.write(text)
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            if line.startswith(LINE_PREFIX):
                with contextlib.suppress(OSError):
                    send(self._answers, {"line": line.removeprefix(LINE_PREFIX).strip()})
        return len(text)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""
        self._stream.flush()

    def fileno(self) -> int:
        """Return the stream's descriptor."""
        return self._stream.fileno()


def main() -> None:
    """Carry out orders until the parent process is gone."""
    answers = answer_stream()
    script = sys.argv[1]
    # Spark leaves some scratch data in its working directory.
    os.chdir(os.environ["SPARK_LOCAL_DIRS"])
    sys.stderr = _Lines(sys.stderr, answers)
    _run(str(Path(script).with_name(_WARM_UP)), [])
    while (order := receive(sys.stdin.buffer)) is not None:
        code = _run(script, order["arguments"])
        with contextlib.suppress(OSError):
            send(answers, {"code": code})


def _run(script: str, arguments: list[str]) -> int:
    sys.argv = [script, *arguments]
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


if __name__ == "__main__":
    main()
