"""Options for the tests' Java processes: there are dozens, and each runs for seconds.

    python -m tests.support.java      saves Spark's loaded classes below build/spark, once

Recompiling code to make it faster in the long run, and the threads of a garbage collector for large
heaps, take half of such a process's time; loading Spark's classes takes a third of the other half.
Whenever the classes outgrow the configured metaspace, Java collects the whole heap: a twentieth.
Java ignores a file of saved classes that it cannot use.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_USED = Path(__file__).with_name("spark_used.py")
_BUILD_SECONDS = 600
_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:MetaspaceSize=256m"


def _digest() -> str:
    """Return a digest of all that the file depends on, except Java, which checks that itself."""
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        spark = "none"
    made_of = f"{spark} {_ROOT} {sys.prefix} {_USED.read_text(encoding='utf-8')}"
    return hashlib.sha256(made_of.encode()).hexdigest()[:12]


CLASSES = _ROOT / "build" / "spark" / f"classes-{_digest()}.jsa"
_READY = f" -Xlog:disable -Xlog:all=error:stderr -XX:SharedArchiveFile={CLASSES}"
SHORT_LIVED = _QUICK + (_READY if CLASSES.exists() else "")

#: Variables of Spark's programs: the driver, the class path launcher, masters and workers.
ENVIRONMENT: Mapping[str, str] = {
    "SPARK_SUBMIT_OPTS": SHORT_LIVED,
    "SPARK_LAUNCHER_OPTS": _QUICK,
    "SPARK_DAEMON_JAVA_OPTS": SHORT_LIVED,
}


def main() -> int:
    """Create the file if it does not exist and Spark runs here."""
    from compactor_cli.machine.spark_submit import SparkMissing, find_spark

    try:
        spark = find_spark()
    except SparkMissing:
        return 0
    if CLASSES.exists():
        return 0
    CLASSES.parent.mkdir(parents=True, exist_ok=True)
    made = CLASSES.with_suffix(f".{os.getpid()}")
    environment = {
        **os.environ,
        "SPARK_SUBMIT_OPTS": f"{_QUICK} -XX:ArchiveClassesAtExit={made}",
        "SPARK_LAUNCHER_OPTS": _QUICK,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    command = [str(spark.spark_submit), "--master", "local[2]", str(_USED)]
    subprocess.run(command, env=environment, check=True, timeout=_BUILD_SECONDS)
    # Renamed into place, so that other processes find all of it or nothing.
    made.replace(CLASSES)
    return 0


if __name__ == "__main__":
    sys.exit(main())
