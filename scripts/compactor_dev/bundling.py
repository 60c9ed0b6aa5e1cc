"""Reproducible bundles of code and libraries for other machines.

Libraries come from a lock, are checked by hash, and are binary wheels for the target machine,
regardless of this one.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor.errors import CompactorError, InvalidInput
from compactor.sizes import MIB
from compactor_dev.lock_selection import select

# In uv's terms. manylinux_2_28 is the oldest with wheels of pycurl, and runs on Amazon Linux 2023:
# Lambda since python3.12, and EMR since 7.
_PLATFORMS = {"arm64": "aarch64-manylinux_2_28", "x86_64": "x86_64-manylinux_2_28"}
ARCHITECTURES = tuple(_PLATFORMS)
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
# As in pyproject.toml.
_OLDEST_PYTHON = 11

# Files in each *.dist-info that differ between builds.
_TRACES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
# The oldest date in a zip archive.
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100_644 << 16
_UNIX = 3


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
    lock: Path,
    target: Path,
    machine: Machine,
    *,
    roots: Collection[str],
    without: Collection[str] = (),
    drop: Sequence[str] = (),
) -> None:
    """Install requirements of a lock into an empty directory.

    Args:
        lock: a lock written by ``make lock``.
        target: the directory; created if it does not exist.
        machine: the target machine.
        roots: names of the requirements; includes their dependencies.
        without: names that the target provides, such as boto3 on Lambda.
        drop: patterns of unused paths of the libraries, below the target.

    Raises:
        InvalidInput: the lock has no such requirement, or the directory is not empty.
        BundleError: there is no uv, no wheel for the target, or no package index.
    """
    chosen = select(lock.read_text(encoding="utf-8"), roots, without)
    if target.exists() and any(target.iterdir()):
        raise InvalidInput("target", str(target), "an empty or new directory")
    with tempfile.TemporaryDirectory(prefix="compactor-bundle-") as directory:
        selected = Path(directory, "requirements.txt")
        selected.write_text(chosen, encoding="utf-8")
        _install(selected, target, machine)
    for information in target.glob("*.dist-info"):
        for name in _TRACES:
            (information / name).unlink(missing_ok=True)
    (target / ".lock").unlink(missing_ok=True)
    # Scripts of libraries, which contain the path of the installing Python.
    shutil.rmtree(target / "bin", ignore_errors=True)
    for path in {path for pattern in drop for path in target.glob(pattern)}:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def check_size(target: Path, most_bytes: int) -> None:
    """Check that a bundle is within the limit of its target.

    Args:
        target: what was built.
        most_bytes: limit of the unpacked size.

    Raises:
        BundleError: it exceeds the limit.
    """
    found = sum(path.stat().st_size for path in contents(target))
    if found > most_bytes:
        most = most_bytes // MIB
        raise BundleError(f"the bundle has {-(-found // MIB)} MiB unpacked; the limit is {most}")


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


def write_zip(directory: Path, archive: Path) -> None:
    """Write a directory to an archive that depends only on names and contents.

    Args:
        directory: top level of the archive.
        archive: replaced if it exists.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w") as written:
        for path in contents(directory):
            entry = zipfile.ZipInfo(path.relative_to(directory).as_posix(), _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = _UNIX
            entry.external_attr = _MODE
            written.writestr(entry, path.read_bytes())


def contents(directory: Path, without: Collection[Path] = ()) -> Iterator[Path]:
    """Yield all files below a directory, sorted by name, without bytecode.

    Args:
        directory: where to look.
        without: files and directories to leave out.
    """
    for path in sorted(directory.rglob("*")):
        left_out = any(path.is_relative_to(one) for one in without)
        if path.is_file() and not left_out and "__pycache__" not in path.parts:
            yield path


def _install(requirements: Path, target: Path, machine: Machine) -> None:
    # fmt: off
    command = [
        _uv(), "pip", "install", "--quiet", "--system-certs", "--python", sys.executable,
        "--target", str(target), "--python-version", machine.python,
        "--python-platform", _PLATFORMS[machine.architecture], "--only-binary", ":all:",
        "--require-hashes", "--no-deps", "--no-compile-bytecode", "--link-mode", "copy",
        "--requirement", str(requirements),
    ]
    # fmt: on
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        lines = " ".join(result.stderr.split())
        what = f"the libraries for {machine.architecture} and Python {machine.python}"
        raise BundleError(f"uv could not install {what}: {lines or 'no reason given'}")


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        raise BundleError("there is no uv next to this Python or on PATH: run `make set-up`")
    return found
