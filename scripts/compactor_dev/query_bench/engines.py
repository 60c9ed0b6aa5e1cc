"""Engines as processes: each by itself, with as many threads as it takes, or as it is told."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from compactor.errors import InvalidInput, TransientStoreError
from compactor_cli.console import print_error

#: What the fastest readers of a cluster do at once, and what many engines can be told.
MANY_THREADS = 32
_LOCK = Path(__file__).with_name("requirements.txt")
_HOST = Path(__file__).with_name("host.py")
_END_SECONDS = 5.0
_LIMIT_SECONDS = 900.0
#: Those that are fetched; Arrow, which reads JSON one object after the other, is here already.
OF_LOCK = ("duckdb", "chdb", "polars")
#: What this project's own tests need has it.
_HERE = "arrow"
ENGINES = (*OF_LOCK, _HERE)


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine with so many threads.

    Attributes:
        name: as ``--engines`` takes it.
        threads: 0 for as many as it takes by itself.
    """

    name: str
    threads: int = 0

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.name}, {self.threads or 'default'}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine answered.

    Attributes:
        rows: its rows.
        seconds: it took, by its own clock.
        error: why there are none; empty when there are.
    """

    rows: list[list[Any]]
    seconds: float
    error: str = ""


class RunningEngine:
    """An engine's process.

    Args:
        engine: which.
        python: that has it.
        endpoint_url: of the S3 that it reads.
        log: receives what it prints.

    Raises:
        TransientStoreError: it did not start.
    """

    def __init__(self, engine: Engine, python: str, endpoint_url: str, log: IO[bytes]) -> None:
        self.engine = engine
        without = ("AWS_", "PYTHONPATH", "POLARS_")
        kept = {name: v for name, v in os.environ.items() if not name.startswith(without)}
        self._process = subprocess.Popen(
            [python, "-I", str(_HOST), engine.name, str(engine.threads)],
            env={**kept, "QUERY_ENDPOINT": endpoint_url, "AWS_EC2_METADATA_DISABLED": "true"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        self.version = str(self._told()["version"])

    def ask(self, query: str, places: Sequence[str], *, parquet: bool, needle: str) -> Answer:
        """One query, on a connection of its own.

        Raises:
            TransientStoreError: the process has ended.
        """
        order = {"query": query, "places": list(places), "parquet": parquet, "needle": needle}
        stream = cast(IO[str], self._process.stdin)
        stream.write(json.dumps(order) + "\n")
        stream.flush()
        told = self._told()
        return Answer(told.get("rows", []), float(told["seconds"]), told.get("error", ""))

    def end(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            cast(IO[str], self._process.stdin).close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _told(self) -> Mapping[str, Any]:
        # An engine that waits for ever is ended, which is told as its end.
        timer = threading.Timer(_LIMIT_SECONDS, self._process.kill)
        timer.start()
        try:
            line = cast(IO[str], self._process.stdout).readline()
        finally:
            timer.cancel()
        if not line:
            self._process.kill()
            raise TransientStoreError(
                f"{self.engine.title}: its process has ended, or took too long"
            )
        return cast(Mapping[str, Any], json.loads(line))


@contextlib.contextmanager
def running(
    engines: Sequence[Engine], endpoint_url: str, directory: Path
) -> Iterator[list[RunningEngine]]:
    """Processes of all these for the length of the block."""
    pythons = {name: python_of(name, directory) for name in {one.name for one in engines}}
    with (directory / "engines.log").open("ab") as log:
        started: list[RunningEngine] = []
        try:
            for one in engines:
                started.append(RunningEngine(one, pythons[one.name], endpoint_url, log))
            yield started
        finally:
            for process in started:
                process.end()


def python_of(name: str, directory: Path) -> str:
    """A Python that has the engine; those of the lock are installed below ``directory``, once.

    Raises:
        InvalidInput: they cannot be installed.
    """
    if name == _HERE:
        return sys.executable
    home = directory / "engines"
    python = home / "bin" / "python"
    done = home / "done"
    lock = _LOCK.read_text("utf-8")
    if not done.is_file() or done.read_text("utf-8") != lock:
        print_error("Fetching DuckDB, chDB and Polars into build/ (once) ...")
        uv = [sys.executable, "-m", "uv"]
        made = [*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(home)]
        wanted = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(_LOCK)]
        filled = [*uv, "pip", "install", "--quiet", "--python", str(python), *wanted]
        for command in (made, filled):
            tried = subprocess.run(command, capture_output=True, text=True, check=False)
            if tried.returncode:
                why = " ".join(tried.stderr.split())[-300:]
                raise InvalidInput("--engines", name, f"{_HERE}, or what pip can install ({why})")
        done.write_text(lock, "utf-8")
    return str(python)


def chosen(names: str, threads: Sequence[int]) -> list[Engine]:
    """The engines that a comma-separated list names, each with all these threads.

    Raises:
        InvalidInput: one is unknown.
    """
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if name not in ENGINES:
            raise InvalidInput("--engines", name, f"some of {', '.join(ENGINES)}")
    return [Engine(name, count) for name in dict.fromkeys(wanted) for count in threads]
