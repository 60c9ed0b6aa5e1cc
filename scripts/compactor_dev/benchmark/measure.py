"""One client process: its CPU time, its wall time, its peak memory, and who else was at work."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor.errors import TransientStoreError
from compactor_cli.local.child import read_peak_bytes
from compactor_dev.benchmark.instructions import counted
from compactor_dev.benchmark.others import Look

_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process, with all it started, took from its start to its end.

    Attributes:
        seconds: wall time.
        user_seconds, kernel_seconds: CPU time. The kernel knows their sum exactly, and how it
            falls into the two by samples.
        peak_bytes: largest resident memory; of a pipeline, the sum of its programs'.
        instructions: executed in user space; None where nobody counts them.
        others: the share of all processors that other processes used meanwhile.
    """

    seconds: float
    user_seconds: float
    kernel_seconds: float
    peak_bytes: int
    instructions: int | None
    others: float


def measure(
    command: Sequence[str], environment: Mapping[str, str], log: Path, limit_seconds: float
) -> Measured:
    """Run a client to its end.

    Args:
        command: what to run.
        environment: its whole environment.
        log: gets what it prints.
        limit_seconds: it is killed after so long.

    Raises:
        TransientStoreError: it failed, or took too long; says what it printed last.
    """
    before = Look.now()
    with log.open("wb") as sink, counted() as instructions:
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            # So that a pipeline can be ended as a whole.
            start_new_session=True,
        )
        try:
            with _watched(process, limit_seconds) as peaks:
                _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            _end(process)
            raise
        seconds = time.monotonic() - started
        executed = instructions()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise TransientStoreError(f"{Path(command[0]).name} failed: {last_line(log)}")
    return Measured(
        seconds=seconds,
        user_seconds=usage.ru_utime,
        kernel_seconds=usage.ru_stime,
        peak_bytes=sum(peaks.values()),
        instructions=executed,
        others=before.others_until(Look.now()),
    )


def last_line(log: Path) -> str:
    """The last thing a client printed, shortened."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][-300:] if said else "it said nothing"


@contextlib.contextmanager
def _watched(process: subprocess.Popen[bytes], limit_seconds: float) -> Iterator[dict[int, int]]:
    """Peak memory of the process and its descendants, by process id, while the block runs."""
    peaks: dict[int, int] = {}
    over = threading.Event()

    def watch() -> None:
        end = time.monotonic() + limit_seconds
        while not over.wait(_LOOK_SECONDS):
            for pid in _family(process.pid):
                with contextlib.suppress(OSError):
                    # The kernel's own high-water mark: a look is never too late for a peak,
                    # except within the last twentieth of a second.
                    peaks[pid] = max(peaks.get(pid, 0), read_peak_bytes(f"/proc/{pid}/status"))
            if time.monotonic() > end:
                _end(process)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peaks
    finally:
        over.set()
        watcher.join()


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return [pid]
    return [pid, *(one for child in children for one in _family(int(child)))]


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
