"""Shared by both scenarios: measured processes, rounds, ratios and tables."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

from compactor.errors import InvalidInput, TransientStoreError
from compactor_dev import IMPORT_ROOTS

_LIMIT_SECONDS = 1_800.0
_Candidate = TypeVar("_Candidate")


@dataclass(frozen=True, slots=True)
class Taken:
    """The resources of one process, including the children it waited for.

    Attributes:
        seconds: wall time.
        user_seconds, kernel_seconds: CPU time. The kernel knows their sum exactly, but splits it
            by sampling.
        load: the machine's one-minute load average at the end.
    """

    seconds: float
    user_seconds: float
    kernel_seconds: float
    load: float

    @property
    def cpu_seconds(self) -> float:
        """CPU time in user space and in the kernel."""
        return self.user_seconds + self.kernel_seconds


def environment(more: Mapping[str, str], paths: Sequence[str] = IMPORT_ROOTS) -> dict[str, str]:
    """Return the environment of a candidate: this process's, extended, with these import roots."""
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **more}
    return {**variables, "PYTHONPATH": os.pathsep.join(paths)}


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    limit_seconds: float = _LIMIT_SECONDS,
) -> Taken:
    """Run a process to its end.

    Args:
        command: the command.
        environment: its whole environment.
        log: receives what it prints.
        limit_seconds: after this time it is killed with all its children.

    Raises:
        TransientStoreError: it failed, or took too long; the message has its last output.
    """
    with log.open("wb") as sink:
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
        timer = threading.Timer(limit_seconds, _kill, (process.pid,))
        timer.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            _kill(process.pid)
            raise
        finally:
            timer.cancel()
        seconds = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise TransientStoreError(f"{' '.join(command)[:80]} failed: {_last_line(log)}")
    return Taken(seconds, usage.ru_utime, usage.ru_stime, os.getloadavg()[0])


def _kill(pid: int) -> None:
    with suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][-300:] if said else "no output"


def in_turn(candidates: Sequence[_Candidate], number: int) -> list[_Candidate]:
    """Return the order of one round, numbered from 1: forwards, backwards (ABBA), then rotated.

    So no candidate is always first, or always after the same one; of two, each is as often first.
    """
    turns, backwards = divmod(number - 1, 2)
    first = turns % len(candidates)
    order = [*candidates[first:], *candidates[:first]]
    return order[::-1] if backwards else order


def chosen(option: str, names: str, known: Mapping[str, _Candidate]) -> list[_Candidate]:
    """Return the candidates that a comma-separated list names.

    Raises:
        InvalidInput: a name is unknown.
    """
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if name not in known:
            raise InvalidInput(option, name, f"some of {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(wanted)]


@dataclass(frozen=True, slots=True)
class Spread:
    """Median, minimum and maximum of some rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Return the spread of at least one value."""
        ordered = sorted(values)
        return cls(median(ordered), ordered[0], ordered[-1])

    def __str__(self) -> str:
        """``0.210 (0.198 to 0.221)``; for one round only the figure."""
        if self.low == self.high:
            return figure(self.median)
        return f"{figure(self.median)} ({figure(self.low)} to {figure(self.high)})"


def ratios(ones: Mapping[int, float], others: Mapping[int, float]) -> Spread | None:
    """Return the ratios within the rounds that both have; None if there is no such round.

    A slow minute of the machine affects both candidates of a round, whereas a ratio of medians may
    compare one's slow minute with the other's fast one.
    """
    both = [ones[number] / others[number] for number in ones if number in others]
    return Spread.of(both) if both else None


def figure(value: float) -> str:
    """Format with three significant digits: 5,230, 34.1, 0.169."""
    magnitude = int(f"{value:e}".partition("e")[2]) if value else 0
    places = 2 - magnitude
    return f"{round(value, places):,.{max(0, places)}f}"


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; its first column is text, the others numbers."""
    rule = [":---", *["---:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rule, *rows))
