"""Adapts the command line of a Spark step to this machine.

Removes arguments that only apply to a cluster: the master, the size of its machines, and shipped
zip files.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from compactor.table_formats.installed import install_command
from compactor_cli.machine.installed import import_roots, spark_script
from compactor_cli.machine.processes import python_environment
from compactor_cli.machine.spark_jars import jar_settings

MASTER_VARIABLE = "COMPACTOR_SPARK_MASTER"
# Spark 4 needs 17 or later; from 23 on, Java rejects calls that Hadoop makes.
_JAVAS = range(17, 23)
_FLAGS = frozenset({"--verbose", "-v", "--supervise"})
_NOT_HERE = frozenset({"--deploy-mode", "--master", "--archives", "--py-files"})
# Settings of a cluster's machines, zip files and environments. An executor of local-cluster that
# requests more memory than its worker has would never start.
_CLUSTER_CONF = re.compile(
    r"spark\.(executor\.|executorEnv\.|dynamicAllocation\.|driver\.(cores|memoryOverhead)|yarn\."
    r"|emr-serverless\.|jars=)"
)
_LOCAL_CONF = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "WARN",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_NOTHING: Mapping[str, str] = MappingProxyType({})


class SparkMissing(Exception):
    """Spark cannot run on this machine; the message says what to install.

    Args:
        what: what is missing, such as ``no Java on PATH``.
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: install pyspark ({install_command('spark')}) and Java 17 or 21; with"
            ' spark_engine "none" oversized partitions are skipped'
        )
        self.what = what


@dataclass(frozen=True, slots=True)
class SparkHere:
    """The local Spark installation.

    Attributes:
        home: the directory of the installed pyspark.
        java: the java executable.
    """

    home: Path
    java: Path

    @property
    def spark_submit(self) -> Path:
        """Path of spark-submit."""
        return self.home / "bin" / "spark-submit"


@cache
def find_spark() -> SparkHere:
    """Find the installed pyspark, and a Java for it.

    Raises:
        SparkMissing: one is missing, or Spark does not run on this Java.
    """
    # Found without importing it, which takes a second and is reserved to spark/.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkMissing("no pyspark here")
    home = Path(spec.origin).parent
    if not (home / "bin" / "spark-submit").is_file():
        raise SparkMissing("no spark-submit in the pyspark here")
    java = _java()
    version = _java_version(java)
    if version not in _JAVAS:
        raise SparkMissing(f"Java {version} found, but Spark runs on 17 and 21")
    return SparkHere(home, java)


def _java() -> Path:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if not found or not Path(found).is_file():
        where = f"in JAVA_HOME ({home})" if home else "on PATH"
        raise SparkMissing(f"no Java {where}")
    return Path(found)


def _java_version(java: Path) -> int:
    """Return the major version: 8 for "1.8.0_292", 17 for "17.0.15"."""
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    if match is None:
        raise SparkMissing(f"cannot determine the version of {java}")
    return int(match[1])


def local_command(
    arguments: Sequence[str], spark: SparkHere, environment: Mapping[str, str] = _NOTHING
) -> list[str]:
    """Return the local command for the arguments of a step.

    Args:
        arguments: as command-runner.jar takes them: ``spark-submit``, its options, the script,
            the script's arguments.
        spark: the local Spark.
        environment: of the job.

    Raises:
        ValueError: the arguments are not those of spark-submit.
        InvalidInput: the directory of jars in the environment is empty.
    """
    options, script, rest = _split(arguments)
    kept = [part for name, value in options if _kept(name, value) for part in (name, value) if part]
    command = [str(spark.spark_submit), *kept, *local_options(environment)]
    return [*command, _local_script(script), *rest]


def local_options(environment: Mapping[str, str] = _NOTHING) -> list[str]:
    """Return the spark-submit options common to all local Spark jobs.

    Args:
        environment: of the job.

    Raises:
        InvalidInput: the directory of jars in the environment is empty.
    """
    found = ["--master", _master()]
    for name, value in {
        **_LOCAL_CONF,
        **jar_settings(environment),
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(import_roots()),
    }.items():
        found += ["--conf", f"{name}={value}"]
    return found


def local_environment(base: Mapping[str, str], spark: SparkHere) -> dict[str, str]:
    """Return the environment of spark-submit: the engine's, with its S3, and Python's."""
    return {
        **python_environment(base, *import_roots()),
        "SPARK_HOME": str(spark.home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(spark.java.resolve().parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Modules in the working directory must not be imported.
        "PYTHONSAFEPATH": "1",
    }


def _master() -> str:
    # Plain local[N] would not retry a failed task.
    return os.environ.get(MASTER_VARIABLE) or f"local[{os.cpu_count() or 1},4]"


def _split(arguments: Sequence[str]) -> tuple[list[tuple[str, str]], str, list[str]]:
    """Split into options with values (empty for flags), the script, and its arguments."""
    if "spark-submit" not in arguments:
        raise ValueError("the step does not run spark-submit")
    words = list(arguments[arguments.index("spark-submit") + 1 :])
    options: list[tuple[str, str]] = []
    while words and words[0].startswith("-"):
        name, equals, value = words.pop(0).partition("=")
        if not equals and name not in _FLAGS:
            if not words:
                raise ValueError(f"spark-submit's {name} has no value")
            value = words.pop(0)
        options.append((name, value))
    if not words:
        raise ValueError("spark-submit has no script to run")
    return options, words[0], words[1:]


def _kept(name: str, value: str) -> bool:
    if name in {"--conf", "-c"}:
        return not _CLUSTER_CONF.match(value)
    return name not in _NOT_HERE


def _local_script(script: str) -> str:
    """Return this installation's script in place of one on S3; other paths are unchanged."""
    if not script.startswith("s3://"):
        return script
    return str(spark_script(script.rpartition("/")[2]))
