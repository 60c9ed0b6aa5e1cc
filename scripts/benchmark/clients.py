"""Who is measured, and how each is started."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compactor.errors import InvalidInput
from scripts.benchmark.tools import Tools
from scripts.local.child import read_peak_bytes

WORKER, SEED = "worker", "seed"


@dataclass(frozen=True, slots=True)
class Started:
    """What it took a Python client until it could begin: the interpreter and its imports."""

    start_seconds: float
    start_cpu_seconds: float

    @classmethod
    def now(cls) -> Started:
        """Since this process began."""
        ticks = Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        # Field 22 of the whole line, in clock ticks since the machine booted.
        began = int(ticks[19]) / os.sysconf("SC_CLK_TCK")
        return cls(time.clock_gettime(time.CLOCK_BOOTTIME) - began, time.process_time())


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


Command = Callable[[Task, Tools], list[str]]


@dataclass(frozen=True, slots=True)
class Client:
    """One way to join objects.

    Attributes:
        name: as ``--clients`` takes it.
        title: for people.
        sample: how many objects it gets at most, because it reads so few a second; None for
            all. Speeds are per object, so that they compare.
    """

    name: str
    title: str
    command: Command
    sample: int | None = None

    def available(self, tools: Tools) -> bool:
        """Whether its program is there."""
        if self.name.startswith("s5cmd"):
            return tools.s5cmd is not None
        return self.name != "aws" or tools.aws is not None


def _worker(task: Task, tools: Tools) -> list[str]:
    return [sys.executable, "-m", "scripts.benchmark.worker", task.to_json()]


def _naive(way: str) -> Command:
    return lambda task, tools: [
        sys.executable,
        "-m",
        "scripts.benchmark.naive",
        way,
        task.to_json(),
    ]


def _s5cmd(task: Task, tools: Tools) -> list[str]:
    program = f"{shlex.quote(str(tools.s5cmd))} --endpoint-url {task.endpoint_url}"
    source = shlex.quote(f"s3://{task.source_bucket}/{task.source_prefix}*")
    target = shlex.quote(f"s3://{task.bucket}/{task.output_key}")
    return ["/bin/sh", "-c", f"{program} cat {source} | {program} pipe {target}"]


def _aws(task: Task, tools: Tools) -> list[str]:
    program = f"{shlex.quote(str(tools.aws))} --endpoint-url {task.endpoint_url} s3 cp"
    source = shlex.quote(f"s3://{task.source_bucket}/{task.source_prefix}")
    target = shlex.quote(f"s3://{task.bucket}/{task.output_key}")
    scratch = Path(task.scratch)
    parts, joined = shlex.quote(str(scratch / "parts")), shlex.quote(str(scratch / "joined"))
    script = f"""{program} --only-show-errors --recursive {source} {parts} &&
cat {parts}/* >{joined} && {program} --only-show-errors {joined} {target}"""
    return ["/bin/sh", "-c", script]


_ALL = (
    Client(WORKER, "**s3-compactor worker**", _worker),
    Client(SEED, "one object at a time (boto3)", _naive("seed"), 300),
    Client("boto3", "boto3, 64 threads", _naive("boto3"), 5_000),
    Client("smart-open", "smart-open", _naive("smart-open"), 300),
    Client("s5cmd", "s5cmd cat, pipe", _s5cmd, 300),
    Client("aws", "aws s3 cp, cat", _aws, 2_000),
)

CLIENTS: Mapping[str, Client] = {one.name: one for one in _ALL}


def named(names: str) -> tuple[Client, ...]:
    """The clients that a comma-separated list names.

    Raises:
        InvalidInput: a name is unknown.
    """
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if name not in CLIENTS:
            raise InvalidInput("--clients", name, f"some of {', '.join(CLIENTS)}")
    return tuple(CLIENTS[name] for name in wanted)
