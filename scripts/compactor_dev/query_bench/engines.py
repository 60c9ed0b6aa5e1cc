"""Engines as processes: each by itself, with as many threads as it takes, or as it is told."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from compactor.errors import InvalidInput, TransientStoreError
from compactor_cli.console import print_error
from compactor_cli.local.spark_submit import SparkMissing, find_spark
from compactor_dev import REPOSITORY, spark_jars
from compactor_dev.query_bench.asking import Answer, Asked, Engine, Question
from compactor_dev.query_bench.trino_engine import TrinoEngine
from compactor_dev.trino import build, server

#: What the fastest readers of a cluster do at once, and what many engines can be told.
MANY_THREADS = 32
_LOCK = Path(__file__).with_name("requirements.txt")
# In a Python that has nothing of this project, and takes nothing of this environment.
_HOST = (
    f"import runpy, sys; sys.path.insert(0, {str(REPOSITORY / 'scripts')!r});"
    " runpy.run_module('compactor_dev.query_bench.host', run_name='__main__', alter_sys=True)"
)
_END_SECONDS = 5.0
_LIMIT_SECONDS = 900.0
#: Those of the lock, which are asked where nobody says otherwise.
OF_LOCK = ("duckdb", "chdb", "polars")
SPARK, TRINO = "spark", "trino"
#: What this project needs itself has them. Arrow reads JSON one object after the other.
_HERE = ("arrow", SPARK)
ENGINES = (*OF_LOCK, *_HERE, TRINO)


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
            [python, "-I", "-c", _HOST, engine.name, str(engine.threads)],
            env={
                **kept,
                "QUERY_ENDPOINT": endpoint_url,
                "QUERY_JARS": ",".join(map(str, spark_jars.s3a() if engine.name == SPARK else ())),
                "AWS_EC2_METADATA_DISABLED": "true",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        self.version = str(self._told()["version"])

    def ask(self, question: Question) -> Answer:
        """See :meth:`Asked.ask`."""
        layout, query = question.layout, question.query
        order = {
            "query": query,
            "places": layout.places(question.given, query),
            "parquet": layout.parquet,
            "needle": question.needle,
            "trails": question.given.trails,
            "documents": layout.documents(question.given, query),
        }
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
    engines: Sequence[Engine], places: server.Places, directory: Path
) -> Iterator[list[Asked]]:
    """All these for the length of the block.

    Args:
        engines: which.
        places: what they read; of the catalog, those that have a client of it.
        directory: for what they need, and what they print.

    Raises:
        InvalidInput: one cannot be had on this machine.
        TransientStoreError: one did not start.
    """
    pythons = {one.name: python_of(one.name, directory) for one in engines if one.name != TRINO}
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((directory / "engines.log").open("ab"))
        started: list[Asked] = []
        for one in engines:
            if one.name == TRINO:
                own = directory / f"trino-{one.threads}"
                running = server.running(build.fetch(), places, own, one.threads)
                started.append(TrinoEngine(one, stack.enter_context(running)))
                continue
            process = RunningEngine(one, pythons[one.name], places.s3_url, log)
            stack.callback(process.end)
            started.append(process)
        yield started


def python_of(name: str, directory: Path) -> str:
    """A Python that has the engine; those of the lock are installed below ``directory``, once.

    Raises:
        InvalidInput: they cannot be installed, or Spark does not run here.
    """
    if name == SPARK:
        try:
            find_spark()
        except SparkMissing as error:
            raise InvalidInput("--engines", name, f"other engines, or a Spark ({error})") from None
    if name in _HERE:
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
                raise InvalidInput("--engines", name, f"arrow, or what pip can install ({why})")
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
