"""A small standalone cluster: a master, and workers under host names of their own.

local-cluster gives all its workers one host name, and Spark runs no task a second time on the
host where it runs already.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor_dev import IMPORT_ROOTS
from tests.spark.job import SPARK_HOME

_URL = re.compile(r"spark://127\.0\.0\.1:\d+")
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_START_SECONDS = 240


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster; ``url`` is what jobs take as their master."""

    url: str
    workers: tuple[subprocess.Popen[bytes], ...]

    def executors(self) -> list[int]:
        """Process ids of the running executors, at most one for each worker."""
        parents = {worker.pid for worker in self.workers}
        return [pid for pid in _processes() if _parent(pid) in parents and _runs(pid, _EXECUTOR)]


def python_workers(driver: int) -> list[int]:
    """Process ids of the Python workers that a local master's driver has running tasks in."""
    daemons = {pid for pid in _processes() if _runs(pid, b"pyspark.daemon")}
    workers = [pid for pid in daemons if _parent(pid) in daemons]
    return [pid for pid in workers if driver in _ancestors(pid)]


def _ancestors(pid: int) -> Iterator[int]:
    while pid := _parent(pid):
        yield pid


def _processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # The name in parentheses may hold blanks.
        return int(status.rpartition(")")[2].split()[1])
    return 0


def _runs(pid: int, program: bytes) -> bool:
    with contextlib.suppress(OSError):
        return program in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _environment() -> Mapping[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(IMPORT_ROOTS),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_NO_DAEMONIZE": "1",
    }


def _launch(log: Path, role: str, *arguments: str) -> subprocess.Popen[bytes]:
    script = str(SPARK_HOME / "bin" / "spark-class")
    name = f"org.apache.spark.deploy.{role.lower()}.{role}"
    with log.open("wb") as stream:
        return subprocess.Popen(
            [script, name, *arguments], env=_environment(), stdout=stream, stderr=stream
        )


def _wait_for(log: Path, pattern: re.Pattern[str]) -> str:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        found = pattern.search(log.read_text(encoding="utf-8", errors="replace"))
        if found:
            return found[0]
        time.sleep(0.1)
    raise AssertionError(f"{pattern.pattern} is not in:\n{log.read_text()[-2000:]}")


@contextlib.contextmanager
def cluster(directory: Path, hosts: Sequence[str]) -> Iterator[Cluster]:
    """Run one worker with one core under each host name, for the length of the block."""
    with contextlib.ExitStack() as stack:

        def launch(log: Path, role: str, *arguments: str) -> subprocess.Popen[bytes]:
            process = _launch(log, role, *arguments)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        log = directory / "master.log"
        launch(log, "Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        url = _wait_for(log, _URL)
        workers = []
        for host in hosts:
            options = ["--host", host, "--webui-port", "0", "--cores", "1", "--memory", "1G"]
            options += ["--work-dir", str(directory / host)]
            workers.append(launch(directory / f"{host}.log", "Worker", *options, url))
        for host in hosts:
            _wait_for(directory / f"{host}.log", re.compile("Successfully registered"))
        yield Cluster(url, tuple(workers))
