"""Prepares what the Containerfile copies, and builds the image: ``make image``.

The libraries come from the lock, as wheels for the image's machine and Python, so that the builder
needs no package index.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from compactor.errors import CompactorError, InvalidInput
from compactor_bundling.bundles import ARCHITECTURES, BundleError, Machine, build_dependencies
from compactor_dev import REPOSITORY

CONTAINERFILE = REPOSITORY / "deploy" / "Containerfile"
# As in the Containerfile.
PYTHON = "3.13"
_LOCK = REPOSITORY / "requirements-dev.txt"
_PLATFORMS = {"arm64": "linux/arm64", "x86_64": "linux/amd64"}
# The second of two backends: 12 MB.
_UNUSED = ("zstandard/_cffi*",)
# Asked for by botocore itself, for credentials.
_CREDENTIALS = frozenset({"signin", "sso", "sso-oidc", "sts"})
_NAME = re.compile(r"[A-Za-z0-9-]+")


def prepare(context: Path, machine: Machine) -> None:
    """Fill an empty directory with the packages of the image: the base install.

    Raises:
        BundleError: the libraries could not be installed.
    """
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    roots = [name[0] for one in project["dependencies"] if (name := _NAME.match(one))]
    packages = context / "packages"
    build_dependencies(packages, machine, roots, unused=_UNUSED, lock=_LOCK)
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(context)])
    (wheel,) = context.glob("*.whl")
    shutil.unpack_archive(wheel, packages, "zip")
    wheel.unlink()
    _drop_unnamed_services(packages)


def _drop_unnamed_services(packages: Path) -> None:
    """Remove botocore's descriptions of services that no module of ours names: 22 MB."""
    sources = "".join(one.read_text("utf-8") for one in packages.glob("compactor*/**/*.py"))
    for service in (packages / "botocore" / "data").iterdir():
        is_used = service.name in _CREDENTIALS or f'"{service.name}"' in sources
        if service.is_dir() and not is_used:
            shutil.rmtree(service)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the image by the builder that is there; returns the exit code."""
    args = _parser().parse_args(arguments)
    shutil.rmtree(args.context, ignore_errors=True)
    try:
        prepare(args.context, Machine(args.architecture, PYTHON))
        builder = next(filter(shutil.which, ("podman", "buildah", "docker")), None)
        command = [builder or "podman", "build", "--platform", _PLATFORMS[args.architecture]]
        command += ["-f", str(CONTAINERFILE), "-t", args.tag, str(args.context)]
        print(" ".join(command))
        if builder is not None:
            _run(command)
    except (CompactorError, OSError) as error:
        print(f"image: {' '.join(str(error).split())}", file=sys.stderr)
        return 2 if isinstance(error, InvalidInput) else 1
    return 0


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BundleError(f"{' '.join(command[:3])} failed: {done.stderr or done.stdout}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="image", description="Build the container image.")
    parser.add_argument("--tag", default="s3-compactor", metavar="NAME", help="(%(default)s)")
    parser.add_argument("--architecture", choices=ARCHITECTURES, default="x86_64")
    parser.add_argument(
        "--context",
        type=Path,
        default=Path("build", "image"),
        metavar="DIR",
        help="what the Containerfile copies; replaced (%(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
