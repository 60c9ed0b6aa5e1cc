"""Children that are forked from this process, which has loaded what they need.

To load the modules of a worker takes 0.7 s of CPU time, as much as 80 partitions of few objects.
Only a process with one thread can be forked safely: another one might hold a lock that the child
then waits for forever. So this is done before a run starts its threads, or not at all.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, NoReturn

from compactor_machine.child import Child

_LOOK_SECONDS = 0.005
_THREADS = Path("/proc/self/task")
_STREAMS = (0, 1, 2)


def may_fork() -> bool:
    """True in a process with one thread, those of other languages counted, on Linux.

    macOS's own libraries may fail in a child that was only forked.
    """
    try:
        for stream in _STREAMS:
            os.fstat(stream)
        return sys.platform == "linux" and len([*_THREADS.iterdir()]) == 1
    except OSError:
        return False


def fork_children(
    count: int, main: Callable[[], None], *, environment: Mapping[str, str], log: IO[bytes] | int
) -> list[Child]:
    """Fork so many children, if this process may fork; otherwise none.

    Args:
        count: how many.
        main: what each does, with messages on its standard streams, as :class:`Child` has it.
        environment: their whole environment.
        log: where their standard error goes; a number stands for nowhere.
    """
    made: list[Child] = []
    while len(made) < count and may_fork():
        made.append(_fork(main, made, environment, log))
    return made


class _Process:
    """What :class:`Child` needs of a process of subprocess, for one that was forked."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None
        self._looking = threading.Lock()

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative for a signal.

        Raises:
            TimeoutExpired: it is still at work.
        """
        ends_at = None if timeout is None else time.monotonic() + timeout
        while (code := self._look(block=timeout is None)) is None:
            if ends_at is not None and time.monotonic() >= ends_at:
                raise subprocess.TimeoutExpired("a forked worker", timeout or 0.0)
            time.sleep(_LOOK_SECONDS)
        return code

    def kill(self) -> None:
        """End it, unless it has ended."""
        if self._look() is None:
            os.kill(self.pid, signal.SIGKILL)

    def _look(self, *, block: bool = False) -> int | None:
        # Its number is another's as soon as somebody was told of its end.
        with self._looking:
            if self._code is None:
                pid, status = os.waitpid(self.pid, 0 if block else os.WNOHANG)
                self._code = os.waitstatus_to_exitcode(status) if pid else None
            return self._code


def _fork(
    main: Callable[[], None],
    siblings: Iterable[Child],
    environment: Mapping[str, str],
    log: IO[bytes] | int,
) -> Child:
    orders, giving = os.pipe()
    answering, answers = os.pipe()
    for stream in (sys.stdout, sys.stderr):
        # Otherwise the child would have the same words to write.
        stream.flush()
    pid = os.fork()
    if not pid:
        os.close(giving)
        os.close(answering)
        _be_child(main, siblings, environment, (orders, answers, log))
    os.close(orders)
    os.close(answers)
    return Child.of(_Process(pid), os.fdopen(giving, "wb"), os.fdopen(answering, "rb", buffering=0))


def _be_child(
    main: Callable[[], None],
    siblings: Iterable[Child],
    environment: Mapping[str, str],
    streams: tuple[int, int, IO[bytes] | int],
) -> NoReturn:
    """Do what a child does, and end; nothing of what the parent was about to do is done here."""
    code = 1
    try:
        # A terminal's interrupt is for the parent.
        os.setsid()
        for one in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(one, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _take_streams(*streams)
        for sibling in siblings:
            # It would not see the end of its orders while this process could still give some.
            sibling.leave()
        os.environ.clear()
        os.environ.update(environment)
        main()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _take_streams(orders: int, answers: int, log: IO[bytes] | int) -> None:
    errors = os.open(os.devnull, os.O_WRONLY) if isinstance(log, int) else log.fileno()
    for stream, taken in zip(_STREAMS, (orders, answers, errors), strict=True):
        os.dup2(taken, stream)
    os.close(orders)
    os.close(answers)
    sys.stdin = open(0, closefd=False, encoding="utf-8")  # noqa: SIM115 - of the process
    sys.stdout = open(1, "w", buffering=1, closefd=False, encoding="utf-8")  # noqa: SIM115 - of the process
    sys.stderr = open(2, "w", buffering=1, closefd=False, encoding="utf-8")  # noqa: SIM115 - of the process
