"""A local Spark that is kept between runs, and started before the first one."""

from __future__ import annotations

import shlex
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Self

from compactor_machine.child import Child
from compactor_machine.spark_job import END_SECONDS, STARTING, follow, job_arguments
from compactor_machine.spark_submit import (
    SparkMissing,
    find_spark,
    local_command,
    local_environment,
)

# Full compilation, and a collector for large heaps, only pay off in a process that works for many
# minutes.
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_NAME = "kept"


class KeptSpark:
    """Implements :class:`compactor.orchestration.workers.Spark`; one job at a time.

    Args:
        environment: of the jobs, with the endpoint of their S3.
        log: receives what they print.
    """

    def __init__(self, environment: Mapping[str, str], log: IO[bytes] | int) -> None:
        self._environment = environment
        self._log = log
        self._host: Child | None = None
        self._working = threading.Lock()
        self._stopped = False

    def __enter__(self) -> Self:
        self._scratch = tempfile.TemporaryDirectory(prefix="compactor-spark-")
        # The first job reports what is missing.
        with suppress(SparkMissing):
            self._host = self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._scratch.cleanup()

    def run(self, run_id: str, run_uri: str, on_line: Callable[[str], None]) -> str:
        """Run the job to its end; returns why it failed, empty on success."""
        with self._working:
            on_line(STARTING)
            try:
                host = self._started()
                host.send({"arguments": ["--run", run_uri]})
            except SparkMissing as error:
                return str(error)
            except EOFError:
                return "Spark has exited; see the log"
            code = follow(host, on_line)
        return f"exit status {code}; see the log" if code else ""

    def stop(self) -> None:
        """Kill Spark with all its processes; starts no other job."""
        self._stopped = True
        if self._host is not None:
            self._host.end(END_SECONDS)

    def _started(self) -> Child:
        if self._stopped:
            raise EOFError
        if self._host is None:
            self._host = self._start()
        return self._host

    def _start(self) -> Child:
        spark = find_spark()
        _, *options, script, _, _ = local_command(job_arguments(_NAME, "s3://-/"), spark)
        return Child(
            "compactor_local.spark_host",
            [script],
            environment={
                **local_environment(self._environment, spark),
                "PYSPARK_SUBMIT_ARGS": shlex.join([*options, "pyspark-shell"]),
                "SPARK_LOCAL_DIRS": self._scratch.name,
                "SPARK_SUBMIT_OPTS": _JAVA_OPTIONS,
            },
            log=self._log,
            detached=True,
        )
