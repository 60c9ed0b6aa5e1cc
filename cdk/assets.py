"""Bundles as assets of the CDK: of the functions, of the Spark job, and its jars.

An asset is named by a hash of its inputs, so an unchanged one is neither built nor uploaded again.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii
from aws_cdk import aws_s3_assets as s3_assets

from compactor.sizes import MIB
from compactor_bundling import bundles, spark_jars
from compactor_bundling.bundles import (
    CORE,
    FUNCTIONS,
    NOT_IMPORTED,
    TABLES,
    BundleError,
    Machine,
    build_application,
    build_dependencies,
    compile_modules,
    contents,
    interpreter,
)

# The newest runtime of Lambda that all libraries have wheels for.
LAMBDA_PYTHON = "3.14"
# What our packages import. Lambda provides boto3, which they do not import; its botocore may be
# another version than the locks have, so ours is bundled.
LAMBDA_REQUIREMENTS = (
    "aws-lambda-powertools",
    "botocore",
    "isal",
    "jinja2",
    "msgspec",
    "pycurl",
    "urllib3",
    "zlib-ng",
    "zstandard",
)
# boto3 is Lambda's. The others are for catalogs in a database, which no function uses.
LAMBDA_EXCLUDES = ("boto3", "greenlet", "sqlalchemy")
# What rows need, and so every bundle of compaction.
_ROW_REQUIREMENTS = ("pyarrow",)
# Additional libraries of the functions that use a table. Only Iceberg's fit: deltalake with the
# pyarrow that it needs exceeds Lambda's limit.
_TABLE_REQUIREMENTS = (*_ROW_REQUIREMENTS, "pyiceberg")
LAMBDA_PACKAGES = (CORE, FUNCTIONS / "compactor_handlers")
MAINTENANCE_PACKAGES = (CORE, TABLES)
# Packages of the core that maintenance does not import; the linter enforces it (pyproject.toml).
ONLY_COMPACTION = tuple(
    CORE / name
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
        "sinks",
        "orchestration",
    )
)
# "Deployment package (.zip file archive) size" unzipped, layers included (Lambda quotas).
_LAMBDA_BYTES = 250 * MIB


@dataclass(frozen=True, slots=True)
class Bundle:
    """How an asset is built, and a fingerprint of its inputs.

    Attributes:
        build: builds it into an empty directory.
        fingerprint: changes whenever an input changes.
        is_archive: the build result is a single file, which is the asset itself.
    """

    build: Callable[[Path], None]
    fingerprint: str
    is_archive: bool = False

    def options(self) -> cdk.BundlingOptions:
        """Return the options for a Lambda function's code or an asset; no image is pulled."""
        archived, not_archived = cdk.BundlingOutput.ARCHIVED, cdk.BundlingOutput.NOT_ARCHIVED
        return cdk.BundlingOptions(
            image=cdk.DockerImage.from_registry("not-used"),
            local=_Local(self.build),
            output_type=archived if self.is_archive else not_archived,
        )


def functions_bundle(machine: Machine, *, table: bool = False, maintenance: bool = False) -> Bundle:
    """Return the bundle that functions share.

    Args:
        machine: the platform that runs them.
        table: include the libraries that read and write tables.
        maintenance: of the functions of maintenance instead of those of compaction.
    """
    requirements = _requirements(table=table, maintenance=maintenance)
    packages, without = _packages(maintenance=maintenance)
    compiled = interpreter(machine.python) is not None
    return Bundle(
        lambda out: build_functions(out, machine, table=table, maintenance=maintenance),
        _hash(f"{_libraries(machine, requirements)}{compiled}", packages, without),
    )


def _requirements(*, table: bool, maintenance: bool) -> tuple[str, ...]:
    """Return the names of the libraries of functions.

    Args:
        table: include the libraries that read and write tables.
        maintenance: of the functions of maintenance instead of those of compaction.
    """
    if table:
        return LAMBDA_REQUIREMENTS + _TABLE_REQUIREMENTS
    return LAMBDA_REQUIREMENTS if maintenance else LAMBDA_REQUIREMENTS + _ROW_REQUIREMENTS


def _packages(*, maintenance: bool) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Return our packages in a bundle of functions, and the paths that are left out of them."""
    return (MAINTENANCE_PACKAGES, ONLY_COMPACTION) if maintenance else (LAMBDA_PACKAGES, ())


def build_functions(
    out: Path, machine: Machine, *, table: bool = False, maintenance: bool = False
) -> None:
    """Put everything that the Lambda functions import into an empty directory.

    Args:
        out: the directory.
        machine: the platform that runs them.
        table: see :func:`functions_bundle`.
        maintenance: see :func:`functions_bundle`.

    Raises:
        BundleError: the libraries could not be fetched, or exceed Lambda's size limit.
    """
    requirements = _requirements(table=table, maintenance=maintenance)
    build_dependencies(out, machine, requirements, excludes=LAMBDA_EXCLUDES, unused=NOT_IMPORTED)
    packages, without = _packages(maintenance=maintenance)
    build_application(packages, out, without)
    if python := interpreter(machine.python):
        compile_modules(out, python)
    else:
        sys.stderr.write(f"{_not_compiled(machine)}\n")
    check_size(out, _LAMBDA_BYTES)


def _not_compiled(machine: Machine) -> str:
    return (
        f"s3-compactor: there is no Python {machine.python} here to compile the functions with, so"
        f" each cold start does it; `uv python install {machine.python}` brings one"
    )


def check_size(target: Path, most_bytes: int) -> None:
    """Check that a bundle is within the limit of its target.

    Args:
        target: what was built.
        most_bytes: limit of the unpacked size.

    Raises:
        BundleError: it exceeds the limit.
    """
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    if size > most_bytes:
        limit = most_bytes // MIB
        raise BundleError(f"the bundle has {-(-size // MIB)} MiB unpacked; the limit is {limit}")


def spark_libraries(machine: Machine) -> Bundle:
    """Return the bundle of the Spark job's ``deps.zip``."""
    return Bundle(
        lambda out: bundles.build_spark_libraries(out, machine),
        _hash(_libraries(machine, bundles.SPARK_REQUIREMENTS), ()),
    )


def spark_application() -> Bundle:
    """Return the bundle of the Spark job's ``app.zip``."""
    return Bundle(
        bundles.build_spark_application,
        _hash("", bundles.SPARK_PACKAGES, bundles.NOT_FOR_SPARK),
    )


def spark_jar(coordinate: str) -> Bundle:
    """Return the bundle of a jar for Spark's class path, by its Maven coordinate."""

    def copy(out: Path) -> None:
        shutil.copy(spark_jars.pinned_jar(coordinate), out)

    return Bundle(copy, spark_jars.jar_digest(coordinate), is_archive=True)


def _libraries(machine: Machine, requirements: Sequence[str]) -> str:
    # The code that installs them is an input as well.
    code = Path(bundles.__file__).read_text(encoding="utf-8")
    lock = bundles.LOCK.read_text(encoding="utf-8")
    return f"{machine.architecture} {machine.python}\n{requirements}\n{lock}{code}"


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
