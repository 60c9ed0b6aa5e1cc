"""Builds what a cluster needs to run the Spark job: ``make spark-bundle``.

    deps.zip                 the libraries, with native code for the cluster's machines
    app.zip                  the packages compactor and spark
    compact_partitions.py    the script for spark-submit, of a run's oversized partitions
    compact_run.py           the script of a whole run

The cluster provides Spark. Versions and hashes of the libraries are those in
requirements.txt; builds are reproducible.
"""

from __future__ import annotations

import argparse
import hashlib
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor.errors import CompactorError, InvalidInput
from compactor_dev import REPOSITORY
from compactor_dev.bundling import (
    ARCHITECTURES,
    NOT_IMPORTED,
    Machine,
    build_application,
    build_dependencies,
    write_zip,
)

LOCK = REPOSITORY / "requirements.txt"
# Imports of compactor and spark. Includes botocore, which EMR does not guarantee.
REQUIREMENTS = (
    "botocore",
    "isal",
    "jinja2",
    "msgspec",
    "pyarrow",
    "pycurl",
    "urllib3",
    "zlib-ng",
    "zstandard",
)
_JOB = REPOSITORY / "spark" / "compactor_spark"
_FUNCTIONS = REPOSITORY / "functions"
PACKAGES = (_FUNCTIONS / "compactor", _FUNCTIONS / "compactor_tables", _JOB)
# Used only by Lambda functions.
WITHOUT = (_FUNCTIONS / "compactor" / "invocation.py", _FUNCTIONS / "compactor_tables" / "handlers")
SCRIPT, RUN_SCRIPT = _JOB / "compact_partitions.py", _JOB / "compact_run.py"

# Spark unpacks the archive under this name in the working directory of each process. Libraries with
# native code cannot be imported from an archive, so --py-files does not suffice for them.
_UNPACKED = "deps"
_DRIVER = {
    "emr": "spark.yarn.appMasterEnv.PYTHONPATH",
    "emr_serverless": "spark.emr-serverless.driverEnv.PYTHONPATH",
}


@dataclass(frozen=True, slots=True)
class SparkBundle:
    """The paths of the parts of a bundle."""

    dependencies: Path
    application: Path
    script: Path
    run_script: Path

    @property
    def paths(self) -> tuple[Path, Path, Path, Path]:
        """All paths."""
        return self.dependencies, self.application, self.script, self.run_script


def build_spark_bundle(out: Path, machine: Machine, lock: Path = LOCK) -> SparkBundle:
    """Build all parts, replacing those of an earlier build.

    Args:
        out: the output directory; created if it does not exist.
        machine: the machines of the cluster.
        lock: has versions and hashes.

    Raises:
        BundleError: the libraries could not be installed.
    """
    scripts = (out / SCRIPT.name, out / RUN_SCRIPT.name)
    bundle = SparkBundle(out / "deps.zip", out / "app.zip", *scripts)
    with tempfile.TemporaryDirectory(prefix="compactor-bundle-") as directory:
        libraries = Path(directory, "deps")
        build_dependencies(lock, libraries, machine, roots=REQUIREMENTS, drop=NOT_IMPORTED)
        write_zip(libraries, bundle.dependencies)
    build_spark_application(bundle.application)
    shutil.copyfile(SCRIPT, bundle.script)
    shutil.copyfile(RUN_SCRIPT, bundle.run_script)
    return bundle


def build_spark_application(archive: Path) -> None:
    """Write ``app.zip`` only; needs only this checkout."""
    with tempfile.TemporaryDirectory(prefix="compactor-bundle-") as directory:
        build_application(PACKAGES, Path(directory), WITHOUT)
        write_zip(Path(directory), archive)


def submit_arguments(dependencies: str, application: str, engine: str = "emr") -> list[str]:
    """Return the spark-submit options that make a bundle importable on a cluster.

    Args:
        dependencies: path or URI of ``deps.zip``.
        application: path or URI of ``app.zip``.
        engine: ``emr`` or ``emr_serverless``, as in the field spark_engine.

    Raises:
        InvalidInput: no such engine.
    """
    if engine not in _DRIVER:
        raise InvalidInput("spark_engine", engine, " or ".join(_DRIVER))
    options = ["--archives", f"{dependencies}#{_UNPACKED}", "--py-files", application]
    for name in ("spark.executorEnv.PYTHONPATH", _DRIVER[engine]):
        options += ["--conf", f"{name}=./{_UNPACKED}"]
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Build a bundle and print its parts; returns the exit code."""
    args = _parser().parse_args(arguments)
    try:
        bundle = build_spark_bundle(args.out, Machine(args.architecture, args.python))
    except (CompactorError, OSError) as error:
        print(f"spark_bundle: {' '.join(str(error).split())}", file=sys.stderr)
        return 2 if isinstance(error, InvalidInput) else 1
    for path in bundle.paths:
        content = path.read_bytes()
        print(f"{hashlib.sha256(content).hexdigest()}  {len(content):>12,} bytes  {path}")
    for engine, name in (("emr", "EMR"), ("emr_serverless", "EMR Serverless")):
        options = submit_arguments(bundle.dependencies.name, bundle.application.name, engine)
        run = [bundle.run_script.name, "s3://SOURCE/", "s3://DEST/"]
        print(f"\n{name}, with all on S3:\n  {shlex.join(['spark-submit', *options, *run])}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="spark_bundle", description="Build what a cluster needs to run the Spark job."
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("build", "spark"),
        metavar="DIR",
        help="output directory (%(default)s)",
    )
    parser.add_argument(
        "--architecture",
        choices=ARCHITECTURES,
        default="arm64",
        help="architecture of the cluster's machines (%(default)s)",
    )
    parser.add_argument(
        "--python",
        default="3.11",
        metavar="VERSION",
        help="Python of the cluster; native code is for one minor version (%(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
