"""Bundles of the functions and the Spark job: libraries of the lock, and our packages.

They are built without Docker, for the machine that will run them. An asset is named by a hash of
its inputs, so an unchanged one is neither built nor uploaded again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_s3_assets as s3_assets

import compactor_dev.bundling
from compactor.sizes import MIB
from compactor_dev import REPOSITORY
from compactor_dev.bundling import (
    NOT_IMPORTED,
    Machine,
    build_application,
    build_dependencies,
    check_size,
    contents,
)
from compactor_dev.lock_selection import select
from compactor_dev.spark_bundle import LOCK, PACKAGES, REQUIREMENTS, WITHOUT
from compactor_dev.spark_jars import digest_of, put_jar

# The newest runtime of Lambda that all libraries have wheels for.
LAMBDA_PYTHON = "3.14"
# What our packages import. Lambda provides boto3, which they do not import; its botocore may be
# another version than the locks have, so ours is bundled.
LAMBDA_REQUIREMENTS = (
    "aws-lambda-powertools",
    "aws-xray-sdk",
    "botocore",
    "isal",
    "jinja2",
    "msgspec",
    "pycurl",
    "urllib3",
    "zlib-ng",
    "zstandard",
)
LAMBDA_HAS = ("boto3",)
_CORE = REPOSITORY / "functions" / "compactor"
LAMBDA_PACKAGES = (_CORE, REPOSITORY / "functions" / "compactor_handlers")
MAINTENANCE_PACKAGES = (_CORE, REPOSITORY / "functions" / "compactor_tables")
# Packages of the core that maintenance does not import; the linter enforces it (pyproject.toml).
ONLY_COMPACTION = tuple(
    _CORE / name
    for name in (
        "catalogs",
        "cleaning",
        "discovery",
        "formats",
        "log",
        "money",
        "outputs",
        "planning",
        "probe",
        "readers",
        "registry",
        "report",
        "rows",
        "runs",
        "scanning",
        "second_reading",
        "sinks",
        "verification",
        "orchestration",
    )
)
# "Deployment package (.zip file archive) size" unzipped, layers included (Lambda quotas).
_LAMBDA_BYTES = 250 * MIB
# The lock with the extras for tables; versions are the same in all locks.
TABLES_LOCK = REPOSITORY / "requirements-dev.txt"
# What rows need, and so every bundle of compaction.
_ROW_REQUIREMENTS = ("pyarrow",)
# Additional libraries of the functions that use a table. Only Iceberg's fit: deltalake with the
# pyarrow that it needs exceeds Lambda's limit.
_TABLE_REQUIREMENTS = (*_ROW_REQUIREMENTS, "pyiceberg")
# For catalogs in a database, which no function uses.
_OTHER_CATALOGS = ("sqlalchemy", "greenlet")


def bundle_functions(
    out: Path,
    machine: Machine,
    *,
    table: bool = False,
    maintenance: bool = False,
    lock: Path | None = None,
) -> None:
    """Put everything that the Lambda functions import into an empty directory.

    Args:
        out: the directory.
        machine: the platform that runs them.
        table: include the libraries that read and write tables.
        maintenance: bundle the functions of maintenance instead of those of compaction.
        lock: the lock file of the libraries; by default the one that contains them.

    Raises:
        BundleError: the libraries could not be fetched, or exceed Lambda's size limit.
    """
    chosen = lock or (TABLES_LOCK if table else LOCK)
    roots = _roots(table=table, maintenance=maintenance)
    build_dependencies(
        chosen, out, machine, roots=roots, without=_without(table), drop=NOT_IMPORTED
    )
    packages, without = _packages(maintenance=maintenance)
    build_application(packages, out, without)
    check_size(out, _LAMBDA_BYTES)


def _packages(*, maintenance: bool) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return our packages in a bundle, and the paths that are left out of them."""
    return (MAINTENANCE_PACKAGES, ONLY_COMPACTION) if maintenance else (LAMBDA_PACKAGES, ())


def _roots(*, table: bool, maintenance: bool = False) -> tuple[str, ...]:
    if table:
        return LAMBDA_REQUIREMENTS + _TABLE_REQUIREMENTS
    return LAMBDA_REQUIREMENTS if maintenance else LAMBDA_REQUIREMENTS + _ROW_REQUIREMENTS


def _without(table: bool) -> tuple[str, ...]:
    return LAMBDA_HAS + _OTHER_CATALOGS if table else LAMBDA_HAS


def bundle_spark_libraries(out: Path, machine: Machine, lock: Path = LOCK) -> None:
    """Put the libraries that ``--archives`` unpacks on the cluster into an empty directory."""
    build_dependencies(lock, out, machine, roots=REQUIREMENTS, drop=NOT_IMPORTED)


def bundle_spark_application(out: Path) -> None:
    """Put the packages for ``--py-files`` into an empty directory."""
    build_application(PACKAGES, out, WITHOUT)


@dataclass(frozen=True, slots=True)
class Bundle:
    """How an asset is built, and a fingerprint of its inputs.

    Attributes:
        build: builds it into an empty directory.
        fingerprint: changes whenever an input changes.
        archived: the build result is a single file, which is the asset itself.
    """

    build: Callable[[Path], None]
    fingerprint: str
    archived: bool = False

    def options(self) -> cdk.BundlingOptions:
        """Return the options for a Lambda function's code or an asset; no image is pulled."""
        output = cdk.BundlingOutput.ARCHIVED if self.archived else cdk.BundlingOutput.NOT_ARCHIVED
        return cdk.BundlingOptions(
            image=cdk.DockerImage.from_registry("not-used"),
            local=_Local(self.build),
            output_type=output,
        )


def functions_bundle(machine: Machine, *, table: bool = False, maintenance: bool = False) -> Bundle:
    """Return the bundle that functions share.

    Args:
        machine: the platform that runs them.
        table: include the libraries that read and write tables.
        maintenance: bundle the functions of maintenance instead of those of compaction.
    """
    roots = _roots(table=table, maintenance=maintenance)
    libraries = _libraries(machine, roots, _without(table), TABLES_LOCK if table else LOCK)
    packages, without = _packages(maintenance=maintenance)
    return Bundle(
        lambda out: bundle_functions(out, machine, table=table, maintenance=maintenance),
        _hash(libraries, packages, without),
    )


def spark_libraries(machine: Machine) -> Bundle:
    """Return the bundle of the Spark job's ``deps.zip``."""
    return Bundle(
        lambda out: bundle_spark_libraries(out, machine),
        _hash(_libraries(machine, REQUIREMENTS, ()), ()),
    )


def spark_application() -> Bundle:
    """Return the bundle of the Spark job's ``app.zip``."""
    return Bundle(bundle_spark_application, _hash("", PACKAGES, WITHOUT))


def spark_jar(coordinate: str) -> Bundle:
    """Return the bundle of a jar for Spark's class path, by its Maven coordinate."""
    return Bundle(lambda out: put_jar(coordinate, out), digest_of(coordinate), archived=True)


def _libraries(
    machine: Machine, roots: Collection[str], without: Collection[str], path: Path = LOCK
) -> str:
    lock = select(path.read_text(encoding="utf-8"), roots, without)
    # The code that installs them is an input as well.
    how = Path(compactor_dev.bundling.__file__).read_text(encoding="utf-8")
    return f"{machine.architecture} {machine.python}\n{lock}{how}"


def _hash(text: str, packages: Sequence[Path], without: Collection[Path] = ()) -> str:
    digest = hashlib.sha256(text.encode())
    for package in packages:
        for path in contents(package, without):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            name = path.relative_to(package.parent)
            digest.update(f"{name.as_posix()} {content}\n".encode())
    return digest.hexdigest()


@jsii.implements(cdk.ILocalBundling)
class _Local:
    def __init__(self, build: Callable[[Path], None]) -> None:
        self._build = build

    # jsii passes the options as one object, despite the declared signature.
    def try_bundle(self, output_dir: str, _options: Any = None, **_: Any) -> bool:
        self._build(Path(output_dir))
        return True


def asset(scope: object, name: str, source: Path, bundle: Bundle) -> s3_assets.Asset:
    """Return an S3 asset of a bundle, zipped unless the bundle is a single file.

    Args:
        scope: the construct that it belongs to.
        name: its id.
        source: a directory of the repository, used in its place when bundling is skipped.
        bundle: how it is built.
    """
    return s3_assets.Asset(
        scope,  # type: ignore[arg-type] # jsii's interfaces are not Python's
        name,
        path=str(source),
        asset_hash=bundle.fingerprint,
        asset_hash_type=cdk.AssetHashType.CUSTOM,
        bundling=bundle.options(),
    )
