"""What runs on other machines: libraries of the lock, and our packages.

    python -m compactor_bundling.bundles    ``make spark-bundle``: what a cluster needs for the job

Everything is built without Docker, for the machine that will run it: libraries are binary wheels,
checked by the hashes of the lock, whatever this machine is. Builds are reproducible.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor.errors import CompactorError, InvalidInput
from compactor_bundling import REPOSITORY

LOCK = REPOSITORY / "requirements.txt"
# In uv's terms. manylinux_2_28 is the oldest with wheels of pycurl, and runs on Amazon Linux 2023:
# Lambda since python3.12, and EMR since 7.
_PLATFORMS = {"arm64": "aarch64-manylinux_2_28", "x86_64": "x86_64-manylinux_2_28"}
ARCHITECTURES = tuple(_PLATFORMS)
# As in pyproject.toml.
_OLDEST_PYTHON = 11
# Parts of pyarrow: Flight, headers for C++, copies of a library under the names that linkers look
# for, and tests: 53 MiB. Without them the bundle fits.
NOT_IMPORTED = (
    "pyarrow/libarrow_flight.so*",
    "pyarrow/libarrow_python_flight.so*",
    "pyarrow/_flight.*",
    "pyarrow/libarrow_python.so",
    "pyarrow/libarrow_python.so.*.*",
    "pyarrow/include*",
    "pyarrow/src",
    "pyarrow/tests",
    "pyarrow/*.pyx",
    "pyarrow/*.px?",
    "fsspec/tests",
)
# What differs between builds: files of each *.dist-info, and scripts, which contain the path of the
# installing Python.
_TRACES = (
    "*.dist-info/RECORD",
    "*.dist-info/INSTALLER",
    "*.dist-info/REQUESTED",
    "*.dist-info/direct_url.json",
    ".lock",
    "bin",
)
# The oldest date in a zip archive, and a mode without surprises.
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100_644 << 16
_UNIX = 3

FUNCTIONS, _JOB = REPOSITORY / "functions", REPOSITORY / "spark" / "compactor_spark"
CORE, TABLES = FUNCTIONS / "compactor", FUNCTIONS / "compactor_tables"
# Imports of compactor and spark. Includes botocore, which EMR does not guarantee.
SPARK_REQUIREMENTS = (
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
SPARK_PACKAGES = (CORE, TABLES, _JOB)
# Used only by Lambda functions.
NOT_FOR_SPARK = (CORE / "invocation.py", TABLES / "handlers")
SCRIPT, RUN_SCRIPT = _JOB / "compact_partitions.py", _JOB / "compact_run.py"
# Spark unpacks the archive under this name in the working directory of each process. Libraries with
# native code cannot be imported from an archive, so --py-files does not suffice for them.
_UNPACKED = "deps"
_DRIVER = {
    "emr": "spark.yarn.appMasterEnv.PYTHONPATH",
    "emr_serverless": "spark.emr-serverless.driverEnv.PYTHONPATH",
}


class BundleError(CompactorError):
    """A bundle could not be built; the message says why."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The target of a bundle.

    Args:
        architecture: one of ``ARCHITECTURES``.
        python: its version without the patch level, such as ``3.11``.

    Raises:
        InvalidInput: not one of these.
    """

    architecture: str
    python: str

    def __post_init__(self) -> None:
        if self.architecture not in _PLATFORMS:
            raise InvalidInput("architecture", self.architecture, " or ".join(ARCHITECTURES))
        match = re.fullmatch(r"3\.(\d{1,3})", self.python)
        if match is None or int(match[1]) < _OLDEST_PYTHON:
            raise InvalidInput(
                "python", self.python, f"3.{_OLDEST_PYTHON} or a later minor version"
            )


def build_dependencies(
    target: Path,
    machine: Machine,
    requirements: Collection[str],
    *,
    excludes: Collection[str] = (),
    unused: Sequence[str] = (),
    lock: Path = LOCK,
) -> None:
    """Install requirements of a lock, with what they depend on, into an empty directory.

    Args:
        target: the directory; created if it does not exist.
        machine: the target machine.
        requirements: names in the lock.
        excludes: names that the target provides or never imports.
        unused: patterns of unused paths of the libraries, below the target.
        lock: a lock written by ``make lock``.

    Raises:
        InvalidInput: the lock has no such requirement, or the directory is not empty.
        BundleError: there is no uv, no wheel for the target, or no package index.
    """
    if target.exists() and any(target.iterdir()):
        raise InvalidInput("target", str(target), "an empty or new directory")
    with tempfile.TemporaryDirectory(prefix="compactor-bundle-") as directory:
        pinned, excluded = Path(directory, "pinned.txt"), Path(directory, "excluded.txt")
        pinned.write_text(_pinned(lock.read_text("utf-8"), requirements), "utf-8")
        excluded.write_text("\n".join(excludes), "utf-8")
        # fmt: off
        command = [
            _uv(), "pip", "install", "--quiet", "--system-certs", "--python", sys.executable,
            "--target", str(target), "--python-version", machine.python,
            "--python-platform", _PLATFORMS[machine.architecture], "--only-binary", ":all:",
            "--require-hashes", "--no-compile-bytecode", "--link-mode", "copy",
            "--requirement", str(pinned), "--constraints", str(lock), "--excludes", str(excluded),
        ]
        # fmt: on
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        message = " ".join(result.stderr.split()) or "no reason given"
        what = f"the libraries for {machine.architecture} and Python {machine.python}"
        raise BundleError(f"uv could not install {what}: {message}")
    for path in {path for pattern in (*_TRACES, *unused) for path in target.glob(pattern)}:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _pinned(lock: str, requirements: Collection[str]) -> str:
    """Return the lines of a lock that pin requirements; their hashes stay in the lock."""
    lines = []
    for name in requirements:
        pins = re.findall(rf"^{re.escape(name)}==[^\\\n]*", lock, re.MULTILINE)
        if not pins:
            raise InvalidInput("requirement", name, "a name in the lock")
        lines += pins
    return "\n".join(lines)


def _uv() -> str:
    own = Path(sys.executable).with_name("uv")
    path = str(own) if own.is_file() else shutil.which("uv")
    if path is None:
        raise BundleError("there is no uv next to this Python or on PATH: run `make set-up`")
    return path


def build_application(
    packages: Sequence[Path], target: Path, without: Collection[Path] = ()
) -> None:
    """Copy packages of this project into a directory, without bytecode.

    Args:
        packages: directories; each keeps its name.
        target: created if it does not exist; other packages in it are kept.
        without: files and directories to leave out.
    """
    for package in packages:
        for path in contents(package, without):
            copy = target / package.name / path.relative_to(package)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def interpreter(python: str) -> str | None:
    """Return the path of a Python of this version on this machine; None if there is none."""
    command = [_uv(), "python", "find", "--no-project", "--no-python-downloads", python]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() or None


def compile_modules(target: Path, python: str) -> None:
    """Compile all modules below a directory, so that Python does not look at their sources.

    Bytecode by time of change would be void: archives and Lambda set other times.

    Args:
        target: what was built.
        python: path of the interpreter, of the version that will run it.

    Raises:
        BundleError: a module cannot be compiled.
    """
    # -s: no path of this machine in tracebacks, and the same bytes on each.
    command = [python, "-m", "compileall", "-q", "-s", str(target)]
    command += ["--invalidation-mode", "unchecked-hash", str(target)]
    environment = {"PYTHONHASHSEED": "0", "PATH": os.defpath}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if result.returncode != 0:
        raise BundleError(f"compileall failed: {' '.join(result.stdout.split())}")


def contents(directory: Path, without: Collection[Path] = ()) -> Iterator[Path]:
    """Yield all files below a directory, sorted by name, without bytecode.

    Args:
        directory: where to look.
        without: files and directories to leave out.
    """
    for path in sorted(directory.rglob("*")):
        is_left_out = any(path.is_relative_to(excluded) for excluded in without)
        if path.is_file() and not is_left_out and "__pycache__" not in path.parts:
            yield path


def write_zip(directory: Path, archive: Path) -> None:
    """Write a directory to an archive that depends only on names and contents.

    Args:
        directory: top level of the archive.
        archive: replaced if it exists.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w") as sink:
        for path in contents(directory):
            entry = zipfile.ZipInfo(path.relative_to(directory).as_posix(), _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = _UNIX
            entry.external_attr = _MODE
            sink.writestr(entry, path.read_bytes())


@dataclass(frozen=True, slots=True)
class SparkBundle:
    """The paths of the parts of a bundle for spark-submit.

    Attributes:
        dependencies: the libraries, with native code for the cluster's machines.
        application: our packages.
        script: for the oversized partitions of a run.
        run_script: for a whole run.
    """

    dependencies: Path
    application: Path
    script: Path
    run_script: Path

    @property
    def paths(self) -> tuple[Path, Path, Path, Path]:
        """All paths."""
        return self.dependencies, self.application, self.script, self.run_script


def build_spark_libraries(out: Path, machine: Machine) -> None:
    """Put the libraries that ``--archives`` unpacks on the cluster into an empty directory."""
    build_dependencies(out, machine, SPARK_REQUIREMENTS, unused=NOT_IMPORTED)


def build_spark_application(out: Path) -> None:
    """Put the packages for ``--py-files`` into an empty directory."""
    build_application(SPARK_PACKAGES, out, NOT_FOR_SPARK)


def build_spark_bundle(out: Path, machine: Machine) -> SparkBundle:
    """Build all parts, replacing those of an earlier build; the cluster provides Spark.

    Args:
        out: the output directory; created if it does not exist.
        machine: the machines of the cluster.

    Raises:
        BundleError: the libraries could not be installed.
    """
    scripts = (out / SCRIPT.name, out / RUN_SCRIPT.name)
    bundle = SparkBundle(out / "deps.zip", out / "app.zip", *scripts)
    with tempfile.TemporaryDirectory(prefix="compactor-bundle-") as directory:
        libraries, application = Path(directory, "deps"), Path(directory, "app")
        build_spark_libraries(libraries, machine)
        write_zip(libraries, bundle.dependencies)
        build_spark_application(application)
        write_zip(application, bundle.application)
    shutil.copyfile(SCRIPT, bundle.script)
    shutil.copyfile(RUN_SCRIPT, bundle.run_script)
    return bundle


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
    """Build what a cluster needs, and print its parts; returns the exit code."""
    args = _parser().parse_args(arguments)
    try:
        bundle = build_spark_bundle(args.out, Machine(args.architecture, args.python))
    except (CompactorError, OSError) as error:
        print(f"bundles: {' '.join(str(error).split())}", file=sys.stderr)
        return 2 if isinstance(error, InvalidInput) else 1
    for path in bundle.paths:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{digest}  {path.stat().st_size:>12,} bytes  {path}")
    for engine, name in (("emr", "EMR"), ("emr_serverless", "EMR Serverless")):
        options = submit_arguments(bundle.dependencies.name, bundle.application.name, engine)
        run = [bundle.run_script.name, "s3://SOURCE/", "s3://DEST/"]
        print(f"\n{name}, with all on S3:\n  {shlex.join(['spark-submit', *options, *run])}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bundles", description="Build what a cluster needs to run the Spark job."
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
