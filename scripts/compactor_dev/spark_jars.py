"""The pinned jars with which Spark merges into tables and maintains them.

    python -m compactor_dev.spark_jars        downloads them to build/: ``make spark-jars``

Maven downloads them once, by the coordinates that ``compactor run`` passes to Spark; each is
checked against the SHA-256 below. A machine without Maven, or without access to its repository, has
them in the directory that ``COMPACTOR_SPARK_JARS`` names.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from compactor_cli.machine.spark_jars import JARS_VARIABLE
from compactor_dev import REPOSITORY
from compactor_dev.bundling import BundleError

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
#: For Spark's access to S3 outside of EMR; the second has the clients that
#: the first needs.
PINNED_S3A: Mapping[str, str] = MappingProxyType(
    {
        "org.apache.hadoop:hadoop-aws:3.4.2": (
            "d2d24e6b715b5656b9d238bf13b6682a07e2004dd36aad74a73aeb854319f4d9"
        ),
        "org.apache.iceberg:iceberg-aws-bundle:1.11.0": (
            "38f01da7e96850cdd05e6616d758b77b43314b712a8808e3f9a824d56976162f"
        ),
        "software.amazon.awssdk:s3-transfer-manager:2.29.52": (
            "0c9e654637247187a7e2494eb7a8799477a772a7d554cd3ae787cd3e3bae3c55"
        ),
    }
)
_FETCHED = REPOSITORY / "build" / "spark-jars"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_FETCH_SECONDS = 900
_LAST_CHARACTERS = 300
_OTHERWISE = (
    f"{JARS_VARIABLE} can name a directory that has it; a deployment does not need it where"
    ' spark_jars is "release"'
)


def jar_name(coordinate: str) -> str:
    """Return Maven's file name of a jar."""
    _, name, version = coordinate.split(":")
    return f"{name}-{version}.jar"


def fetch(
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
    pom = directory / "pom.xml"
    pom.write_text(_project(wanted), encoding="utf-8")
    options = [f"-DoutputDirectory={directory}", "-DexcludeTransitive=true"]
    run(["mvn", "-B", "-q", "-f", str(pom), _COPY, *options])
    for coordinate, digest in wanted.items():
        found = _digest(directory / jar_name(coordinate))
        if found != digest:
            raise BundleError(
                f"Maven downloaded {coordinate} with SHA-256 {found}; expected {digest}"
            )


def put_jar(coordinate: str, out: Path) -> None:
    """Copy a pinned jar to a directory, after downloading it if necessary.

    Args:
        coordinate: of :data:`PINNED` or :data:`PINNED_DELTA`.
        out: the directory.

    Raises:
        BundleError: it cannot be downloaded, or its SHA-256 differs; the message has alternatives.
    """
    shutil.copyfile(_found(coordinate, _group(coordinate)), out / jar_name(coordinate))


def s3a() -> list[Path]:
    """Return the jars of :data:`PINNED_S3A`, downloaded if necessary.

    Raises:
        BundleError: one cannot be downloaded, or its SHA-256 differs.
    """
    return [_found(one, PINNED_S3A) for one in PINNED_S3A]


def digest_of(coordinate: str) -> str:
    """Return the SHA-256 of a pinned jar."""
    return _group(coordinate)[coordinate]


def _group(coordinate: str) -> Mapping[str, str]:
    return PINNED if coordinate in PINNED else PINNED_DELTA


def _found(coordinate: str, group: Mapping[str, str]) -> Path:
    name, digest = jar_name(coordinate), group[coordinate]
    given = os.environ.get(JARS_VARIABLE)
    path = Path(given or _FETCHED, name)
    if given is None and _digest(path) != digest:
        _FETCHED.mkdir(parents=True, exist_ok=True)
        fetch(group, _FETCHED, _run)
    found = _digest(path)
    if found != digest:
        raise BundleError(f"{path} has SHA-256 {found}; expected {digest} of {coordinate}")
    return path


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "nothing"


def _project(wanted: Mapping[str, str]) -> str:
    listed = ""
    for coordinate in wanted:
        group, name, version = coordinate.split(":")
        listed += (
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    own = "<groupId>local</groupId><artifactId>spark-jars</artifactId><version>1</version>"
    return (
        f"<project><modelVersion>4.0.0</modelVersion>{own}"
        f"<dependencies>{listed}</dependencies></project>"
    )


def _run(command: Sequence[str]) -> None:
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=_FETCH_SECONDS)
    except subprocess.CalledProcessError as error:
        said = " ".join((error.stderr.strip() or error.stdout).split())[-_LAST_CHARACTERS:]
        raise BundleError(f"mvn failed: {said}; {_OTHERWISE}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BundleError(f"mvn: {error}; {_OTHERWISE}") from None


def main() -> int:
    """Download all jars and print their paths; returns the exit code."""
    try:
        for coordinate, digest in {**PINNED, **PINNED_DELTA}.items():
            path = _found(coordinate, _group(coordinate))
            print(f"{digest}  {path.stat().st_size:>12,} bytes  {path}")
    except (BundleError, OSError) as error:
        print(f"spark_jars: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
