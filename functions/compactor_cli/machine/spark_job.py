"""The Spark job of a local run, with the installed pyspark."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from compactor.errors import InvalidInput
from compactor_cli.machine.installed import spark_script
from compactor_cli.machine.processes import Child
from compactor_cli.machine.spark_submit import (
    SparkMissing,
    find_spark,
    local_command,
    local_environment,
)

# For killing the job's processes, and deleting its scratch data.
END_SECONDS = 10.0
#: Progress line until the job sends its first one, which takes several seconds.
STARTING = "starting"


def job_arguments(run_id: str, run_uri: str) -> Sequence[str]:
    """Return the command line of the workflow's step, without cluster options."""
    return (
        "spark-submit",
        "--name",
        f"s3-compactor-{run_id}",
        "--conf",
        "spark.driver.memory=4g",
        "--conf",
        "spark.driver.maxResultSize=0",
        "--conf",
        "spark.speculation=true",
        str(spark_script()),
        "--run",
        run_uri,
    )


def order_arguments(run_id: str, order_uri: str) -> Sequence[str]:
    """Return the command line for an order of table maintenance."""
    return (
        "spark-submit",
        "--name",
        f"s3-compactor-tables-{run_id}",
        "--conf",
        "spark.driver.memory=4g",
        "--conf",
        "spark.driver.maxResultSize=0",
        str(spark_script("maintain_tables.py")),
        "--order",
        order_uri,
    )


def follow(job: Child, on_line: Callable[[str], None]) -> int:
    """Pass progress lines on until the job ends; returns its exit code, -1 if it was killed."""
    try:
        while "code" not in (message := job.receive()):
            on_line(message["line"])
        return int(message["code"])
    except (EOFError, OSError, ValueError):
        return -1


class LocalSpark:
    """Implements :class:`compactor.orchestration.workers.Spark` with local Spark.

    Args:
        environment: of the job, with the endpoint of its S3.
        log: receives what the job prints.
    """

    def __init__(self, environment: Mapping[str, str], log: IO[bytes] | int) -> None:
        self._environment = environment
        self._log = log
        self._lock = threading.Lock()
        self._job: Child | None = None
        self._stopped = False

    def run(self, run_id: str, run_uri: str, on_line: Callable[[str], None]) -> str:
        """Run the job to its end; returns why it failed, empty on success."""
        return self.submit(job_arguments(run_id, run_uri), on_line)

    def submit(self, arguments: Sequence[str], on_line: Callable[[str], None]) -> str:
        """Run any spark-submit job to its end; returns why it failed, empty on success."""
        try:
            spark = find_spark()
            command = local_command(arguments, spark, self._environment)
        except (SparkMissing, InvalidInput) as error:
            return str(error)
        job = self._begin()
        if job is None:
            return "the run was stopped"
        on_line(STARTING)
        try:
            job.send(
                {
                    "command": command,
                    "environment": local_environment(self._environment, spark),
                }
            )
            code = follow(job, on_line)
        except EOFError:
            code = -1
        finally:
            job.end(END_SECONDS)
        # The job's own error on S3, if any, has more.
        return f"exit status {code}; see the log" if code else ""

    def stop(self) -> None:
        """Kill a running job with all its processes; starts no other job."""
        with self._lock:
            self._stopped = True
            job = self._job
        if job is not None:
            job.end(END_SECONDS)

    def _begin(self) -> Child | None:
        with self._lock:
            if self._stopped:
                return None
            self._job = Child(
                "compactor_cli.machine.spark_process",
                environment={**os.environ, **self._environment},
                log=self._log,
                detached=True,
            )
            return self._job
