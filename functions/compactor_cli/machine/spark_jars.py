"""The jars that local Spark needs to write tables, by their Maven coordinates.

Spark downloads them with their dependencies from Maven Central once, and caches them in ~/.ivy2. A
machine without access to it has them in a directory: ``COMPACTOR_SPARK_JARS``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from compactor.errors import InvalidInput
from compactor.settings.settings import Settings
from compactor.settings.tables import DELTA, TableAddress

#: A directory of jars, used instead of downloading them.
JARS_VARIABLE = "COMPACTOR_SPARK_JARS"
#: Coordinates, separated by commas, for the jobs of a run; set by the run itself.
PACKAGES_VARIABLE = "COMPACTOR_SPARK_PACKAGES"

# The versions of EMR's release (docs/deployment.md), and those that Spark 4.1 was built with.
_ICEBERG = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",
    "org.apache.iceberg:iceberg-aws-bundle:1.11.0",
)
_SQLITE = ("org.xerial:sqlite-jdbc:3.50.3.0",)
_SDK = "software.amazon.awssdk"
_DELTA = (
    "io.delta:delta-spark_4.1_2.13:4.2.0",
    "org.apache.hadoop:hadoop-aws:3.4.2",
    f"{_SDK}:s3:2.29.52",
    f"{_SDK}:s3-transfer-manager:2.29.52",
    f"{_SDK}:sts:2.29.52",
    f"{_SDK}:kms:2.29.52",
)
# The bundle of all clients, 641 MB, is replaced by the four above. The others are not used here,
# and bring dependencies that Spark has in other versions.
_EXCLUDED = (
    f"{_SDK}:bundle",
    "io.delta:delta-kernel-api",
    "io.delta:delta-kernel-defaults",
    "io.delta:delta-kernel-unitycatalog",
    "io.unitycatalog:unitycatalog-client",
    "org.slf4j:slf4j-api",
    "org.wildfly.openssl:wildfly-openssl",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3",
)


def packages_environment(settings: Settings) -> dict[str, str]:
    """Return the variable that names the jars for the jobs of a run; empty if none are needed."""
    address = settings.table_address
    return table_packages([address] if address is not None and settings.upsert_key else [])


def table_packages(tables: Iterable[TableAddress]) -> dict[str, str]:
    """Return the variable that names the jars for a job over these tables; empty for none."""
    wanted: dict[str, None] = {}
    for table in tables:
        names = _DELTA if table.kind == DELTA else _ICEBERG
        wanted |= dict.fromkeys((*names, *(_SQLITE if table.kind == "sql" else ())))
    return {PACKAGES_VARIABLE: ",".join(wanted)} if wanted else {}


def jar_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return Spark's settings for the jars of a job.

    Args:
        environment: of the job.

    Raises:
        InvalidInput: the directory of jars is empty.
    """
    packages = environment.get(PACKAGES_VARIABLE)
    if not packages:
        return {}
    directory = environment.get(JARS_VARIABLE) or os.environ.get(JARS_VARIABLE)
    if not directory:
        return {"spark.jars.packages": packages, "spark.jars.excludes": ",".join(_EXCLUDED)}
    found = sorted(Path(directory).glob("*.jar"))
    if not found:
        raise InvalidInput(JARS_VARIABLE, directory, f"a directory with the jars of {packages}")
    return {"spark.jars": ",".join(str(path.resolve()) for path in found)}
