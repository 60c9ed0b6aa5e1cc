"""Shared by both scenarios: measured processes, the order of rounds, and figures."""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple, TypeVar

from compactor.errors import TransientStoreError
from compactor_dev import IMPORT_ROOTS

_Candidate = TypeVar("_Candidate")


class Process(NamedTuple):
    """A finished process.

    Attributes:
        started: seconds of the monotonic clock, which all processes share.
        seconds: wall time.
        cpu_seconds: in user space and in the kernel, including the children it waited for.
        output: the lines that it printed.
    """

    started: float
    seconds: float
    cpu_seconds: float
    output: Sequence[str]

    @property
    def result(self) -> dict[str, Any]:
        """The JSON document in its last line."""
        return dict(json.loads(self.output[-1]))


def run(
    command: Sequence[str], variables: Mapping[str, str], roots: Sequence[str] = IMPORT_ROOTS
) -> Process:
    """Run a process to its end.

    Args:
        command: the command.
        variables: added to the environment of this process.
        roots: directories from which it imports.

    Raises:
        TransientStoreError: it failed; the message has its last output.
    """
    environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(roots)}
    cpu_before, started = _cpu_of_children(), time.monotonic()
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    lines = done.stdout.splitlines()
    if done.returncode:
        raise TransientStoreError(f"{' '.join(command)[:80]} failed: {' '.join(lines[-3:])}")
    return Process(started, seconds, _cpu_of_children() - cpu_before, lines)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def in_turn(candidates: Sequence[_Candidate], number: int) -> Sequence[_Candidate]:
    """Return the order of one round, numbered from 1: AB, BA, BA, AB, and so on."""
    return candidates[::-1] if number % 4 in (2, 3) else candidates


def spread(values: Iterable[float]) -> str:
    """Return median, minimum and maximum, as ``0.210 (0.198 to 0.221)``; of one value the value."""
    ordered = sorted(values)
    middle = figure(median(ordered))
    if len(ordered) == 1:
        return middle
    return f"{middle} ({figure(ordered[0])} to {figure(ordered[-1])})"


def ratios(numerators: Iterable[float], denominators: Iterable[float]) -> str:
    """Return the spread of the ratios within the rounds.

    A slow minute of the machine affects both candidates of a round, whereas a ratio of medians may
    compare the slow minute of the first with a fast minute of the second.
    """
    return spread(a / b for a, b in zip(numerators, denominators, strict=True))


def figure(value: float) -> str:
    """Format with three significant digits: 5,230, 34.1, 0.169."""
    places = 2 - math.floor(math.log10(value)) if value else 0
    return f"{round(value, places):,.{max(0, places)}f}"


def table_row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def table_head(heads: Sequence[str]) -> str:
    """Return the first two rows of a Markdown table: text in its first column, then numbers."""
    return "\n".join((table_row(heads), table_row([":---", *["---:"] * (len(heads) - 1)])))
