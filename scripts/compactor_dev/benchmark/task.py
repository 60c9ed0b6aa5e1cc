"""What a client is told, and what it tells; light, because the clients import it."""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compactor_cli.local.child import read_peak_bytes


@dataclass(frozen=True, slots=True)
class Started:
    """What it took a Python client until it could begin: the interpreter and its imports."""

    start_seconds: float
    start_user_seconds: float
    start_kernel_seconds: float

    @classmethod
    def now(cls) -> Started:
        """Since this process began."""
        ticks = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        # Field 22 of the whole line, in clock ticks since the machine booted.
        began = int(ticks[19]) / os.sysconf("SC_CLK_TCK")
        used = resource.getrusage(resource.RUSAGE_SELF)
        seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - began
        return cls(seconds, used.ru_utime, used.ru_stime)


@dataclass(frozen=True, slots=True)
class Task:
    """What a client is to do, in a form that a process takes as its argument.

    Attributes:
        endpoint_url: the lane.
        source_bucket, source_prefix: what to join; the prefix ends in ``/``.
        bucket: where to.
        prefix: below it, in the data prefix, everything is this client's own.
        extension: the end of the output's key.
        scratch: a directory for temporary data.
        settings: fields of the run's input, for the worker alone.
        answer: where a Python client writes what it has to say.
    """

    endpoint_url: str
    source_bucket: str
    source_prefix: str
    bucket: str
    prefix: str
    extension: str
    scratch: str
    settings: Mapping[str, Any]
    answer: str

    @property
    def output_key(self) -> str:
        """Where a client that makes one output puts it."""
        return f"{self.prefix}joined{self.extension}"

    def to_json(self) -> str:
        """The argument."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """The task again."""
        return cls(**json.loads(text))

    def tell(self, started: Started, **more: Any) -> None:
        """Write the client's answer; the last thing it does."""
        told = {**asdict(started), "peak_bytes": read_peak_bytes("/proc/self/status"), **more}
        Path(self.answer).write_text(json.dumps(told), encoding="utf-8")
