"""The wheel of this checkout in virtual environments with just the libraries it would install.

The libraries are links to those of this environment, chosen by what they require: what a fresh
``pip install`` would bring, without a network. Nothing else of this environment can be imported
there, nor the checkout.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

from compactor_dev import REPOSITORY

_PROJECT = "s3-compactor"
# Spark takes 20 s, and ten times as long on a busy machine.
_SECONDS = 600
_EXTRAS_OF_OURS = re.compile(rf"{_PROJECT}\[(.*)\]")
_UV = str(Path(sys.executable).with_name("uv"))


def build(out: Path) -> Path:
    """Build the wheel of this checkout in an empty directory; return its path."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    _run([*command, str(out)])
    (wheel,) = out.glob("*.whl")
    return wheel


@dataclass(frozen=True, slots=True)
class Installed:
    """A virtual environment with the wheel and some of its extras.

    Attributes:
        directory: the directory of the environment.
        distributions: the other installed distributions.
    """

    directory: Path
    distributions: tuple[Distribution, ...]

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.directory / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """The directory of its packages."""
        (found,) = self.directory.glob("lib/python*/site-packages")
        return found

    def compactor(
        self, *words: str, cwd: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run ``compactor`` as on the command line, without a terminal."""
        program = str(self.python.with_name("compactor"))
        return self.run(program, *words, cwd=cwd, environment=environment or {})

    def run(
        self, *command: str, cwd: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a program without the ``PYTHON…`` variables of these tests."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return subprocess.run(
            command,
            cwd=cwd,
            env={name: value for name, value in {**own, **environment}.items() if value},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )


def install(wheel: Path, directory: Path, *extras: str) -> Installed:
    """Create an environment as ``pip install WHEEL[EXTRAS]`` would.

    Args:
        wheel: the wheel of this project.
        directory: the directory to create.
        extras: names of extras in pyproject.toml.
    """
    _run([_UV, "venv", "--quiet", "--python", sys.executable, str(directory)])
    wanted = set().union(*(_closure(extra) for extra in ("", *extras)))
    chosen = tuple(one for one in distributions() if _normal(one.name) in wanted)
    installed = Installed(directory, chosen)
    for distribution in chosen:
        _link(distribution, installed.site_packages)
    python = ["--python", str(installed.python)]
    _run([_UV, "pip", "install", "--quiet", "--offline", "--no-deps", *python, str(wheel)])
    # Checks that the versions are those that the wheel requires, and that nothing is missing.
    _run([_UV, "pip", "check", "--quiet", *python])
    return installed


def _closure(extra: str) -> set[str]:
    """Return the names of all that an extra needs; an empty name means the base install."""
    installed = {_normal(one.name): one for one in distributions()}
    wanted: dict[str, set[str]] = {}
    waiting = [Requirement(text) for text in _requirements(extra)]
    while waiting:
        requirement = waiting.pop()
        name, extras = _normal(requirement.name), {"", *requirement.extras}
        if name in installed and not extras <= wanted.get(name, set()):
            wanted[name] = wanted.get(name, set()) | extras
            needed = [Requirement(text) for text in installed[name].requires or ()]
            waiting += [
                one
                for one in needed
                if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in extras)
            ]
    return set(wanted)


def _requirements(extra: str) -> Iterator[str]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in (
        project["optional-dependencies"][extra] if extra else project["dependencies"]
    ):
        if ours := _EXTRAS_OF_OURS.fullmatch(requirement):
            for one in ours[1].split(","):
                yield from _requirements(one)
        else:
            yield requirement


def _link(distribution: Distribution, site_packages: Path) -> None:
    """Link every package, module and record of a distribution; programs are left out."""
    here = Path(str(distribution.locate_file("")))
    for name in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
        if name.endswith(".dist-info"):
            # Copied, because uv does not follow a link here.
            shutil.copytree(here / name, site_packages / name)
        elif not (site_packages / name).is_symlink():
            (site_packages / name).symlink_to(here / name)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
