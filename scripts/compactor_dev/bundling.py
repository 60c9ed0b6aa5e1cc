"""Code and libraries as other machines need them, the same bytes for the same sources.

Libraries come from a lock, checked by hash, as binary wheels for the machine that will run them,
whatever this machine is.
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

# What uv calls them. manylinux_2_28 is the oldest that pycurl has wheels for, and what Amazon
# Linux 2023 runs: Lambda from python3.12 on, and EMR from 7 on.
_PLATFORMS = {"arm64": "aarch64-manylinux_2_28", "x86_64": "x86_64-manylinux_2_28"}
ARCHITECTURES = tuple(_PLATFORMS)
# As pyproject.toml has it.
_OLDEST_PYTHON = 11

# In each *.dist-info: how and where it was installed, which differs from one build to the next.
_TRACES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
# The oldest date that a zip archive can have.
_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100_644 << 16
_UNIX = 3


class BundleError(CompactorError):
    """A bundle could not be built; says why in one line."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What a bundle is for.

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
        lock: a lock as ``make lock`` writes it.
        target: the directory; is made where it is missing.
        machine: what will import them.
        roots: names of the requirements; what they need comes along.
        without: names of what the place has already, such as boto3 on Lambda.
        drop: what of the libraries is never imported, as patterns of paths below the target.

    Raises:
        InvalidInput: the lock has no such requirement, or the directory is not empty.
        BundleError: there is no uv, no wheel for this machine, or no package index to ask.
    """
    chosen = select(lock.read_text(encoding="utf-8"), roots, without)
    if target.exists() and any(target.iterdir()):
        raise InvalidInput("target", str(target), "a directory that is empty or not there yet")
    with tempfile.TemporaryDirectory(prefix="compactor-bundle-") as directory:
        selected = Path(directory, "requirements.txt")
        selected.write_text(chosen, encoding="utf-8")
        _install(selected, target, machine)
    for information in target.glob("*.dist-info"):
        for name in _TRACES:
            (information / name).unlink(missing_ok=True)
    (target / ".lock").unlink(missing_ok=True)
    # Programs of libraries, which name the Python that installed them.
    shutil.rmtree(target / "bin", ignore_errors=True)
    for path in {path for pattern in drop for path in target.glob(pattern)}:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def check_size(target: Path, most_bytes: int) -> None:
    """Say so where a bundle is larger than the place that it is for takes.

    Args:
        target: what was built.
        most_bytes: all files of it together, unpacked.

    Raises:
        BundleError: it is larger.
    """
    found = sum(path.stat().st_size for path in contents(target))
    if found > most_bytes:
        most = most_bytes // MIB
        raise BundleError(f"the bundle has {-(-found // MIB)} MiB unpacked, and may have {most}")


def build_application(
    packages: Sequence[Path], target: Path, without: Collection[Path] = ()
) -> None:
    """Copy packages of this project into a directory, without what Python left beside them.

    Args:
        packages: directories; each keeps its last name.
        target: is made where it is missing; other packages in it stay.
        without: directories in them that are left out.
    """
    for package in packages:
        for path in contents(package, without):
            copy = target / package.name / path.relative_to(package)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def write_zip(directory: Path, archive: Path) -> None:
    """Everything in a directory as an archive that depends on names and contents alone.

    Args:
        directory: becomes the archive's top level.
        archive: is replaced.
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
    """All files below a directory, in the order of their names, but for what Python left there.

    Args:
        directory: where to look.
        without: directories below it that are left out.
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
        raise BundleError(f"uv could not install {what}: {lines or 'it does not say why'}")


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if found is None:
        raise BundleError("there is no uv beside this Python or on PATH: run `make set-up`")
    return found
