"""A Spark of this machine that is asked about files, for as long as the block that wants it.

Run as a module (``python -m compactor_local.asked_spark NAME``) it is the other end: it answers
orders on standard input by the ``Records`` of the module NAME, the only one that knows Spark.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from compactor_machine.child import Child
from compactor_machine.spark_submit import find_spark, local_environment, local_options
from compactor_machine.wire import answer_stream, receive, send

_THIS, _MODULE = "compactor_local.asked_spark", "compactor_spark.ask_records"
_START_SECONDS, _ANSWER_SECONDS = 300.0, 1_800.0
_END_SECONDS = 10.0
_MOST_WORDS = 200


class SparkUnable(Exception):
    """Spark did not answer; says why in one line."""


class AskedSpark:
    """A running one.

    Args:
        child: the process, which has told its version.
        version: that.
        question: what it is asked.
    """

    def __init__(self, child: Child, version: str, question: str) -> None:
        self._child = child
        self.version, self.question = version, question

    def answer(
        self, places: Sequence[tuple[str, str, str]], headers: Sequence[tuple[str, str]]
    ) -> list[tuple[str, int, str]]:
        """Partition, records, and the sum of their checksums.

        Args:
            places: file, how it is read, partition.
            headers: partition and line of what is no record.

        Raises:
            SparkUnable: it cannot read them, or has ended.
        """
        try:
            self._child.send({"places": list(places), "headers": list(headers)})
            told = self._child.receive(_ANSWER_SECONDS)
        except (EOFError, TimeoutError):
            raise SparkUnable("it has ended, or took too long") from None
        if "error" in told:
            raise SparkUnable(told["error"])
        return [(path, records, checksum) for path, records, checksum in told["rows"]]


@contextlib.contextmanager
def asked_spark(environment: Mapping[str, str], log: IO[bytes] | int) -> Iterator[AskedSpark]:
    """Start one, and end it with all its processes.

    Args:
        environment: of this process.
        log: receives what it prints.

    Raises:
        SparkMissing: Spark cannot run on this machine.
        SparkUnable: it did not start.
    """
    spark = find_spark()
    with tempfile.TemporaryDirectory(prefix="compactor-spark-") as scratch:
        child = Child(
            _THIS,
            [_MODULE],
            environment={
                **local_environment(environment, spark),
                "PYSPARK_SUBMIT_ARGS": shlex.join([*local_options(), "pyspark-shell"]),
                "SPARK_LOCAL_DIRS": scratch,
            },
            log=log,
            detached=True,
        )
        try:
            told = child.receive(_START_SECONDS)
            yield AskedSpark(child, told["version"], told["question"])
        except (EOFError, TimeoutError):
            raise SparkUnable("it has ended before it could be asked") from None
        finally:
            child.end(_END_SECONDS)
            # Java and the Python workers, where they have not gone with it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)


def main() -> None:
    """Answer orders until whoever gives them is gone."""
    answers = answer_stream()
    # Spark leaves some of its scratch data where it was started.
    os.chdir(os.environ["SPARK_LOCAL_DIRS"])
    records = importlib.import_module(sys.argv[1]).Records()
    send(answers, {"version": records.version, "question": records.question})
    while (order := receive(sys.stdin.buffer)) is not None:
        places = [tuple(one) for one in order["places"]]
        headers = [tuple(one) for one in order["headers"]]
        try:
            told = {"rows": records.answer(places, headers)}
        except Exception as error:
            told = {"error": _told(error)}
        send(answers, told)


def _told(error: Exception) -> str:
    """Its last line: what a Python worker says stands below a page of Java's."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if "Error: " in line and not line.startswith(("at ", "org."))]
    return (said or lines or [type(error).__name__])[0][:_MOST_WORDS]


if __name__ == "__main__":
    main()
