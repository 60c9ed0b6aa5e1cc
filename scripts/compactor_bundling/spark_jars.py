"""The pinned jars with which Spark merges into tables and maintains them.

    python -m compactor_bundling.spark_jars    ``make spark-jars``: downloads them to build/

Maven downloads them once, by the coordinates that ``compactor run`` passes to Spark.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from compactor_bundling import REPOSITORY
from compactor_bundling.bundles import BundleError

#: Coordinates of the jars that a deployment ships for Iceberg, with their SHA-256. All jars
#: are under the Apache licence.
PINNED: Mapping[str, str] = MappingProxyType(
    {
        "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0": (
            "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242"
        ),
        "org.apache.iceberg:iceberg-aws-bundle:1.11.0": (
            "38f01da7e96850cdd05e6616d758b77b43314b712a8808e3f9a824d56976162f"
        ),
    }
)
#: The same for Delta; the EMR release provides its access to S3.
PINNED_DELTA: Mapping[str, str] = MappingProxyType(
    {
        "io.delta:delta-spark_4.1_2.13:4.2.0": (
            "8480050a55c7e50427f3bec3af9243f98fc7cbfa453a2ef55e6ea8d0b7b121ff"
        ),
        "io.delta:delta-storage:4.2.0": (
            "2d84df76551f2b3cd27b120abec67ccbba324cea6ec45eb659edcc54234f99f3"
        ),
    }
)
#: A directory that has the jars, on a machine without Maven or its repository.
JARS_VARIABLE = "COMPACTOR_SPARK_JARS"
_FETCHED_JARS = REPOSITORY / "build" / "spark-jars"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_FETCH_SECONDS = 900
_LAST_CHARACTERS = 300


def jar_name(coordinate: str) -> str:
    """Return Maven's file name of a jar."""
    _, name, version = coordinate.split(":")
    return f"{name}-{version}.jar"


def fetch_jars(
    wanted: Mapping[str, str], directory: Path, run: Callable[[Sequence[str]], object]
) -> None:
    """Download jars with Maven into a directory, without their dependencies.

    Args:
        wanted: coordinates, each with the SHA-256 of its jar.
        directory: an existing directory.
        run: runs a command; may raise any error.

    Raises:
        BundleError: the SHA-256 of a jar differs.
    """
    dependencies = ""
    for coordinate in wanted:
        group, name, version = coordinate.split(":")
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    own = "<groupId>local</groupId><artifactId>spark-jars</artifactId><version>1</version>"
    pom = directory / "pom.xml"
    pom.write_text(
        f"<project><modelVersion>4.0.0</modelVersion>{own}"
        f"<dependencies>{dependencies}</dependencies></project>",
        encoding="utf-8",
    )
    options = [f"-DoutputDirectory={directory}", "-DexcludeTransitive=true"]
    run(["mvn", "-B", "-q", "-f", str(pom), _COPY, *options])
    for coordinate, digest in wanted.items():
        downloaded = _digest(directory / jar_name(coordinate))
        if downloaded != digest:
            raise BundleError(
                f"Maven downloaded {coordinate} with SHA-256 {downloaded}; expected {digest}"
            )


def jar_digest(coordinate: str) -> str:
    """Return the SHA-256 of a pinned jar."""
    return {**PINNED, **PINNED_DELTA}[coordinate]


def pinned_jar(coordinate: str) -> Path:
    """Return a pinned jar, downloaded if necessary.

    Args:
        coordinate: of :data:`PINNED` or :data:`PINNED_DELTA`.

    Raises:
        BundleError: it cannot be downloaded, or its SHA-256 differs; the message has alternatives.
    """
    group = PINNED if coordinate in PINNED else PINNED_DELTA
    name, expected = jar_name(coordinate), group[coordinate]
    directory = os.environ.get(JARS_VARIABLE)
    path = Path(directory or _FETCHED_JARS, name)
    if directory is None and _digest(path) != expected:
        _FETCHED_JARS.mkdir(parents=True, exist_ok=True)
        fetch_jars(group, _FETCHED_JARS, _run_maven)
    digest = _digest(path)
    if digest != expected:
        raise BundleError(f"{path} has SHA-256 {digest}; expected {expected} of {coordinate}")
    return path


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "nothing"


def _run_maven(command: Sequence[str]) -> None:
    otherwise = (
        f"{JARS_VARIABLE} can name a directory that has it; a deployment does not need it where"
        ' spark_jars is "release"'
    )
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=_FETCH_SECONDS)
    except subprocess.CalledProcessError as error:
        message = " ".join((error.stderr.strip() or error.stdout).split())[-_LAST_CHARACTERS:]
        raise BundleError(f"mvn failed: {message}; {otherwise}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BundleError(f"mvn: {error}; {otherwise}") from None


def main() -> int:
    """Download all jars and print their paths; returns the exit code."""
    try:
        for coordinate, digest in {**PINNED, **PINNED_DELTA}.items():
            path = pinned_jar(coordinate)
            print(f"{digest}  {path.stat().st_size:>12,} bytes  {path}")
    except (BundleError, OSError) as error:
        print(f"spark_jars: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
