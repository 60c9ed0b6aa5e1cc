"""What the functions and the Spark job are made of: libraries of the lock, and our packages.

Built without Docker, for the machine that will run it. The name of an asset is a hash of what
goes into it, so that an unchanged one is neither built nor uploaded again.
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
# What our packages import. Lambda brings boto3, which is not imported; its botocore may be another
# one than the locks have.
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
# Packages of the core that maintenance does not import, as pyproject.toml has it for the linter.
ONLY_COMPACTION = tuple(
    _CORE / name
    for name in (
        "catalogs",
        "cleaning",
        "discovery",
        "formats",
        "inventory",
        "log",
        "money",
        "outputs",
        "planning",
        "probe",
        "readers",
        "registry",
        "report",
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
# The lock that has the extras for tables; where another lock has a library, too, it is the same.
TABLES_LOCK = REPOSITORY / "requirements-dev.txt"
# What the functions import that know a table, beside the others' libraries. Only Iceberg's fit:
# deltalake and the pyarrow that goes with it are larger than Lambda takes.
_TABLE_REQUIREMENTS = ("pyarrow", "pyiceberg")
# Of a catalog in a file, which no function reaches.
_OTHER_CATALOGS = ("sqlalchemy", "greenlet")
# Of pyarrow: a protocol that is not spoken, what C++ is compiled against, the same library under
# the names that a linker would look for, and tests: 53 MiB. Without them a bundle fits.
_NOT_IMPORTED = (
    "pyarrow/libarrow_flight.so*",
    "pyarrow/libarrow_python_flight.so*",
    "pyarrow/_flight.*",
    "pyarrow/libarrow_python.so",
    "pyarrow/libarrow_python.so.*.*",
    "pyarrow/include*",
    "pyarrow/src",
    "pyarrow/tests",
    "pyarrow/*.pyx",
    "pyarrow/*.px?",
    "fsspec/tests",
)


def bundle_functions(
    out: Path,
    machine: Machine,
    *,
    table: bool = False,
    maintenance: bool = False,
    lock: Path | None = None,
) -> None:
    """Everything the Lambda functions import, into an empty directory.

    Args:
        out: the directory.
        machine: what runs them.
        table: with the libraries that read and write tables.
        maintenance: those of maintenance, instead of those of compaction.
        lock: of the libraries; by default the one that has them.

    Raises:
        BundleError: the libraries could not be had, or are larger than Lambda takes.
    """
    chosen = lock or (TABLES_LOCK if table else LOCK)
    build_dependencies(
        chosen, out, machine, roots=_roots(table), without=_without(table), drop=_NOT_IMPORTED
    )
    packages, without = _packages(maintenance=maintenance)
    build_application(packages, out, without)
    check_size(out, _LAMBDA_BYTES)


def _packages(*, maintenance: bool) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Our packages in a bundle, and what is left out of them."""
    return (MAINTENANCE_PACKAGES, ONLY_COMPACTION) if maintenance else (LAMBDA_PACKAGES, ())


def _roots(table: bool) -> tuple[str, ...]:
    return LAMBDA_REQUIREMENTS + _TABLE_REQUIREMENTS if table else LAMBDA_REQUIREMENTS


def _without(table: bool) -> tuple[str, ...]:
    return LAMBDA_HAS + _OTHER_CATALOGS if table else LAMBDA_HAS


def bundle_spark_libraries(out: Path, machine: Machine, lock: Path = LOCK) -> None:
    """What ``--archives`` unpacks on the cluster, into an empty directory."""
    build_dependencies(lock, out, machine, roots=REQUIREMENTS)


def bundle_spark_application(out: Path) -> None:
    """What ``--py-files`` has."""
    build_application(PACKAGES, out, WITHOUT)


@dataclass(frozen=True, slots=True)
class Bundle:
    """How an asset is built, and what it depends on.

    Attributes:
        build: puts it into an empty directory.
        fingerprint: changes with what it depends on.
        archived: what is built is one archive, and the asset itself.
    """

    build: Callable[[Path], None]
    fingerprint: str
    archived: bool = False

    def options(self) -> cdk.BundlingOptions:
        """For a Lambda function's code or an asset; the image is never pulled."""
        output = cdk.BundlingOutput.ARCHIVED if self.archived else cdk.BundlingOutput.NOT_ARCHIVED
        return cdk.BundlingOptions(
            image=cdk.DockerImage.from_registry("not-used"),
            local=_Local(self.build),
            output_type=output,
        )


def functions_bundle(machine: Machine, *, table: bool = False, maintenance: bool = False) -> Bundle:
    """The bundle that functions share.

    Args:
        machine: what runs them.
        table: with the libraries that read and write tables.
        maintenance: of the functions of maintenance, instead of those of compaction.
    """
    if not table:
        libraries = _libraries(machine, LAMBDA_REQUIREMENTS, LAMBDA_HAS)
    else:
        libraries = _libraries(machine, _roots(table), _without(table), TABLES_LOCK)
        libraries += "\n".join(_NOT_IMPORTED)
    packages, without = _packages(maintenance=maintenance)
    return Bundle(
        lambda out: bundle_functions(out, machine, table=table, maintenance=maintenance),
        _hash(libraries, packages, without),
    )


def spark_libraries(machine: Machine) -> Bundle:
    """``deps.zip`` of the Spark job."""
    return Bundle(
        lambda out: bundle_spark_libraries(out, machine),
        _hash(_libraries(machine, REQUIREMENTS, ()), ()),
    )


def spark_application() -> Bundle:
    """``app.zip`` of the Spark job."""
    return Bundle(bundle_spark_application, _hash("", PACKAGES, WITHOUT))


def spark_jar(coordinate: str) -> Bundle:
    """An archive for Spark's own class path, by its coordinate."""
    return Bundle(lambda out: put_jar(coordinate, out), digest_of(coordinate), archived=True)


def _libraries(
    machine: Machine, roots: Collection[str], without: Collection[str], path: Path = LOCK
) -> str:
    lock = select(path.read_text(encoding="utf-8"), roots, without)
    # How they are installed shapes them, too.
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

    # Called with the options as one object, whatever the declared signature says.
    def try_bundle(self, output_dir: str, _options: Any = None, **_: Any) -> bool:
        self._build(Path(output_dir))
        return True


def asset(scope: object, name: str, source: Path, bundle: Bundle) -> s3_assets.Asset:
    """An asset on S3: a zip archive of a bundle, or the archive that it is.

    Args:
        scope: the construct it belongs to.
        name: its id.
        source: a directory of the repository, which stands for it where bundling is skipped.
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
