"""The command line of a Spark step as this machine can run it.

The step's own arguments are kept but for what only a cluster has: where it runs, how large its
machines are, and what had to be shipped to it.
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

from compactor_machine.child import python_environment
from compactor_machine.extras import install
from compactor_machine.installed import import_roots, spark_script
from compactor_machine.spark_jars import jar_settings

MASTER_VARIABLE = "COMPACTOR_SPARK_MASTER"
# Spark 4 runs on no earlier one; from 23 on Java refuses what Hadoop asks of it.
_JAVAS = range(17, 23)
_FLAGS = frozenset({"--verbose", "-v", "--supervise"})
_NOT_HERE = frozenset({"--deploy-mode", "--master", "--archives", "--py-files"})
# Sizes of the cluster's machines, zip files and environments that only a cluster has. An
# executor of local-cluster that asks for more memory than its worker has never starts.
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
_WHAT_TO_INSTALL = (
    f"install pyspark ({install('spark')}) and Java 17 or 21; with spark_engine"
    ' "none" oversized partitions are left'
)


class SparkMissing(Exception):
    """Spark cannot run on this machine; says what to install.

    Args:
        what: what is missing, such as ``no Java on PATH``.
    """

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: {_WHAT_TO_INSTALL}")
        self.what = what


@dataclass(frozen=True, slots=True)
class SparkHere:
    """The Spark of this machine.

    Attributes:
        home: the directory of the installed pyspark.
        java: the program.
    """

    home: Path
    java: Path

    @property
    def spark_submit(self) -> Path:
        """The program that runs a step."""
        return self.home / "bin" / "spark-submit"


@cache
def find_spark() -> SparkHere:
    """The installed pyspark, and a Java it runs on.

    Raises:
        SparkMissing: there is none, or a Java that Spark does not run on.
    """
    # Found, not imported: only spark/ knows Spark, and importing it takes a second.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkMissing("no pyspark here")
    home = Path(spec.origin).parent
    if not (home / "bin" / "spark-submit").is_file():
        raise SparkMissing("no spark-submit in the pyspark here")
    java = _java()
    version = _java_version(java)
    if version not in _JAVAS:
        raise SparkMissing(f"Java {version} here, and Spark runs on 17 and 21")
    return SparkHere(home, java)


def _java() -> Path:
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if not found or not Path(found).is_file():
        where = f"in JAVA_HOME ({home})" if home else "on PATH"
        raise SparkMissing(f"no Java {where}")
    return Path(found)


def _java_version(java: Path) -> int:
    """The major version: 8 for "1.8.0_292", 17 for "17.0.15"."""
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    if match is None:
        raise SparkMissing(f"no version to be had from {java}")
    return int(match[1])


def local_command(
    arguments: Sequence[str], spark: SparkHere, environment: Mapping[str, str] = _NOTHING
) -> list[str]:
    """What to run for the arguments of a step.

    Args:
        arguments: as command-runner.jar takes them: ``spark-submit``, its options, the script,
            the script's arguments.
        spark: what runs it.
        environment: of the job.

    Raises:
        ValueError: the arguments are not those of spark-submit.
        InvalidInput: the jars that the job needs are not where the environment says.
    """
    options, script, rest = _split(arguments)
    kept = [part for name, value in options if _kept(name, value) for part in (name, value) if part]
    command = [str(spark.spark_submit), *kept, *local_options(environment)]
    return [*command, _local_script(script), *rest]


def local_options(environment: Mapping[str, str] = _NOTHING) -> list[str]:
    """What every Spark of this machine is started with, as spark-submit takes it.

    Args:
        environment: of what it will do.

    Raises:
        InvalidInput: the jars that it needs are not where the environment says.
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
    """The environment of spark-submit: the engine's own, which leads to its S3, and Python's."""
    return {
        **python_environment(base, *import_roots()),
        "SPARK_HOME": str(spark.home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(spark.java.resolve().parents[1]),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # What lies in the working directory is not for Python to import.
        "PYTHONSAFEPATH": "1",
    }


def _master() -> str:
    # Plain local[N] would not try a failed task again.
    return os.environ.get(MASTER_VARIABLE) or f"local[{os.cpu_count() or 1},4]"


def _split(arguments: Sequence[str]) -> tuple[list[tuple[str, str]], str, list[str]]:
    """Options with their values (flags with an empty one), the script, and what follows it."""
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
    """This installation's own script; one that does not lie on S3 stays as it is."""
    if not script.startswith("s3://"):
        return script
    return str(spark_script(script.rpartition("/")[2]))
